"""What `lowgear bench train` runs: its own cases, or a person's."""

from dataclasses import dataclass

from lowgear import LowgearError
from lowgear.config.gears import GivenGear
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import find
from lowgear.envs import sized
from lowgear.training.device import has_accelerator

REPLAY = 100_000  # steps of each agent's ring
STEPS = 10_000_000  # more than any measurement takes
ANY_COEFFICIENT = 0.001  # for tasks without a preset: what compute costs an agent does not change its speed


@dataclass(frozen=True)
class Case:
    """One shape of a population."""

    task: str
    recipe: str
    gears: tuple[GivenGear, ...] | None  # None: the task's own
    agents: int
    environments: int | None = None  # of each agent; None: the recipe's

    def config(self) -> RunConfig:
        """The run it stands for; every bad value is an error."""
        task, overrides = sized(find(self.task), self.gears), {"replay": REPLAY}
        if self.environments is not None:
            overrides["environments"] = self.environments
        if self.agents < 1:
            raise LowgearError(f"--agents {self.agents}: write 1 or more, for example 1,8,32")
        return resolve(
            task,
            self.recipe,
            gears=self.gears,
            seeds=range(self.agents),
            steps=STEPS,
            cost_coefficients=(ANY_COEFFICIENT,) if task.cost_coefficient is None else None,
            evaluate_every=0,
            overrides=overrides,
            accelerator=has_accelerator(),
        )


CASES = (
    Case("walker-stand", "paper", (8, 64), 1),
    Case("walker-stand", "paper", (8, 64), 4),
    Case("Walker2d-v3", "paper", (64, 256), 1),
    Case("walker-stand", "modern", (8, 64), 1),
    Case("walker-stand", "modern", (8, 64), 4),
)
