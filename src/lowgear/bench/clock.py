"""Times contenders in turn, so that a busy moment of the machine falls on all of them alike.

The clock is the thread's own: what other programs take of the processor meanwhile does not count.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

BLOCK_S = 0.002  # one contender at a time
ROUNDS = 101


class Timed(NamedTuple):
    """Nanoseconds of one step."""

    median: float
    low: float  # quartiles of the rounds
    high: float


def interleave(
    contenders: Mapping[str, Callable[[int], int]],
    rounds: int = ROUNDS,
    block_s: float = BLOCK_S,
    progress: Callable[[], None] | None = None,
) -> dict[str, Timed]:
    """Median and quartiles of each contender; `contender(passes)` runs so many passes and returns its steps."""
    passes = {name: _passes(run, block_s) for name, run in contenders.items()}
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            found[name].append(_once(run, passes[name]))
        if progress:
            progress()
    quartiles = {name: np.percentile(each, (50, 25, 75)) for name, each in found.items()}
    return {name: Timed(*map(float, three)) for name, three in quartiles.items()}


def _once(run: Callable[[int], int], passes: int) -> float:
    start = time.thread_time_ns()
    steps = run(passes)
    return (time.thread_time_ns() - start) / steps


def _passes(run: Callable[[int], int], block_s: float) -> int:
    """How many passes make a block; the trial also warms caches."""
    run(1)
    start = time.perf_counter()
    run(1)
    return max(1, round(block_s / max(time.perf_counter() - start, 1e-9)))
