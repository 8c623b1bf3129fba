"""The paper's figures: what it prints for each task, and for each row of its tables.

paper.json holds every table as printed, with percentages of 0 to 100; shares and reductions that leave here are
fractions of 1. Scores are returns, on the Fetch tasks success rates.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

Pair = tuple[float, float]  # mean and standard deviation over five seeds
CRITERION_UNITS = 512  # of the policy that the paper's widths are judged by


@dataclass(frozen=True)
class Figures:
    """What the paper prints for some agents of a task; None where it prints nothing."""

    score: Pair | None = None
    best: float | None = None  # score of the best seed
    large_share: Pair | None = None  # fraction of steps in the large gear
    flops_reduction: float | None = None


NOTHING = Figures()


@dataclass(frozen=True)
class Published:
    """What the paper prints for a task as a whole."""

    small_only: Pair
    large_only: Pair
    asymmetric: Pair
    large_share: Pair
    flops_reduction: float  # mean of seeds where printed, else the best seed's
    random: float

    def scaled(self, score: Any, large_only: float | None = None) -> Any:
        """A score, or an array of them, with a random policy at 0 and large-only at 1.

        `large_only` is a mean score of our own; without it, the paper's stands in.
        """
        top = self.large_only[0] if large_only is None else large_only
        return (score - self.random) / (top - self.random)


@cache
def tables() -> dict[str, Any]:
    """Every table as the paper prints it."""
    text = resources.files("lowgear.config").joinpath("paper.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def main_tasks() -> tuple[str, ...]:
    """The six tasks of the main paper; the others are in its supplement."""
    return tuple(_rows("main_table"))


def published(task: str) -> Published:
    """The figures of one of the 16 tasks."""
    small_only, large_only, _ = _rows("size_study")[task]
    if task in main_tasks():
        score, share = _rows("ablation_table")[task]["ours"]
        reduction = _rows("main_table")[task][4]
    else:
        _, _, score, share, reduction, *_ = _rows("supplement_table")[task]
    return Published(
        small_only=_pair(small_only),
        large_only=_pair(large_only),
        asymmetric=_pair(score),
        large_share=_shares(share),
        flops_reduction=reduction[0] / 100,
        random=_rows("random_scores")[task],
    )


def variant(task: str, name: str) -> Figures:
    """Means of the variant `name`: main table, supplement and ablations."""
    if task not in tables()["tasks"]:
        return NOTHING
    whole = published(task)
    small = large = None
    if task in main_tasks():
        small, large, ours = (best for best, _ in _rows("main_table")[task][:3])
    else:
        ours = _rows("supplement_table")[task][5]
    known = {
        "small-only": Figures(whole.small_only, small),
        "large-only": Figures(whole.large_only, large),
        "asymmetric": Figures(whole.asymmetric, ours, whole.large_share, whole.flops_reduction),
    }
    return known[name] if name in known else ablation(task, name)


def ablation(task: str, name: str) -> Figures:
    """A row of the ablations: `asymmetric`, `no-cost` or `separate-buffers`."""
    column = "ours" if name == "asymmetric" else name.replace("-", "_")
    row = _rows("ablation_table").get(task, {}).get(column)
    return NOTHING if row is None else Figures(_pair(row[0]), large_share=_shares(row[1]))


def two_large(task: str) -> Figures:
    """Two large gears."""
    row = _rows("two_large_table").get(task)
    return NOTHING if row is None else Figures(_pair(row[2]))


def width(task: str, units: int) -> Figures:
    """A policy of so many units alone: the task's small and large gears and the criterion."""
    row = _rows("size_study").get(task)
    if row is None:
        return NOTHING
    preset = tables()["tasks"][task]
    scores = dict(zip((preset["small_units"], preset["large_units"], CRITERION_UNITS), row, strict=True))
    return Figures(_pair(scores[units])) if units in scores else NOTHING


def distillation(task: str, method: str) -> Figures:
    """The best of five seeds of `fit`, `gail` or `bc`."""
    row = _rows("distillation_table").get(task, {})
    return Figures(best=row[method][0]) if method in row else NOTHING


def expert_data(task: str, method: str, episodes: int) -> Figures:
    """`gail` or `bc`, taught with so many whole episodes."""
    columns, column = tables()["expert_data_table"]["columns"], f"{method}_{episodes}"
    row = _rows("expert_data_table").get(task)
    return NOTHING if row is None or column not in columns else Figures(_pair(row[columns.index(column)]))


def _rows(table: str) -> dict[str, Any]:
    rows: dict[str, Any] = tables()[table]["rows"]
    return rows


def _pair(printed: Any) -> Pair:
    mean, std = printed
    return float(mean), float(std)


def _shares(percentages: Any) -> Pair:
    mean, std = percentages
    return mean / 100, std / 100
