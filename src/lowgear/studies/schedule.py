"""How long programs take on several machines, each machine one at a time, the longest first."""

import heapq
from collections.abc import Iterable


def makespan(seconds: Iterable[float], machines: int) -> float:
    """Until the last one ends: each goes to the machine that is free first (Graham's rule, within 4/3 of the best)."""
    longest_first = sorted(seconds, reverse=True)
    free = [0.0] * max(1, min(machines, len(longest_first)))
    for each in longest_first:
        heapq.heapreplace(free, free[0] + each)
    return max(free)
