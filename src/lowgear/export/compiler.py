"""The C compiler of this machine: which it is, and what it makes of a source."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lowgear import LowgearError

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
FAST = ("-O3", "-march=native", "-ffp-contract=fast")
SHARED = ("-shared", "-fPIC")
SECONDS_AT_MOST = 300


def find() -> str | None:
    """The compiler that $CC names, or the first of cc, gcc and clang; None where there is none."""
    named = os.environ.get("CC", "").split()
    return next((path for name in [*named[:1], "cc", "gcc", "clang"] if (path := shutil.which(name))), None)


def need(what: str) -> str:
    """The compiler, or an error that says what it is wanted for."""
    found = find()
    if found is None:
        raise LowgearError(f"{what} needs a C compiler and none was found: install gcc or clang, or name one in CC")
    return found


def version(compiler: str) -> str:
    """The first line of what it says of itself."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() or compiler


def build(compiler: str, flags: Sequence[str], sources: Sequence[Path], out: Path) -> Path:
    """Compile and link; what the compiler complains of is the error."""
    libraries = ["-lm"] if any(flag.endswith("_LIBM") for flag in flags) else []  # the generated code needs none
    command = [compiler, *flags, *map(str, sources), "-o", str(out), *libraries]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_AT_MOST)
    except subprocess.TimeoutExpired:
        raise LowgearError(f"{compiler} did not finish {sources[0].name} in {SECONDS_AT_MOST} s") from None
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:300])
        raise LowgearError(f"{compiler} {' '.join(flags)} did not accept {sources[0].name}: {first}")
    return out
