"""What the seeds of a run say together at each setting: a variant at one cost coefficient.

Comes in: evaluation.json. Goes out: one `Setting` for each, and those that a summary names.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lowgear.evaluation.statistics import Spread, bootstrap, spread
from lowgear.report.looks import place

KEEP = 0.95  # of the best return: what "cheapest" must keep


@dataclass(frozen=True)
class Setting:
    """Several agents that differ by their seed alone."""

    variant: str
    coefficient: float
    dial: bool  # its agents were evaluated at several coefficients
    score: Spread  # return, or success rate where the task reports it
    mean_low: float  # of the mean's 95% bootstrap interval over seeds
    mean_high: float
    large_share: float
    flops: float  # per step
    saved: float  # fraction of the large gear's FLOPs
    period: float | None  # mean steps between picks; None where the master is never asked
    agents: tuple[int, ...]


def group(evaluation: dict[str, Any]) -> tuple[list[Setting], int]:
    """Every setting, cheapest coefficient first within a variant, and how many scores were not finite."""
    rows = evaluation["agents"]
    counts: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        counts[row["agent"]] += 1
    groups: defaultdict[tuple[str, bool, float], list[dict[str, Any]]] = defaultdict(list)
    left_out = 0
    for row in rows:
        numbers = score_of(row), row["flops_per_step"], row["flops_reduction"], row["large_share"]
        if not all(math.isfinite(number) for number in numbers) or row["flops_per_step"] <= 0:
            left_out += 1
            continue
        key = row["variant"], counts[row["agent"]] > 1, float(f"{row['cost_coefficient']:.9g}")
        groups[key].append(row)
    ordered = sorted(groups, key=lambda key: (place(key[0]), key))
    return [_setting(key, groups[key]) for key in ordered], left_out


def score_of(row: dict[str, Any]) -> float:
    """Success rate where the task reports it, else return."""
    return float(row["return_mean"] if row["success_rate"] is None else row["success_rate"])


def best(settings: Sequence[Setting]) -> Setting:
    """The setting with the highest mean score."""
    return max(settings, key=lambda setting: setting.score.mean)


def cheapest(settings: Sequence[Setting]) -> Setting:
    """The setting with the fewest FLOPs that keeps KEEP of the best mean score."""
    top = best(settings).score.mean
    enough = top - (1 - KEEP) * abs(top)
    return min((s for s in settings if s.score.mean >= enough), key=lambda setting: setting.flops)


def named(settings: Sequence[Setting]) -> list[tuple[str, Setting]]:
    """The settings a summary shows, with what is said of them: of each variant the best, and the cheapest near it."""
    found: list[tuple[str, Setting]] = []
    for variant in sorted({setting.variant for setting in settings}, key=_order):
        own = [setting for setting in settings if setting.variant == variant]
        if len(own) == 1:
            found.append(("", own[0]))
        elif best(own) is cheapest(own):
            found.append(("best score, and cheapest near it", best(own)))
        else:
            found += [("best score", best(own)), (f"cheapest that keeps {KEEP:.0%} of the best", cheapest(own))]
    return found


def _order(variant: str) -> tuple[int, int]:
    """Baselines first, then the method, then the rest."""
    first = {"small-only": 0, "large-only": 1, "asymmetric": 2}
    return first.get(variant, 3), place(variant)


def _setting(key: tuple[str, bool, float], rows: list[dict[str, Any]]) -> Setting:
    variant, dial, coefficient = key
    scores = [score_of(row) for row in rows]
    periods = [float(row["period_mean"]) for row in rows if row["period_mean"] is not None]
    return Setting(
        variant,
        coefficient,
        dial,
        spread(scores),
        *bootstrap(scores, lambda drawn: float(drawn.mean())),
        fmean(float(row["large_share"]) for row in rows),
        fmean(float(row["flops_per_step"]) for row in rows),
        fmean(float(row["flops_reduction"]) for row in rows),
        fmean(periods) if periods else None,
        tuple(sorted({int(row["agent"]) for row in rows})),
    )
