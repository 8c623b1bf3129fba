"""The one face that every batch of environments shows.

Actions are in [-1, 1] and scaled to the bounds of the space. Observations are flat float32 rows: a dict is laid out key
by key in the order of `EnvSpec.layout`. A step that ends an episode already carries the first observation of the next
one, so every step is a transition and no auto-reset step is ever seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lowgear.envs.goals import GoalRule
from lowgear.policy.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class EnvSpec:
    """Sizes and layout of one environment."""

    name: str
    obs_dim: int
    act_dim: int
    layout: tuple[tuple[str, int], ...]  # (key, size) in the order of the flat rows; one key "" for a Box
    max_episode_steps: int | None  # None where the environment sets no time limit
    action_low: tuple[float, ...]  # the space's own bounds, which [-1, 1] is scaled to
    action_high: tuple[float, ...]
    achieved_goal: tuple[int, int] | None = None  # [start, stop) in the flat rows, where the task has goals
    desired_goal: tuple[int, int] | None = None
    has_success: bool = False


class Step(NamedTuple):
    """What one batched step gave; every array has the environments on its first axis."""

    observation: FloatArray  # what to act on next: after an end, the first observation of the next episode
    reward: FloatArray
    terminated: BoolArray  # a real end: nothing follows
    truncated: BoolArray  # a time limit: the episode could have gone on; never set together with terminated
    last_observation: FloatArray  # where the action led; differs from `observation` only where an episode ended
    success: BoolArray | None  # None where the task has no notion of it


OnBad = Callable[[int, str], None]  # an environment's number, and what was wrong


class BatchEnv(Protocol):
    """N environments stepped together."""

    spec: EnvSpec
    num_envs: int
    goal_rule: GoalRule | None  # what any goal would pay; None where the task has no goals, or nobody can tell
    on_bad: "OnBad | None"  # hears of environments that fail, whose numbers then count as 0; None: they are errors
    retired: set[int]  # environments that are stepped no more, where that can be had: they give zeros
    limit_s: float  # seconds that an environment may take to return; 0: any

    def reset(self, seeds: Sequence[int]) -> FloatArray:
        """Start every environment anew, environment i from `seeds[i]` alone, and return the first observations."""
        ...

    def step(self, actions: FloatArray) -> Step:
        """Take one step everywhere with `actions` in [-1, 1], shape (num_envs, act_dim).

        The returned arrays belong to the caller: a later step does not change them.
        """
        ...

    def step_bare(self, actions: FloatArray) -> None:
        """A step without what an adapter adds to it where that can be had: for measurements."""
        ...

    def split(self, sizes: Sequence[int]) -> "Sequence[BatchEnv]":
        """The same environments as batches of these sizes for other processes, which pickle them; itself if it can't.

        Only before the first reset.
        """
        ...

    def close(self) -> None:
        """Free what the environments hold."""
        ...
