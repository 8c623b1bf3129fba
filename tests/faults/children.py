"""Training in processes of its own, which are killed, or whose calls fail, where a test says."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from lowgear.export import compiler

OPTIONS = [
    "--gears",
    "2,4",
    "--critic-units",
    "4",
    "--master-units",
    "4",
    "--period",
    "2,7",
    "--evaluate-every",
    "96",
    "--evaluate-episodes",
    "1",
]
OPTIONS += ["--checkpoint-every", "128", "--set", "batch=16", "--set", "master_batch=8", "--set", "actor_every=1"]
OPTIONS += ["--set", "random_steps=64", "--set", "chunk=32"]
NEW = ["envpool:Pendulum-v1", *OPTIONS]

# Dies a moment after something has begun: the compilation of a program, or an evaluation.
AT_MOMENT = """
import os, signal, sys, threading
moment, number, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
del sys.argv[1:4]
begun = 0

def begin():
    global begun
    begun += 1
    if begun == number:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()

if moment == "compile":
    import jax
    def hear(event, duration, **others):
        if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            begin()
    jax.monitoring.register_event_duration_secs_listener(hear)
else:
    from lowgear.evaluation import evaluate
    play = evaluate.play_policies
    def heard(*arguments, **others):
        begin()
        return play(*arguments, **others)
    evaluate.play_policies = heard
from lowgear.commands.cli import main
main()
"""


class Fault(NamedTuple):
    """Where a process is killed, or which of its calls fails."""

    call: str  # of inject.c; or compile, evaluation; or clock: at any time
    file: str = ""
    do: str = "before"
    at: int = 1

    def __str__(self) -> str:
        return " ".join(str(part) for part in self if part)


def build(folder: Path) -> Path:
    """inject.c as a library to be preloaded."""
    found = compiler.find()
    if found is None or not sys.platform.startswith("linux"):
        pytest.skip("faults are injected on Linux, with a C compiler")
    library, source = folder / "inject.so", Path(__file__).with_name("inject.c")
    subprocess.run([found, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def preloading(library: Path, under: Path, fault: Fault | None = None, **others: object) -> dict[str, str]:
    """The environment of a process in which calls below a folder fail."""
    found = {"LD_PRELOAD": str(library), "FAULT_UNDER": str(under)} | {key: str(value) for key, value in others.items()}
    if fault is not None:
        found |= {"FAULT_CALL": fault.call, "FAULT_FILE": fault.file, "FAULT_DO": fault.do, "FAULT_AT": str(fault.at)}
    return os.environ | found


def arguments_of(run: Path, steps: int) -> list[str]:
    """What trains into a directory, whatever is there."""
    return (
        ["train", "--resume", str(run)] if run.exists() else ["train", *NEW, "--steps", str(steps), "--out", str(run)]
    )


def train(run: Path, steps: int, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Go on with a run, or begin it."""
    command = [sys.executable, "-m", "lowgear", *arguments_of(run, steps), *options]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def train_until(run: Path, steps: int, fault: Fault, library: Path, draw: random.Random) -> bool:
    """Train until the fault kills the process; False where the run ended before it."""
    python, arguments = [sys.executable], arguments_of(run, steps)
    if fault.call in ("compile", "evaluation"):
        delay = draw.random() * (0.1 if fault.call == "compile" else 0.02)
        command, environment = [*python, "-c", AT_MOMENT, fault.call, str(fault.at), str(delay), *arguments], None
    else:
        command = [*python, "-m", "lowgear", *arguments]
        environment = None if fault.call == "clock" else preloading(library, run, fault)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        if fault.call == "clock":
            time.sleep(1 + draw.random() * 8)
            process.send_signal(signal.SIGKILL)
        _, said = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode == -signal.SIGKILL


def steer(command: list[str], env: dict[str, str], actions: list[tuple[str, Callable[[], object]]]) -> tuple[int, str]:
    """Run a command; whenever it says the next of some words, it is held while something is done to it."""
    left, said = list(actions), []
    with subprocess.Popen(
        command, env=env | {"COLUMNS": "1000"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if left and left[0][0] in line:
                process.send_signal(signal.SIGSTOP)
                left.pop(0)[1]()
                process.send_signal(signal.SIGCONT)
    assert not left, "".join(said)
    return process.returncode, "".join(said)
