"""Another library's policy as one of ours: a single frozen gear that always acts."""

from typing import NamedTuple

import numpy as np

from lowgear.policy.arrays import DoubleArray, FloatArray
from lowgear.policy.fields import BadField
from lowgear.policy.file import Policy
from lowgear.policy.foreign.network import ForeignPolicy, bounded
from lowgear.policy.gears import FROZEN, Gear
from lowgear.policy.header import IMPORTED, PolicyHeader
from lowgear.policy.networks import Clip, Weights


class Place(NamedTuple):
    """Where a policy is to act, as its environment says."""

    task: str
    layout: tuple[tuple[str, int], ...]
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    observation_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()

    @property
    def obs_dim(self) -> int:
        """Numbers of an observation."""
        return sum(size for _, size in self.layout)


def to_policy(foreign: ForeignPolicy, place: Place) -> Policy:
    """The policy that acts there; one for other observations or actions raises `BadField`."""
    if foreign.obs_dim != place.obs_dim:
        raise BadField(f"it sees {foreign.obs_dim} numbers, but {place.task} shows {place.obs_dim}")
    found = bounded(foreign, np.array(place.action_low), np.array(place.action_high))
    low, high = found.observation_low, found.observation_high
    clip = None if low is None or high is None else Clip(_float32(low), _float32(high))
    layers = [(_float32(weight), _float32(bias)) for weight, bias in found.layers]
    gear = Gear(FROZEN, found.hidden, found.activation, found.squash, 1, clip is not None, found.source[:100])
    header = PolicyHeader(
        task=place.task,
        recipe=IMPORTED,
        variant=IMPORTED,
        seed=0,
        cost_coefficient=0.0,
        dial=None,
        steps=0,
        obs_dim=found.obs_dim,
        act_dim=found.act_dim,
        layout=place.layout,
        action_low=place.action_low,
        action_high=place.action_high,
        gears=(gear,),
        master_units=0,
        periods=(1,),
        activation="tanh",
        forced_gear=0,
        boltzmann=False,
        hindsight=False,
        observation_names=place.observation_names,
        action_names=place.action_names,
    )
    return Policy(header, Weights((layers,), (), None, (clip,) if clip else ()))


def _float32(values: DoubleArray) -> FloatArray:
    """As a population of one."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(values, np.float32)[None]
    if not np.isfinite(found).all():
        raise BadField("it holds numbers that are too large")
    return found
