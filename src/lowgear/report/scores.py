"""The numbers behind the picture of a frontier: from `lowgear evaluate --json` to points, lines and their means.

A dial agent was evaluated at several cost coefficients and becomes a line; every other agent is one point. Means are
over the agents of one variant at one coefficient, which are its seeds.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lowgear.evaluation.evaluate import NORMAL_95


@dataclass(frozen=True)
class Score:
    """What one agent scored and cost at one coefficient."""

    agent: int
    variant: str
    coefficient: float
    score: float  # return, or success rate where the task reports it
    low: float  # of the score's 95% interval
    high: float
    flops: float  # per step
    flops_ci95: float  # half width
    dial: bool  # the agent was evaluated at several coefficients

    @property
    def finite(self) -> bool:
        """Whether it can be drawn."""
        return math.isfinite(self.score) and math.isfinite(self.flops) and self.flops > 0


@dataclass(frozen=True)
class Mean:
    """The middle of several agents at one coefficient."""

    coefficient: float
    score: float
    flops: float
    agents: int


@dataclass(frozen=True)
class MeanLine:
    """A variant's means, lowest coefficient first."""

    variant: str
    dial: bool
    means: tuple[Mean, ...]

    @property
    def agents(self) -> int:
        """How many there are at most at one coefficient."""
        return max(mean.agents for mean in self.means)


def read(agents: Sequence[dict[str, Any]], episodes: int) -> list[Score]:
    """One score for each row of the report, those that are not finite among them."""
    rows = Counter(row["agent"] for row in agents)
    return [_score(row, episodes, rows[row["agent"]] > 1) for row in agents]


def agent_lines(scores: Iterable[Score], variant: str) -> list[list[Score]]:
    """The finite scores of each dial agent of a variant, lowest coefficient first."""
    lines: defaultdict[int, list[Score]] = defaultdict(list)
    for score in scores:
        if score.variant == variant and score.dial and score.finite:
            lines[score.agent].append(score)
    return [sorted(line, key=lambda score: score.coefficient) for line in lines.values()]


def mean_lines(scores: Iterable[Score]) -> list[MeanLine]:
    """The mean of each variant's finite scores at each coefficient, dial agents apart from the others."""
    groups: defaultdict[tuple[str, bool], defaultdict[float, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        if score.finite:
            groups[score.variant, score.dial][float(f"{score.coefficient:.9g}")].append(score)
    return [
        MeanLine(variant, dial, tuple(_mean(value, at[value]) for value in sorted(at)))
        for (variant, dial), at in groups.items()
    ]


def large_flops(agents: Iterable[dict[str, Any]]) -> float | None:
    """FLOPs of the large gear, from any agent's FLOPs and what they save against it."""
    for row in agents:
        flops, share = row["flops_per_step"], 1 - row["flops_reduction"]
        if math.isfinite(flops) and flops > 0 and share > 0:
            return float(flops / share)
    return None


def wilson(rate: float, episodes: int) -> tuple[float, float]:
    """The 95% interval of a success rate (Wilson, 1927), which has a width at 0 and 1 too."""
    z2 = NORMAL_95**2
    middle = (rate + z2 / (2 * episodes)) / (1 + z2 / episodes)
    half = NORMAL_95 * math.sqrt(rate * (1 - rate) / episodes + z2 / (4 * episodes**2)) / (1 + z2 / episodes)
    return min(rate, middle - half), max(rate, middle + half)


def _score(row: dict[str, Any], episodes: int, dial: bool) -> Score:
    rate = row["success_rate"]
    score = row["return_mean"] if rate is None else rate
    low, high = (score - row["return_ci95"], score + row["return_ci95"]) if rate is None else wilson(rate, episodes)
    large = large_flops([row])
    flops_ci95 = 0.0 if large is None else row.get("flops_reduction_ci95", 0.0) * large
    return Score(
        agent=row["agent"],
        variant=row["variant"],
        coefficient=row["cost_coefficient"],
        score=score,
        low=low if math.isfinite(low) else score,
        high=high if math.isfinite(high) else score,
        flops=row["flops_per_step"],
        flops_ci95=flops_ci95 if math.isfinite(flops_ci95) else 0.0,
        dial=dial,
    )


def _mean(coefficient: float, scores: Sequence[Score]) -> Mean:
    score, flops = fmean(s.score for s in scores), fmean(s.flops for s in scores)
    return Mean(coefficient, score, flops, len({s.agent for s in scores}))
