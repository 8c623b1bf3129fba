"""Gears that are not trained: whether they fit the environment, and what they add to the weights that act."""

from typing import NamedTuple

import numpy as np

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.envs.protocol import EnvSpec
from lowgear.policy.arrays import FloatArray
from lowgear.policy.gears import FROZEN
from lowgear.policy.header import IMPORTED, PolicyHeader
from lowgear.policy.networks import Clip, Layers


def check_frozen(config: RunConfig, spec: EnvSpec) -> None:
    """Refuse frozen policies that were made for other environments."""
    for one in config.frozen:
        check_fits(one.read.header, config.task, spec)


def check_fits(header: PolicyHeader, task: str, spec: EnvSpec) -> None:
    """Refuse a policy that was made for another environment than the task's."""
    what = f"the frozen policy of {header.task}"
    if header.variant != IMPORTED and header.task != task:
        raise LowgearError(f"{what} is of another task than {task}: freeze one that was trained on it")
    if (header.obs_dim, header.act_dim) != (spec.obs_dim, spec.act_dim):
        raise LowgearError(
            f"{what} has {header.obs_dim} observations and {header.act_dim} actions, {task} has "
            f"{spec.obs_dim} and {spec.act_dim}: freeze one that was trained on it"
        )
    for mine, own in ((header.action_low, spec.action_low), (header.action_high, spec.action_high)):
        if not np.allclose(mine, own, rtol=1e-6, atol=0):
            raise LowgearError(f"{what} has other bounds of actions than {task}: freeze one that was trained on it")


class FrozenWeights(NamedTuple):
    """What never learns, of all agents: by the gears' numbers."""

    layers: dict[int, Layers]
    clips: tuple[Clip | None, ...]  # none at all where no gear clips


def frozen_weights(config: RunConfig) -> FrozenWeights:
    """Of the frozen gears, the same for every agent; gears that hold have none."""
    agents = len(config.agents)

    def repeated(array: FloatArray) -> FloatArray:
        return np.repeat(array, agents, axis=0)

    numbers = [number for number, gear in enumerate(config.gears) if gear.kind == FROZEN]
    layers: dict[int, Layers] = {number: () for number, gear in enumerate(config.gears) if not gear.computes}
    clips: list[Clip | None] = [None] * len(config.gears)
    for number, one in zip(numbers, config.frozen, strict=True):
        weights = one.read.weights
        layers[number] = [(repeated(weight), repeated(bias)) for weight, bias in weights.gears[0]]
        if weights.clips and weights.clips[0] is not None:
            clips[number] = Clip(*map(repeated, weights.clips[0]))
    return FrozenWeights(layers, tuple(clips) if any(clip is not None for clip in clips) else ())
