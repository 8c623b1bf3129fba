"""What every reader of another library's file gives: a deterministic MLP policy on raw observations."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lowgear.policy import fields
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.records import numbers

Layer = tuple[DoubleArray, DoubleArray]  # weight (in, out), bias (out)

MOST_LAYERS = 17  # of a network, the last counted
MOST_UNITS = 2**20
ACTIVATIONS = {  # by PyTorch's and JAX's names
    "Tanh": "tanh",
    "ReLU": "relu",
    "ELU": "elu",
    "SiLU": "silu",
    "LeakyReLU": "leaky_relu",
    "tanh": "tanh",
    "relu": "relu",
    "elu": "elu",
    "silu": "silu",
    "swish": "silu",
    "leaky_relu": "leaky_relu",
}
BOUNDS_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Statistics:
    """How observations are normalised before the network sees them."""

    mean: DoubleArray
    std: DoubleArray
    clip: float | None  # of what is normalised


@dataclass(frozen=True)
class ForeignPolicy:
    """A deterministic MLP policy as its file has it."""

    source: str  # "Stable-Baselines3 PPO 2.7.0"
    layers: tuple[Layer, ...]  # the last gives the mean alone
    activation: str  # of the hidden layers
    squash: str  # "tanh": its outputs, through tanh, are actions in [-1, 1]; "clip": they are in the actions' own units
    action_low: DoubleArray | None = None  # where the file says so
    action_high: DoubleArray | None = None
    observation_low: DoubleArray | None = None  # what raw observations are clipped to
    observation_high: DoubleArray | None = None
    notes: tuple[str, ...] = ()  # what a person should know
    normalised: bool = False
    kind: str = ""  # the reader: one of `foreign.KINDS`

    @property
    def obs_dim(self) -> int:
        """Numbers of an observation."""
        return int(self.layers[0][0].shape[0])

    @property
    def act_dim(self) -> int:
        """Numbers of an action."""
        return int(self.layers[-1][1].shape[0])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(int(bias.shape[0]) for _, bias in self.layers[:-1])


def layer(what: str, weight: Any, bias: Any, transposed: bool) -> Layer:
    """A layer from the arrays of a file; PyTorch's weights are (out, in), which is `transposed`."""
    found, added = numbers(f"the weight of {what}", weight), numbers(f"the bias of {what}", bias)
    if found.ndim != 2 or added.ndim != 1:
        raise BadField(f"{what} is no linear layer: its weight has {found.ndim} axes and its bias {added.ndim}")
    return (found.T if transposed else found), added


def check_layers(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Layers of which each takes what the one before gives."""
    if not 1 <= len(layers) <= MOST_LAYERS:
        raise BadField(f"it has {len(layers)} layers, not 1 to {MOST_LAYERS}")
    for number, (weight, bias) in enumerate(layers):
        if not all(1 <= axis <= MOST_UNITS for axis in weight.shape) or weight.shape[1] != bias.shape[0]:
            raise BadField(f"layer {number} has a weight of {weight.shape} and a bias of {bias.shape}")
    for number, ((weight, _), (after, _)) in enumerate(itertools.pairwise(layers)):
        if weight.shape[1] != after.shape[0]:
            raise BadField(f"layer {number} gives {weight.shape[1]} numbers and the next takes {after.shape[0]}")
    return tuple(layers)


def numbered_layers(tensors: Mapping[str, Any], prefix: str) -> list[Layer]:
    """The linear layers of a PyTorch `Sequential` in which each is followed by an activation: 0, 2, 4, ..."""
    keys = [key.removeprefix(prefix) for key in tensors if key.startswith(prefix)]
    count = len(keys) // 2
    wanted = {f"{2 * number}.{part}" for number in range(count) for part in ("weight", "bias")}
    strange = sorted(set(keys) - wanted)
    if strange:
        raise BadField(
            f"{shown(prefix + strange[0])} is none of the linear layers and activations that can be imported"
        )
    return [
        layer(f"{prefix}{2 * n}", tensors[f"{prefix}{2 * n}.weight"], tensors[f"{prefix}{2 * n}.bias"], True)
        for n in range(count)
    ]


def named_layer(tensors: Mapping[str, Any], name: str) -> Layer:
    """One linear layer of PyTorch."""
    return layer(name, fields.entry(tensors, f"{name}.weight"), fields.entry(tensors, f"{name}.bias"), True)


def activation(name: str) -> str:
    """Ours, by a library's name for it."""
    if name not in ACTIVATIONS:
        known = "Tanh, ReLU, ELU, SiLU and LeakyReLU"
        raise BadField(f"its activation is {shown(name)}; {known} can be imported")
    return ACTIVATIONS[name]


def normalised(policy: ForeignPolicy, statistics: Statistics) -> ForeignPolicy:
    """The policy with the normalisation of its observations in its first layer."""
    if statistics.mean.shape != (policy.obs_dim,):
        raise BadField(
            f"the statistics are of {statistics.mean.size} numbers, but the policy sees {policy.obs_dim}: give its own"
        )
    if policy.observation_low is not None:
        raise BadField("the policy clips its observations already: leave --normalise out")
    mean, std = statistics.mean, statistics.std
    weight, bias = policy.layers[0]
    first = weight / std[:, None], bias - (mean / std) @ weight
    clip = statistics.clip
    low, high = (None, None) if clip is None else (mean - clip * std, mean + clip * std)
    return replace(
        policy,
        layers=(first, *policy.layers[1:]),
        observation_low=low,
        observation_high=high,
        normalised=True,
        notes=tuple(note for note in policy.notes if "--normalise" not in note),
    )


def bounded(policy: ForeignPolicy, low: DoubleArray, high: DoubleArray) -> ForeignPolicy:
    """The policy of an environment with these bounds of actions: what it gives is in [-1, 1].

    A mean in the actions' own units is scaled in the last layer. Bounds that the file has must be these.
    """
    if policy.act_dim != low.size:
        raise BadField(f"its actions have {policy.act_dim} numbers, but the environment's {low.size}")
    for name, ours, theirs in (("low", policy.action_low, low), ("high", policy.action_high, high)):
        if ours is not None and not np.allclose(ours, theirs, BOUNDS_TOLERANCE, BOUNDS_TOLERANCE):
            number = int(np.argmax(np.abs(ours - theirs)))
            raise BadField(
                f"its actions are bounded by {ours[number]:g} ({name}, number {number}), the environment's by "
                f"{theirs[number]:g}: it is of another environment"
            )
    layers = policy.layers
    if policy.squash == "clip":
        half, middle = (high - low) / 2, (high + low) / 2
        weight, bias = layers[-1]
        layers = (*layers[:-1], (weight / half, (bias - middle) / half))
    return replace(policy, layers=layers, action_low=low, action_high=high)
