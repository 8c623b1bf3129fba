"""Recipes: every number that changes learning, with the settings of the paper and ours."""

from dataclasses import dataclass, field, replace
from typing import Any

from lowgear import LowgearError
from lowgear.policy.header import IMPORTED, PolicyHeader


def _field(default: Any, doc: str) -> Any:
    """A setting, with what it is in a few words: `lowgear recipes show` prints them."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Recipe:
    """Settings of the learners. The defaults are the paper's, except `chunk`; `modern` says what we change and why."""

    name: str = "paper"
    learning_rate: float = _field(3e-4, "of every gear's critics")
    actor_learning_rate: float | None = _field(None, "of its actor and temperature; None: as the critics'")
    actor_boost: float = _field(1.0, "times that rate at first, falling to once over 10,000 updates")
    actor_every: int = _field(1, "updates of the critics for each of actor and temperature")
    discount: float = _field(0.99, "of the gears, per step")
    target_rate: float = _field(0.005, "τ: how fast the target critics follow")
    batch: int = _field(256, "steps in a gear's batch")
    replay: int = _field(1_000_000, "steps kept for each agent")
    actor_activation: str = _field("tanh", "of actors and master: tanh or relu")
    critic_activation: str = _field("tanh", "tanh or relu")
    critic_normalise: bool = _field(False, "layer normalisation in the critics")
    critic_units: int | None = _field(
        None, "least hidden width of the critics, which are as wide as the widest gear; None: as wide as their own"
    )
    bound_targets: bool = _field(
        False, "keep the critics' targets within what rewards allow, where the task's are known"
    )
    lenient_twins: bool = _field(False, "targets take the mean of the twin critics until an episode ends for real")
    target_entropy: float = _field(1.0, "times minus the number of actions")
    first_alpha: float = _field(1.0, "temperature at the start")
    normalise_observations: bool = _field(False, "by running statistics, for gears and master")
    scale_rewards: bool = _field(False, "of gears and master, by the running return")
    random_steps: int = _field(1_000, "uniformly random actions, and no updates, at the start of a run")
    noise_hold: int = _field(
        1,
        "steps that a draw of action noise holds, at most an environment's part of a chunk: longer reaches farther "
        "where control is slow",
    )
    master_units: int = _field(32, "hidden width of the master")
    master_learning_rate: float = _field(1e-3, "of the master")
    master_discount: float = _field(0.99, "of the master")
    discount_by_step: bool = _field(False, "the master's discount follows the steps a pick held, not the picks")
    master_batch: int = _field(32, "picks in the master's batch")
    master_replay: int = _field(50_000, "picks kept")
    master_copy_every: int = _field(500, "updates between copies to the master's target")
    explore_share: float = _field(0.1, "share of training over which the master's ε falls from 1")
    explore_last: float = _field(0.02, "the ε it ends with")
    hindsight_share: float = _field(0.8, "of a batch that hindsight relabels, on tasks with goals; 0: no hindsight")
    goal_random_share: float = _field(0.0, "of all later steps on tasks with goals: uniformly random actions too")
    goal_reward_shift: float = _field(1.0, "added to the rewards of tasks with hindsight: 0 and 1 instead of -1 and 0")
    end_on_success: bool = _field(True, "an episode that succeeds ends, on tasks with goals")
    periods: tuple[int, ...] = _field((5,), "steps a pick may hold; the master chooses where there are several")
    dial: bool = _field(False, "one agent learns a range of coefficients, and its master goes by the one it pays")
    dial_ends: tuple[float, float] = _field(
        (-1.0, 10.0),
        "of it where no coefficients are given; 1: the dearest gear's step costs what a typical step earns",
    )
    dial_setting: float = _field(2.0, "where it stands until it is set, in the same measure")
    price_picks: bool = _field(False, "the master pays for its own inference too")
    known_prices: bool = _field(False, "a dial's master is told what its choices cost, and learns what they earn alone")
    sample_master: bool = _field(
        True, "draw from softmax of the master's values when evaluating, on tasks where the paper does"
    )
    max_episode_steps: int | None = _field(
        None, "episodes are cut there; None: the environment's own limit, or 10,000 where it sets none"
    )
    environments: int = _field(1, "of each agent, which share a chunk out; 4 of EnvPool's where a GPU learns")
    chunk: int = _field(64, "steps collected while the updates for as many are made; ours: the paper's schedule is 1")
    updates_per_step: int = _field(1, "of every learner; more where the simulator is slow and learning is not")

    @property
    def updates_per_chunk(self) -> int:
        """Of every learner."""
        return self.chunk * self.updates_per_step

    @property
    def can_know_prices(self) -> bool:
        """Whether it has what known prices need: a dial, and costs that add up step by step to a finite sum."""
        return self.dial and self.discount_by_step and self.master_discount < 1

    @property
    def sees_position(self) -> bool:
        """Whether the master that is deployed has the dial's position among its inputs."""
        return self.dial and not self.known_prices


PAPER = Recipe()

# Chosen on six tasks: docs/recipes.md says why and what else was tried. Critics cost nothing at deployment, and wide
# ones teach narrow gears far better than critics of a gear's own width.
MODERN = replace(
    PAPER,
    name="modern",
    learning_rate=1e-3,
    actor_learning_rate=6e-4,
    actor_boost=2.0,
    actor_every=2,
    target_rate=0.01,
    critic_units=128,
    critic_activation="relu",
    critic_normalise=True,
    lenient_twins=True,
    target_entropy=0.5,
    first_alpha=0.01,
    normalise_observations=True,
    scale_rewards=True,
    master_batch=128,
    master_units=16,
    explore_last=0.2,
    periods=(2, 5, 20),
    dial=True,
    price_picks=True,
    known_prices=True,
    discount_by_step=True,
    sample_master=False,
    bound_targets=True,
    goal_random_share=0.3,
    goal_reward_shift=0.0,
    end_on_success=False,
)

RECIPES = {recipe.name: recipe for recipe in (MODERN, PAPER)}

# What the modern recipe sets by task, beyond discounts at most two things each. Layer normalisation slows tasks with
# goals. MountainCar's goal lies beyond what independent noise reaches. With critics of 128 units two large
# gears of finger-spin in eleven stop at half the score. Pendulum is learned in 4,000 steps, so first steps count there.
FETCH: dict[str, Any] = {"discount": 0.95, "target_rate": 0.02, "critic_normalise": False}
MODERN_BY_TASK: dict[str, dict[str, Any]] = {
    "MountainCarContinuous-v0": {"noise_hold": 32, "random_steps": 10_000},
    "Swimmer-v3": {"discount": 0.999},
    "BipedalWalker-v3": {"discount": 0.98},
    "finger-spin": {"critic_units": 256},
    "gym:Pendulum-v1": {"actor_boost": 3.0, "random_steps": 512},
    "FetchPush-v1": FETCH,
    "FetchSlide-v1": FETCH,
    "FetchPickAndPlace-v1": FETCH,
}


def find(name: str, task: str) -> Recipe:
    """The recipe called `name`, with what it sets for the task."""
    if name not in RECIPES:
        raise LowgearError(f"unknown recipe {name!r}: write {' or '.join(RECIPES)}")
    settings = MODERN_BY_TASK.get(task, {}) if name == "modern" else {}
    return replace(RECIPES[name], **settings)


def behind(header: PolicyHeader) -> Recipe:
    """The recipe that a policy was trained with, for the episodes of its task; `modern` for one from elsewhere."""
    return find("modern" if header.recipe == IMPORTED else header.recipe, header.task)
