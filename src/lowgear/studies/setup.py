"""What a study was asked for, and the groups of agents it compares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import Task

CHECKPOINTS = 4  # of a study's run: so much of it at most is lost when it is killed
CHECKPOINT_AT_MOST = 40_000  # steps between two


@dataclass(frozen=True)
class Setup:
    """Options that all studies share."""

    seeds: tuple[int, ...]
    recipe: str
    episodes: int  # of each agent when it is evaluated
    steps: int | None = None  # None: the task's
    gears: tuple[int, ...] | None = None  # None: the task's
    cost_coefficients: tuple[float, ...] | None = None  # None: the task's

    def steps_of(self, task: Task) -> int:
        """Environment steps of each agent."""
        return task.steps if self.steps is None else self.steps

    def gears_of(self, task: Task) -> tuple[int, ...]:
        """Widths of the gears."""
        return self.config(task, "asymmetric").gears

    def config(
        self,
        task: Task,
        variant: str,
        *,
        gears: Sequence[int] | None = None,
        cost_coefficients: Sequence[float] | None = None,
        overrides: dict[str, Any] | None = None,
    ) -> RunConfig:
        """One agent of a variant for each seed."""
        steps = self.steps_of(task)
        return resolve(
            task,
            self.recipe,
            steps=steps,
            seeds=self.seeds,
            variants=[variant],
            cost_coefficients=cost_coefficients or self.cost_coefficients,
            gears=gears or self.gears,
            overrides=overrides,
            evaluate_every=-(-steps // CHECKPOINTS),
            checkpoint_every=max(1, min(CHECKPOINT_AT_MOST, steps // CHECKPOINTS)),
        )


@dataclass(frozen=True)
class Paper:
    """What the paper prints for a line, as (mean, standard deviation); None where it prints nothing."""

    score: tuple[float, float] | None = None
    best: float | None = None  # score of its best seed
    large_share: tuple[float, float] | None = None
    flops_reduction: float | None = None


NOTHING = Paper()


@dataclass(frozen=True)
class Group:
    """The agents of one line, one for each seed, and where their dials stand."""

    label: str
    config: RunConfig
    setting: float | None = None  # of the dial; None: each agent's own
    paper: Paper = NOTHING
    x: float | None = None  # where it stands along what a study sweeps
