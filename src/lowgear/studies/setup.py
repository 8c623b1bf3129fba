"""What a study was asked for, and the groups of agents it compares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lowgear.config.gears import GivenGear
from lowgear.config.paper import NOTHING, Figures
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import Task

CHECKPOINTS = 4  # of a study's run: so much of it at most is lost when it is killed
CHECKPOINT_AT_MOST = 40_000  # steps between two


@dataclass(frozen=True)
class Group:
    """The agents of one row, one for each seed, and where their dials stand."""

    label: str
    config: RunConfig
    paper: Figures = NOTHING
    setting: float | None = None  # of the dial, relative where that is; None: each agent's own
    x: float | None = None  # where it stands along what a study sweeps


@dataclass(frozen=True)
class Setup:
    """Options that all studies share."""

    seeds: tuple[int, ...]
    recipe: str
    episodes: int  # of each agent when it is evaluated
    steps: int | None = None  # None: the task's
    gears: tuple[GivenGear, ...] | None = None  # None: the task's
    cost_coefficients: tuple[float, ...] | None = None  # None: the task's
    overrides: dict[str, Any] = field(default_factory=dict)  # settings of the recipe that all its agents have

    def config(
        self,
        task: Task,
        variant: str,
        *,
        gears: Sequence[GivenGear] | None = None,
        cost_coefficients: Sequence[float] | None = None,
        overrides: dict[str, Any] | None = None,
    ) -> RunConfig:
        """One agent of a variant for each seed."""
        steps = task.steps if self.steps is None else self.steps
        return resolve(
            task,
            self.recipe,
            steps=steps,
            seeds=self.seeds,
            variants=[variant],
            cost_coefficients=cost_coefficients or self.cost_coefficients,
            gears=gears or self.gears,
            overrides=self.overrides | (overrides or {}),
            evaluate_every=-(-steps // CHECKPOINTS),
            checkpoint_every=max(1, min(CHECKPOINT_AT_MOST, steps // CHECKPOINTS)),
        )


Groups = Callable[[Setup, Task], list[Group]]  # what a study compares on a task
