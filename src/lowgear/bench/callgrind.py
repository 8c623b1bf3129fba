"""Instructions of a control step, counted by Valgrind where it is installed."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

from lowgear.bench.c_driver import CompiledReplay

# Valgrind knows no AVX-512, so its count is of the AVX2 code.
FLAGS = ("-O3", "-march=x86-64-v3", "-ffp-contract=fast") if platform.machine() == "x86_64" else ("-O3",)
SECONDS_AT_MOST = 120


def is_installed() -> bool:
    """Whether Valgrind is there."""
    return shutil.which("valgrind") is not None


def instructions(replay: CompiledReplay) -> float | None:
    """Mean over the steps of the episodes, of the step function and all it calls; None where it cannot say."""
    command = replay.program(FLAGS)
    out = Path(replay.folder, "callgrind.out")
    options = [f"--toggle-collect={replay.name}_step", f"--callgrind-out-file={out}"]
    try:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", *options, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_AT_MOST,
        )
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None or int(found[1]) == 0:
        return None
    return int(found[1]) / int(command[-1])
