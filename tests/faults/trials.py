"""What the tests of faults do to a run, and demand of it."""

import os

from tests.faults.children import preloading, train, train_until
from tests.faults.conftest import same, sound

QUICK = 224  # steps; the last segment stays open
FOREVER = 1_000_000


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


def failing(library, run, fault, error, times=FOREVER):
    return preloading(library, run, fault._replace(do=str(error)), FAULT_TIMES=times)


def goes_on(run, unbroken, library, fault, error, steps):
    """Where one call fails, the run says so, and ends as if it had not."""
    done = train(run, steps, "--on-write-error", "go-on", env=failing(library, run, fault, error, times=1))
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert os.strerror(error) in said
    assert "going on meanwhile, the next checkpoint tries again" in said
    same(run, unbroken(steps))
