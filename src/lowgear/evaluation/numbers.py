"""How scores and times are written for people: as many decimals as tell something, whatever the scale."""

import math

LEAST = 1e-6  # smaller numbers are written with an exponent
MANY = 100_000  # from here on whole numbers


def score(value: float) -> str:
    """One decimal; three digits of what is below 10."""
    return _written(value, abs(value))


def score_pair(mean: float, half: float) -> str:
    """A score and half its interval, with as many decimals each."""
    size = max(abs(mean), abs(half)) if math.isfinite(half) else abs(mean)
    return f"{_written(mean, size)} ± {_written(half, size)}"


def duration(seconds: float) -> str:
    """In seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3600:.1f} h"


def _written(value: float, size: float) -> str:
    """With the decimals that a number of this size has; never minus zero."""
    if not math.isfinite(value) or value == 0 or size == 0:
        return f"{value + 0.0:.0f}"
    if size < LEAST:
        return f"{value:.2e}"
    if size >= MANY:
        return f"{value:,.0f}"
    decimals = 1 if size >= 10 else 2 - math.floor(math.log10(size))
    return f"{round(value, decimals) + 0.0:.{decimals}f}"
