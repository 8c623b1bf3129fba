"""Training that is killed at any moment goes on, and ends bit for bit where an unbroken run ends."""

import random

import pytest

from tests.faults.children import Fault, preloading, train, train_until
from tests.faults.conftest import same, sound

QUICK, LONG = 224, 672  # steps; the last segment stays open
CHAIN = 10  # kills of one run before it is let go

FILES = ("rows-", "state-", "latest.json", "metrics.jsonl", "agent0.safetensors", "agent0-best.safetensors")
BOUNDARIES = [
    *(Fault("open", name) for name in (*FILES, "lock")),
    *(Fault("write", name, "half") for name in (*FILES, "lock")),
    *(Fault("write", name, "after") for name in FILES),
    *(Fault("fsync", name, "after") for name in (*FILES, "checkpoint")),
    *(Fault("rename", name, "before") for name in FILES if name not in ("rows-", "metrics.jsonl")),
    *(Fault("rename", name, "after") for name in FILES if name not in ("rows-", "metrics.jsonl")),
    Fault("unlink", "state-", "before"),
    Fault("unlink", "state-", "after"),
    Fault("truncate", "metrics.jsonl", "before"),
]


def kill(run, steps, faults, library, draw, counts):
    """Kill a run by each of the faults, in turn; those that it ended before are given back."""
    done = 0
    for number, fault in enumerate(faults):
        if not train_until(run, steps, fault, library, draw):
            return faults[number:]
        counts["kills survived"] += 1
        counts[f"  {fault.call} {fault.file}".rstrip()] += 1
        before, done = done, sound(run)
        assert done >= before, f"{fault} lost a checkpoint"
        counts["  checkpoints that were there after them, whole"] += done > 0
    return []


@pytest.mark.faults
def test_fifty_kills(tmp_path, unbroken, library, counts):
    draw = random.Random(20)
    faults = [fault._replace(at=draw.choice((1, 1, 2, 3))) for fault in BOUNDARIES]
    faults += [Fault("compile", at=draw.randint(1, 12)) for _ in range(5)]
    faults += [Fault("evaluation", at=draw.randint(1, 3)) for _ in range(5)]
    faults += [Fault("clock", do="any time") for _ in range(10)]
    draw.shuffle(faults)
    number = 0
    while faults:
        run, number = tmp_path / f"run{number}", number + 1
        left = kill(run, LONG, faults[:CHAIN], library, draw, counts)
        assert train(run, LONG).returncode == 0
        same(run, unbroken(LONG))
        counts["runs that ended bit for bit as the unbroken one"] += 1
        faults = [fault._replace(at=1) for fault in left] + faults[CHAIN:]
    assert counts["kills survived"] >= 50


@pytest.mark.faults
def test_a_program_that_was_compiled_is_half_kept(tmp_path, unbroken, library, counts):
    """JAX keeps half a program where it is killed, or the disk is full, and goes without it from then on."""
    programs, run = tmp_path / "programs", tmp_path / "run"
    keep = {"JAX_COMPILATION_CACHE_DIR": str(programs), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = preloading(library, programs, Fault("write", "jit_", "half", 3)) | keep
    assert train(run, QUICK, env=environment).returncode == -9
    assert train(run, QUICK, env=preloading(library, tmp_path) | keep).returncode == 0
    same(run, unbroken(QUICK))
    counts["kills survived"] += 1
    counts["  write of a compiled program"] += 1
