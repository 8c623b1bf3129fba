"""The dial: a range of cost coefficients that one agent learns, and where a coefficient stands on it.

A coefficient's position on the dial is -1 at the low end, 1 at the high end. Between them it turns in even steps of the
logarithm; a dial that begins at 0 or below turns evenly near 0 (asinh instead of log). Below 0 the dear gears earn a
bonus, so that they act wherever gears do equally well. A master that knows prices takes the coefficient times its
tariff off what choices earn; one that learns them sees the position as one more input. An agent of one coefficient has
a dial whose ends are equal; its position is always 0.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowgear import LowgearError

SLACK = 1e-6  # relative: a coefficient that was written down and read again still counts as the end it was
KNEE = 1e-2  # of the high end: steps are even below it, and of the logarithm above
LOW_KNEE = 1e-3  # of the low end, on a dial that begins above 0: all its steps are of the logarithm
REACH = 1e18  # of either end, in knees: its square is still a float32


class Dial(NamedTuple):
    """The ends of the range."""

    low: float
    high: float

    @property
    def turns(self) -> bool:
        """Whether there is anything to set."""
        return self.high > self.low

    def holds(self, coefficient: float) -> bool:
        """Whether it is a dial at all, and the coefficient on it."""
        ends = -math.inf < self.low < self.high < math.inf and self.high > 0 and self._can_turn
        ends = ends or 0 <= self.low == self.high < math.inf
        return ends and self.low - abs(self.low) * SLACK <= coefficient <= self.high * (1 + SLACK)

    @property
    def _can_turn(self) -> bool:
        """Whether its ends are apart, and not so far that a float32 no longer holds both."""
        farthest = max(abs(self.low), self.high)
        return self.high - self.low > SLACK * farthest and farthest <= REACH * self.knee

    @property
    def knee(self) -> float:
        """Where even steps give way to those of the logarithm."""
        return LOW_KNEE * self.low if self.low > 0 else KNEE * self.high

    @property
    def middle(self) -> float:
        """The coefficient at position 0."""
        return float(price(0.0, self.low, self.high)) if self.turns else self.low

    def position(self, coefficient: float) -> float:
        """Where a coefficient stands; one outside the range is an error."""
        if not self.holds(coefficient):
            raise LowgearError(
                f"cost coefficient {coefficient:g} is outside what the agent was trained for, "
                f"{self.low:g} to {self.high:g}"
            )
        if not self.turns:
            return 0.0
        start, here, end = (math.asinh(value / self.knee) for value in (self.low, coefficient, self.high))
        return min(1.0, max(-1.0, 2 * (here - start) / (end - start) - 1))

    def settings(self, count: int) -> list[float]:
        """`count` coefficients in even steps of the dial, both ends among them."""
        if not self.turns or count == 1:
            return [self.middle]
        inner = [float(price(2 * i / (count - 1) - 1, self.low, self.high)) for i in range(1, count - 1)]
        return [self.low, *inner, self.high]

    def between(self, one: float, other: float) -> float:
        """The coefficient midway between two, along the dial."""
        return float(price((self.position(one) + self.position(other)) / 2, self.low, self.high))

    def times(self, unit: float) -> "Dial":
        """The same dial in another unit."""
        return Dial(self.low * unit, self.high * unit)


def price(position: Any, low: Any, high: Any, maths: Any = np) -> Any:
    """The coefficient at a position of a dial with these ends; numbers or arrays, `maths` NumPy's or JAX's."""
    knee = maths.where(low > 0, LOW_KNEE * low, KNEE * maths.maximum(high, 1e-30))
    start, end = maths.arcsinh(low / knee), maths.arcsinh(high / knee)
    return knee * maths.sinh(start + (end - start) * (position + 1) / 2)


def span(coefficients: Sequence[float]) -> Dial:
    """The dial that holds all the coefficients."""
    return Dial(min(coefficients), max(coefficients))
