"""What a tracker can be told. Each works in a thread of its own, so it may take its time, and may fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lowgear.config.run import RunConfig
from lowgear.training.progress import LogLine

POPULATION = "population"  # what belongs to no agent alone
Ids = dict[str, str]  # a tracker's own names of its runs: of the population, and of each agent by number
Rows = Sequence[dict[str, Any]]
TABLE_COLUMNS = (
    "agent",
    "variant",
    "seed",
    "cost_coefficient",
    "relative_coefficient",
    "return_mean",
    "return_ci95",
    "success_rate",
    "large_share",
    "period_mean",
    "flops_per_step",
    "flops_reduction",
)


@dataclass(frozen=True)
class TrackedRun:
    """A run as trackers are told of it."""

    path: Path  # of its directory
    config: RunConfig
    provenance: dict[str, Any]
    trains: bool = True  # False: something is added to a run that is not being trained

    @property
    def name(self) -> str:
        """As the tracker shows it."""
        return self.path.resolve().name


class Tracker(Protocol):
    """Takes what a run tells; every agent is named by its variant, seed and coefficient."""

    def begin(self, run: TrackedRun, ids: Ids) -> str:
        """Open the run, with its configuration; what it goes on with is found by `ids`, and what is new joins them.

        Returns where to look for it, for the person who trains; nothing where that is plain.
        """
        ...

    def log(self, group: str, lines: Sequence[LogLine]) -> None:
        """Numbers of each agent at a step: the group `train`, or `evaluation`."""
        ...

    def table(self, name: str, rows: Rows) -> None:
        """A table with TABLE_COLUMNS."""
        ...

    def figure(self, path: Path) -> None:
        """A PNG."""
        ...

    def policy(self, agent: int, path: Path) -> None:
        """An agent's policy file."""
        ...

    def end(self, status: str) -> None:
        """The process that told it is done: the run is finished, stopped (it may go on later) or failed."""
        ...


def numbers(line: LogLine) -> dict[str, float]:
    """What a line tells in numbers."""
    return {name: value for name, value in line.items() if isinstance(value, float)}


def cells(rows: Rows) -> list[list[Any]]:
    """A table's cells, row by row."""
    return [[row.get(column) for column in TABLE_COLUMNS] for row in rows]
