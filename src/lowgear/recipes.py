"""Recipes: every number that changes learning, with the settings of the paper and ours."""

from dataclasses import dataclass, replace
from typing import Any

from lowgear.errors import LowgearError


@dataclass(frozen=True)
class Recipe:
    """Settings of the learners. The defaults are the paper's; see `modern` for what we change and why."""

    name: str = "paper"
    learning_rate: float = 3e-4  # of every gear's critics
    actor_learning_rate: float | None = None  # of its actor; None: as the critics'
    small_actor_factor: float = 1.0  # times that, of every gear but the last
    alpha_learning_rate: float | None = None  # of its temperature; None: as the critics'
    actor_every: int = 1  # updates of the critics for each of actor and temperature
    target_entropy: float = 1.0  # times minus the number of actions
    first_alpha: float = 1.0  # temperature at the start
    first_values: float = 1.0  # times what a fresh critic's last layer would say
    pessimism: float = 1.0  # 1: the minimum of the twin critics; 0: their mean
    normalise_observations: bool = False  # by running statistics, for gears and master
    scale_rewards: bool = False  # of the gears, by the running return
    reward_gain: float = 1.0  # what scaled rewards are multiplied by
    keep_values: bool = False  # critics mean the same after the scale of rewards has changed
    held_noise: bool = False  # action noise holds for a random number of steps
    discount: float = 0.99  # of the gears, per step
    target_rate: float = 0.005  # τ: how fast the target critics follow
    batch: int = 256  # steps in a gear's batch
    replay: int = 1_000_000  # steps kept for each agent
    actor_activation: str = "tanh"
    critic_activation: str = "tanh"
    critic_normalise: bool = False  # layer normalisation in the critics
    critic_units: int | None = None  # hidden width of every gear's critics; None: as wide as the actor
    bound_targets: bool = False  # keep the critics' targets within what rewards allow, where the task's are known
    random_steps: int = 1_000  # uniformly random actions, and no updates, at the start of a run
    noise_hold: int = 1  # steps that a draw of action noise holds: longer reaches farther where control is slow
    master_units: int = 32
    master_learning_rate: float = 1e-3
    master_discount: float = 0.99
    discount_by_step: bool = False  # the master's discount follows the steps a pick held, not the picks
    master_batch: int = 32  # picks in the master's batch
    master_replay: int = 50_000  # picks kept
    master_copy_every: int = 500  # updates between copies to the master's target
    explore_share: float = 0.1  # share of training over which the master's ε falls from 1
    explore_last: float = 0.02  # the ε it ends with
    hindsight_share: float = 0.8  # of a batch that hindsight relabels, on tasks with goals; 0: no hindsight
    goal_random_share: float = 0.0  # of all later steps on tasks with goals: uniformly random actions too
    goal_reward_shift: float = 1.0  # added to the rewards of tasks with hindsight: 0 and 1 instead of -1 and 0
    end_on_success: bool = True  # an episode that succeeds ends, on tasks with goals
    periods: tuple[int, ...] = (5,)  # steps a pick may hold; the master chooses where there are several
    dial: bool = False  # one agent learns a range of coefficients, and its master goes by the one it pays
    dial_reach: tuple[float, float] = (1 / 30, 10.0)  # its ends where none are given, times the task's coefficient
    price_picks: bool = False  # the master pays for its own inference too
    known_prices: bool = False  # a dial's master is told what its choices cost, and learns what they earn alone
    sample_master: bool = (
        True  # draw from softmax of the master's values when evaluating, on tasks where the paper does
    )
    environments: int = 1  # of each agent; a chunk is shared out among them
    chunk: int = 64  # steps collected, valued, and updates made, at a time; 1 is the paper's own schedule

    @property
    def can_know_prices(self) -> bool:
        """Whether it has what known prices need: a dial, and costs that add up step by step to a finite sum."""
        return self.dial and self.discount_by_step and self.master_discount < 1

    @property
    def sees_position(self) -> bool:
        """Whether the master that is deployed has the dial's position among its inputs."""
        return self.dial and not self.known_prices


PAPER = Recipe()

# Critics cost nothing at deployment, and wide ones teach narrow gears far better than critics of a gear's own width.
# The faster gears are worth about 200 points to walker-stand at 100,000 steps. On cartpole-swingup neither they nor the
# master's larger batch make a difference that stands out of the noise (docs/recipes.md).
MODERN = replace(
    PAPER,
    name="modern",
    learning_rate=1e-3,
    critic_units=128,
    critic_activation="relu",
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

# What public methods suggest, to be taken apart by benchmarks/ablate.py.
TRIAL = replace(
    MODERN,
    name="trial",
    learning_rate=3e-4,
    critic_units=256,
    critic_normalise=True,
    actor_every=2,
    target_entropy=0.5,
    first_alpha=0.01,
    normalise_observations=True,
    scale_rewards=True,
    held_noise=True,
    random_steps=5_000,
)

RECIPES = {recipe.name: recipe for recipe in (MODERN, PAPER, TRIAL)}

FETCH: dict[str, Any] = {"discount": 0.95, "target_rate": 0.02, "random_steps": 5_000}

# What the modern recipe sets by task. MountainCar's goal lies beyond what independent noise reaches.
MODERN_BY_TASK: dict[str, dict[str, Any]] = {
    "MountainCarContinuous-v0": {
        "discount": 0.999,
        "learning_rate": 3e-4,
        "noise_hold": 32,
        "random_steps": 10_000,
    },
    "Swimmer-v3": {"discount": 0.999},
    "BipedalWalker-v3": {"discount": 0.98},
    "FetchPush-v1": FETCH,
    "FetchSlide-v1": FETCH,
    "FetchPickAndPlace-v1": FETCH,
}


def find(name: str, task: str) -> Recipe:
    """The recipe called `name`, with what it sets for the task."""
    if name not in RECIPES:
        raise LowgearError(f"unknown recipe {name!r}: write {' or '.join(RECIPES)}")
    settings = MODERN_BY_TASK.get(task, {}) if name != "paper" else {}
    return replace(RECIPES[name], **settings)
