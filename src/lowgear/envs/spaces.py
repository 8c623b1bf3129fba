"""What the adapters share: actions scaled to the bounds, observations laid out flat, and bad values refused.

Everything here speaks of one environment by name, so that an error tells the person which one is meant.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.envs.protocol import EnvSpec
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import ActionBounds

# Gymnasium's convention, and the order of our layout.
GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
SUCCESS_KEYS = ("is_success", "success")
UNBOUNDED = 1e9  # dm_control writes 1e10 for "no limit"
MAX_SEED = 2**31 - 1  # EnvPool's seeds are int32


def action_bounds(name: str, low: Any, high: Any, shape: Sequence[int], dtype: Any) -> ActionBounds:
    """The bounds as flat rows; an unbounded, empty or integer Box is an error."""
    if len(shape) != 1 or shape[0] < 1:
        raise LowgearError(f"{name} has actions of shape {tuple(shape)}; Lowgear needs a flat Box: flatten them")
    if not np.issubdtype(dtype, np.floating):
        raise LowgearError(f"{name} has actions of type {np.dtype(dtype).name}; Lowgear needs a Box of floats")
    lows = np.broadcast_to(np.asarray(low, np.float64), shape)
    highs = np.broadcast_to(np.asarray(high, np.float64), shape)
    if not (np.abs(lows) < UNBOUNDED).all() or not (np.abs(highs) < UNBOUNDED).all():
        raise LowgearError(
            f"{name} has an unbounded action space [{lows.min():g}, {highs.max():g}]: "
            "give its Box finite bounds, in a wrapper if it is not yours"
        )
    return ActionBounds(lows, highs, np.dtype(dtype))


def not_box(name: str, what: str, space: Any) -> LowgearError:
    """The error for an action or observation space that is not a Box."""
    remedy = "wrap it so that its actions are a Box" if what == "action" else "wrap it in FlattenObservation"
    return LowgearError(f"{name} has the {what} space {_one_line(space)}; Lowgear needs a Box: {remedy}")


def field_size(name: str, key: str, shape: Sequence[int], dtype: Any) -> int:
    """How many numbers one field of an observation is; an image is an error."""
    if len(shape) > 2 or (len(shape) == 2 and np.dtype(dtype) == np.uint8):
        field = f"{key!r} of " if key else ""
        raise LowgearError(
            f"{field}{name} is an image of shape {tuple(shape)}; Lowgear learns from flat state observations"
        )
    return int(np.prod(shape, dtype=np.int64))


def env_spec(
    name: str,
    bounds: ActionBounds,
    layout: Sequence[tuple[str, int]],
    max_episode_steps: int | None,
    has_success: bool,
) -> EnvSpec:
    """The spec of an environment whose flat observation is `layout`; goals are where Gymnasium's keys say."""
    stop, slices = 0, {}
    for key, size in layout:
        slices[key] = (stop, stop + size)
        stop += size
    if stop == 0:
        raise LowgearError(f"{name} has an empty observation; Lowgear needs at least one number to act on")
    has_goals = all(key in slices for key in GOAL_KEYS)
    return EnvSpec(
        name=name,
        obs_dim=stop,
        act_dim=len(bounds.low),
        layout=tuple(layout),
        max_episode_steps=max_episode_steps,
        action_low=tuple(bounds.low.tolist()),
        action_high=tuple(bounds.high.tolist()),
        achieved_goal=slices["achieved_goal"] if has_goals else None,
        desired_goal=slices["desired_goal"] if has_goals else None,
        has_success=has_success,
    )


def goals_last(keys: Sequence[str]) -> list[str]:
    """The keys in their own order, except that a goal environment's are those of GOAL_KEYS."""
    return list(GOAL_KEYS) if sorted(keys) == sorted(GOAL_KEYS) else list(keys)


def check_seeds(seeds: Sequence[int], num_envs: int) -> list[int]:
    """One seed for each environment, as plain ints that every simulator accepts."""
    if len(seeds) != num_envs:
        raise LowgearError(f"{len(seeds)} seeds for {num_envs} environments; give one for each")
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            raise LowgearError(f"seed {seed} is outside 0 to {MAX_SEED}; choose one within")
    return [int(seed) for seed in seeds]


def check_num_envs(num_envs: int) -> int:
    """The number of environments, if there is at least one."""
    if num_envs < 1:
        raise LowgearError(f"{num_envs} environments cannot be stepped; ask for 1 or more")
    return num_envs


def check_shape(spec: EnvSpec, actions: FloatArray, num_envs: int) -> None:
    """Refuse actions that NumPy would silently broadcast to the wrong environments."""
    if actions.shape != (num_envs, spec.act_dim):
        raise LowgearError(
            f"actions of shape {actions.shape} for {num_envs} environments of {spec.name}; "
            f"give ({num_envs}, {spec.act_dim})"
        )


def all_finite(array: FloatArray) -> bool:
    """Whether no number is NaN or infinite; written for speed, because it runs at every step."""
    return bool(np.count_nonzero(np.isfinite(array)) == array.size)


def not_finite(
    spec: EnvSpec, steps: int, observation: FloatArray, reward: FloatArray | None, actions: FloatArray | None
) -> LowgearError:
    """The error that says which number was not finite; actions first, because what goes in comes out."""
    if actions is not None and not all_finite(actions):
        return LowgearError(
            f"{spec.name} was given {_first_bad(actions)} as an action at step {steps}: "
            "the policy diverged; lower its learning rate"
        )
    if reward is not None and not all_finite(reward):
        what, value = "reward", _first_bad(reward)
    else:
        column = int(np.flatnonzero(~np.isfinite(observation).all(axis=0))[0])
        what, value = _field_at(spec, column), _first_bad(observation)
    return LowgearError(f"{spec.name} returned {value} in its {what} at step {steps}: fix the environment")


def raised(name: str, doing: str, error: Exception) -> LowgearError:
    """The error for an environment that raised, with its own message on one line."""
    return LowgearError(f"{name} raised {type(error).__name__} {doing}: {_one_line(error) or 'no message'}")


def _field_at(spec: EnvSpec, column: int) -> str:
    stop = 0
    for key, size in spec.layout:
        stop += size
        if column < stop:
            index = column - (stop - size)
            return f"observation {key!r}[{index}]" if key else f"observation[{index}]"
    raise IndexError(column)


def _first_bad(array: FloatArray) -> str:
    return str(array[~np.isfinite(array)][0])


def _one_line(value: Any) -> str:
    return " ".join(str(value).split())
