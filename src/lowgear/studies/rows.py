"""What a group of seeds scored and cost: the rows that every study's table is made of."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lowgear.config.paper import NOTHING, Figures
from lowgear.config.tasks import Task
from lowgear.evaluation import statistics
from lowgear.evaluation.evaluate import scored_by_success
from lowgear.evaluation.statistics import Spread


@dataclass(frozen=True)
class SeedResult:
    """One agent, evaluated."""

    seed: int
    score: float  # return, or success rate where the task has goals
    score_std: float  # over episodes
    large_share: float
    flops_per_step: float
    flops_reduction: float
    # Of each episode, and from step to step, as `evaluate.summarise` gives them; None of what was evaluated before.
    decisions: float | None = None
    repeated_share: float | None = None
    jerk: float | None = None
    # Of a controller as it is deployed, where a study asks for it.
    weight_bytes: float | None = None
    step_ns: float | None = None

    @classmethod
    def of(cls, seed: int, summary: dict[str, Any]) -> "SeedResult":
        """From what `evaluate.summarise` gives."""
        score, std = summary["return_mean"], summary["return_std"]
        rate = summary["success_rate"]
        if scored_by_success(summary):
            score, std = rate, (rate * (1 - rate)) ** 0.5
        return cls(
            seed,
            score,
            std,
            summary["large_share"],
            summary["flops_per_step"],
            summary["flops_reduction"],
            summary.get("decisions_mean"),
            summary.get("repeated_share"),
            summary.get("jerk"),
        )


@dataclass(frozen=True)
class TableRow:
    """A task, what was done, and every seed of it."""

    task: Task
    label: str
    seeds: tuple[SeedResult, ...]
    paper: Figures = NOTHING
    steps: int = 0  # environment steps of each agent
    x: float | None = None  # where it stands along what a study sweeps

    @property
    def score(self) -> Spread:
        """Over seeds."""
        return statistics.spread([seed.score for seed in self.seeds])

    @property
    def best(self) -> SeedResult:
        """The seed that scored most, as the paper's main table shows."""
        return max(self.seeds, key=lambda seed: seed.score)

    def mean(self, name: str) -> float:
        """Of a field of `SeedResult`, over seeds."""
        return float(np.mean([getattr(seed, name) for seed in self.seeds]))

    def told(self, name: str) -> float | None:
        """The same of a field that may be missing; None where it is, of any seed."""
        return None if any(getattr(seed, name) is None for seed in self.seeds) else self.mean(name)

    def std(self, name: str) -> float:
        """Of a field of `SeedResult`, over seeds."""
        return statistics.spread([getattr(seed, name) for seed in self.seeds]).std

    def to_json(self) -> dict[str, Any]:
        """Everything, every seed of it."""
        return {
            "task": self.task.name,
            "label": self.label,
            "steps": self.steps,
            "score": self.score._asdict(),
            "seeds": [{name: x for name, x in asdict(seed).items() if x is not None} for seed in self.seeds],
            "paper": asdict(self.paper),
        }


def aggregate(rows: Sequence[TableRow]) -> dict[str, tuple[float, float, float]]:
    """Interquartile mean and its 95% interval over all tasks, of every label that all of them have.

    Scores are scaled so that a random policy is 0 and large-only is 1. Empty without several published tasks with as
    many seeds each.
    """
    tasks = {row.task.name for row in rows}
    if len(tasks) < 2 or any(row.task.published is None for row in rows):
        return {}
    tops = {row.task.name: row.score.mean for row in rows if row.label == "large-only"}
    found = {}
    for label in dict.fromkeys(row.label for row in rows):
        mine = {row.task.name: row for row in rows if row.label == label}
        if mine.keys() == tasks and len({len(row.seeds) for row in mine.values()}) == 1:
            scores = np.array([_scaled(row, tops.get(task)) for task, row in mine.items()]).T
            found[label] = statistics.interquartile_mean(scores), *statistics.bootstrap(scores)
    return found


def _scaled(row: TableRow, large_only: float | None) -> list[float]:
    assert row.task.published is not None
    return [row.task.published.scaled(seed.score, large_only) for seed in row.seeds]
