"""The dial: a range of cost coefficients that one agent learns, and where a coefficient stands on it.

A coefficient's position on the dial is -1 at the low end, 1 at the high end, even steps of the logarithm between. A
master that knows prices takes the coefficient times its tariff off what choices earn; one that learns them sees the
position as one more input. An agent of one coefficient has a dial whose ends are equal; its position is always 0.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lowgear import LowgearError

SLACK = 1e-6  # relative: a coefficient that was written down and read again still counts as the end it was


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
        ends = 0 < self.low < self.high < math.inf or 0 <= self.low == self.high < math.inf
        return ends and self.low * (1 - SLACK) <= coefficient <= self.high * (1 + SLACK)

    @property
    def ratio(self) -> float:
        """Of the high end to the low one."""
        return self.high / self.low if self.turns else 1.0

    @property
    def middle(self) -> float:
        """The coefficient at position 0."""
        return math.sqrt(self.low * self.high)

    def position(self, coefficient: float) -> float:
        """Where a coefficient stands; one outside the range is an error."""
        if not self.holds(coefficient):
            raise LowgearError(
                f"cost coefficient {coefficient:g} is outside what the agent was trained for, "
                f"{self.low:g} to {self.high:g}"
            )
        if not self.turns:
            return 0.0
        share = math.log(coefficient / self.low) / math.log(self.high / self.low)
        return min(1.0, max(-1.0, 2 * share - 1))

    def settings(self, count: int) -> list[float]:
        """`count` coefficients in even steps of the dial, both ends among them."""
        if not self.turns or count == 1:
            return [self.middle]
        inner = [price(2 * i / (count - 1) - 1, self.low, self.ratio) for i in range(1, count - 1)]
        return [self.low, *inner, self.high]


def price(position: Any, low: Any, ratio: Any) -> Any:
    """The coefficient at a position of a dial, given its low end and the ratio of its ends; or of arrays of them."""
    return low * ratio ** ((position + 1) / 2)


def span(coefficients: Sequence[float]) -> Dial:
    """The dial that holds all the coefficients."""
    dial = Dial(min(coefficients), max(coefficients))
    if dial.turns and dial.low <= 0:
        raise LowgearError(
            f"a dial from {dial.low:g} to {dial.high:g}: it turns in even steps of the logarithm, so it must begin "
            f"above 0; write for example {dial.high / 1000:g},{dial.high:g}"
        )
    return dial
