"""What a group of seeds scored and cost: the lines that every study's table is made of."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lowgear.config.tasks import Task
from lowgear.evaluation import statistics
from lowgear.evaluation.statistics import Spread
from lowgear.studies.setup import NOTHING, Paper


@dataclass(frozen=True)
class Scored:
    """One agent, evaluated."""

    seed: int
    score: float  # return, or success rate where the task reports it
    score_std: float  # over episodes
    large_share: float
    flops_per_step: float
    flops_reduction: float

    @classmethod
    def of(cls, seed: int, found: dict[str, Any]) -> "Scored":
        """From what `evaluate.summarise` found."""
        rate = found["success_rate"]
        score, std = (found["return_mean"], found["return_std"]) if rate is None else (rate, (rate * (1 - rate)) ** 0.5)
        return cls(seed, score, std, found["large_share"], found["flops_per_step"], found["flops_reduction"])


@dataclass(frozen=True)
class Line:
    """A line of a table: a task, what was done, and every seed of it."""

    task: Task
    label: str
    seeds: tuple[Scored, ...]
    paper: Paper = NOTHING
    steps: int = 0  # environment steps of each agent
    x: float | None = None  # where it stands along what a study sweeps

    @property
    def score(self) -> Spread:
        """Over seeds."""
        return statistics.spread([seed.score for seed in self.seeds])

    @property
    def best(self) -> Scored:
        """The seed that scored most, as the paper's main table shows."""
        return max(self.seeds, key=lambda seed: seed.score)

    def mean(self, name: str) -> float:
        """Of a figure of `Scored`, over seeds."""
        return float(np.mean([getattr(seed, name) for seed in self.seeds]))

    def std(self, name: str) -> float:
        """Of a figure of `Scored`, over seeds."""
        return statistics.spread([getattr(seed, name) for seed in self.seeds]).std

    def to_json(self) -> dict[str, Any]:
        """Everything, every seed of it."""
        return {
            "task": self.task.name,
            "label": self.label,
            "steps": self.steps,
            "score": self.score._asdict(),
            "seeds": [asdict(seed) for seed in self.seeds],
            "paper": asdict(self.paper),
        }


@dataclass(frozen=True)
class Overall:
    """A label over all tasks: scores scaled so that a random policy is 0 and large-only is 1."""

    label: str
    tasks: int
    seeds: int
    iqm: float
    low: float
    high: float


def overall(lines: Sequence[Line]) -> list[Overall]:
    """Of every label that all tasks have, where there are several published tasks with as many seeds each."""
    names = list(dict.fromkeys(line.task.name for line in lines))
    if len(names) < 2 or any(line.task.published is None for line in lines):
        return []
    found = []
    for label in dict.fromkeys(line.label for line in lines):
        mine = {line.task.name: line for line in lines if line.label == label}
        counts = {len(line.seeds) for line in mine.values()}
        if mine.keys() == set(names) and len(counts) == 1:
            scores = np.array([_scaled(mine[name], lines) for name in names]).T
            low, high = statistics.bootstrap(scores)
            found.append(Overall(label, len(names), counts.pop(), statistics.interquartile_mean(scores), low, high))
    return found


def _scaled(line: Line, lines: Sequence[Line]) -> list[float]:
    published = line.task.published
    assert published is not None
    own = [other for other in lines if other.task == line.task and other.label == "large-only"]
    top = own[0].score.mean if own else published.large_only[0]
    return [(seed.score - published.random) / (top - published.random) for seed in line.seeds]
