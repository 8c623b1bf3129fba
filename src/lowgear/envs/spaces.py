"""Spaces as the adapters read them: bounds of actions, observations laid out flat; what does not fit is refused.

Everything here speaks of one environment by name, so that an error tells the person which one is meant.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.envs.protocol import EnvSpec
from lowgear.policy.controller import ActionBounds

# Gymnasium's convention, and the order of our layout.
GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
ANY_LIMIT = 10_000  # steps of an episode, where an environment made by its name sets no limit
SUCCESS_KEYS = ("is_success", "success")
UNBOUNDED = 1e9  # dm_control writes 1e10 for "no limit"


def action_bounds(name: str, low: Any, high: Any, shape: Sequence[int], dtype: Any) -> ActionBounds:
    """The bounds as flat rows; an unbounded, empty or integer Box is an error, and so is one without a choice."""
    if len(shape) != 1 or shape[0] < 1:
        raise LowgearError(f"{name} has actions of shape {tuple(shape)}; Lowgear needs a flat Box: flatten them")
    if not np.issubdtype(dtype, np.floating):
        raise LowgearError(f"{name} has actions of type {np.dtype(dtype).name}; Lowgear needs a Box of floats")
    lows = np.broadcast_to(np.asarray(low, np.float64), shape)
    highs = np.broadcast_to(np.asarray(high, np.float64), shape)
    for number, (lower, higher) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        if not (abs(lower) < UNBOUNDED and abs(higher) < UNBOUNDED):
            raise LowgearError(
                f"{name} has an unbounded action space, action {number} is in [{lower:g}, {higher:g}]: "
                "give its Box finite bounds, in a wrapper if it is not yours"
            )
        if not lower < higher:
            raise LowgearError(
                f"{name} leaves action {number} no choice, it is in [{lower:g}, {higher:g}]: give its Box a low below "
                "its high, or leave the action out in a wrapper"
            )
    return ActionBounds(lows, highs, np.dtype(dtype))


def not_box(name: str, what: str, space: Any) -> LowgearError:
    """The error for an action or observation space that is not a Box."""
    remedy = "wrap it so that its actions are a Box" if what == "action" else "wrap it in FlattenObservation"
    return LowgearError(f"{name} has the {what} space {one_line(space)}; Lowgear needs a Box: {remedy}")


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


def nearest(name: str, known: Iterable[str]) -> str:
    """What a person may have meant, or nothing."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else ""


def one_line(value: Any) -> str:
    """A text that may have several, for an error."""
    return " ".join(str(value).split())
