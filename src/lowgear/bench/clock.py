"""Times contenders in turn, so that a busy moment of the machine falls on all of them alike.

The clock is the thread's own: what other programs take of the processor meanwhile does not count.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

Key = TypeVar("Key")

BLOCK_S = 0.002  # one contender at a time
ROUNDS = 101


class StepTime(NamedTuple):
    """Nanoseconds of one step."""

    median: float
    low: float  # quartiles of the rounds
    high: float


def interleave(
    contenders: Mapping[Key, Callable[[int], int]], rounds: int = ROUNDS, block_s: float = BLOCK_S
) -> dict[Key, StepTime]:
    """Median and quartiles of each contender; `contender(passes)` runs so many passes and returns its steps."""
    passes = {name: _passes(run, block_s) for name, run in contenders.items()}
    ns: dict[Key, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.thread_time_ns()
            steps = run(passes[name])
            ns[name].append((time.thread_time_ns() - start) / steps)
    return {name: StepTime(*map(float, np.percentile(each, (50, 25, 75)))) for name, each in ns.items()}


def _passes(run: Callable[[int], int], block_s: float) -> int:
    """How many passes make a block; the trial also warms caches."""
    run(1)
    start = time.perf_counter()
    run(1)
    return max(1, round(block_s / max(time.perf_counter() - start, 1e-9)))
