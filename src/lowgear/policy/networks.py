"""The arrays that act, and their forward pass in NumPy: every array has a leading axis of P agents."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lowgear import LowgearError
from lowgear.policy.arrays import FloatArray
from lowgear.policy.gears import Gear

Layers = Sequence[tuple[FloatArray, FloatArray]]  # weight (P, in, out), bias (P, out)

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
LEAKY_SLOPE = np.float32(0.01)


class Tariff(NamedTuple):
    """What choices cost, where the master's network holds only their advantages."""

    low: FloatArray  # (P,): the coefficient at the dial's low end
    high: FloatArray  # (P,): at its high end
    each: FloatArray  # (P, choices): at a coefficient of 1


class Clip(NamedTuple):
    """Bounds that a frozen gear clips observations to, (P, obs) each."""

    low: FloatArray
    high: FloatArray


class Weights(NamedTuple):
    """The networks that act: the gears', cheapest first, and the master's. A gear that holds has no layers."""

    gears: tuple[Layers, ...]
    master: Layers  # none where a single gear always acts
    tariff: Tariff | None = None  # None: the master's network has learned what its choices cost
    clips: tuple[Clip | None, ...] = ()  # of each gear; none at all where no gear clips


def _elu(x: FloatArray) -> FloatArray:
    below: FloatArray = np.expm1(np.minimum(x, 0))
    return np.where(x > 0, x, below)


def _silu(x: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(x))  # never overflows
    found: FloatArray = x * np.where(x >= 0, np.float32(1), small) / (1 + small)
    return found


def _tanh(x: FloatArray) -> FloatArray:
    return np.tanh(x, out=x)


def _relu(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0, out=x)


def _leaky_relu(x: FloatArray) -> FloatArray:
    found: FloatArray = np.maximum(x, LEAKY_SLOPE * x, out=x)
    return found


ACTIVATE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "tanh": _tanh,
    "relu": _relu,
    "elu": _elu,
    "silu": _silu,
    "leaky_relu": _leaky_relu,
}  # each may write over what it is given


def mlp(layers: Layers, x: FloatArray, activation: str) -> FloatArray:
    """Forward pass of P networks on (P, N, in); the last layer is linear."""
    activate = ACTIVATE[activation]
    for weight, bias in layers[:-1]:
        x = x @ weight
        x += bias[:, None, :]
        x = activate(x)
    weight, bias = layers[-1]
    x = x @ weight
    x += bias[:, None, :]
    return x


def squash(head: FloatArray, noise: FloatArray | None = None) -> FloatArray:
    """Actions from an actor's mean and log standard deviation, side by side in the last axis."""
    act_dim = head.shape[-1] // 2
    mean = head[..., :act_dim]
    if noise is None:
        return np.tanh(mean)
    log_std = np.maximum(np.minimum(head[..., act_dim:], LOG_STD_MAX), LOG_STD_MIN)  # in less time than np.clip
    return np.tanh(mean + np.exp(log_std) * noise)


def frozen_action(
    gear: Gear, layers: Layers, clip: Clip | None, observation: FloatArray, activation: str
) -> FloatArray:
    """What a frozen gear does, in [-1, 1]; `activation` is its policy's, where it has none of its own."""
    if clip is not None:
        observation = np.minimum(np.maximum(observation, clip.low[:, None, :]), clip.high[:, None, :])
    head = mlp(layers, observation, gear.activation or activation)
    mean = head[..., : head.shape[-1] // gear.heads]
    if gear.squash == "tanh":
        return np.tanh(mean)
    return np.minimum(np.maximum(mean, np.float32(-1)), np.float32(1))


def stack(policies: Sequence[Weights]) -> Weights:
    """Several agents' weights of the same shapes as one population; one's own as they are."""
    if len(policies) == 1:
        return policies[0]

    def join(parts: Sequence[Layers]) -> Layers:
        return [
            (np.concatenate([w for w, _ in layer]), np.concatenate([b for _, b in layer]))
            for layer in zip(*parts, strict=True)
        ]

    count, tariffs = len(policies[0].gears), [p.tariff for p in policies if p.tariff is not None]
    if len(tariffs) not in (0, len(policies)):
        raise LowgearError("policies whose masters know prices and policies whose masters learn them do not mix")
    clips = [[clip for clip in each if clip is not None] for each in zip(*(p.clips for p in policies), strict=True)]
    return Weights(
        tuple(join([p.gears[g] for p in policies]) for g in range(count)),
        join([p.master for p in policies]),
        Tariff(*map(np.concatenate, zip(*tariffs, strict=True))) if tariffs else None,
        tuple(Clip(*map(np.concatenate, zip(*each, strict=True))) if each else None for each in clips),
    )


def leaves_of(weights: Weights) -> list[FloatArray]:
    """Every array, in one order."""
    networks = (*weights.gears, weights.master)
    bounds = [bound for clip in weights.clips if clip is not None for bound in clip]
    return [array for layers in networks for layer in layers for array in layer] + list(weights.tariff or ()) + bounds


def with_leaves(weights: Weights, leaves: Sequence[FloatArray]) -> Weights:
    """The same networks with other arrays, in the order of `leaves_of`."""
    arrays = iter(leaves)
    *gears, master = ([(next(arrays), next(arrays)) for _ in layers] for layers in (*weights.gears, weights.master))
    tariff = None if weights.tariff is None else Tariff(next(arrays), next(arrays), next(arrays))
    clips = tuple(None if clip is None else Clip(next(arrays), next(arrays)) for clip in weights.clips)
    return Weights(tuple(gears), master, tariff, clips)


def doubled(weights: Weights) -> Weights:
    """The same numbers in double precision."""
    return with_leaves(weights, [leaf.astype(np.float64) for leaf in leaves_of(weights)])


def take(weights: Weights, which: int | slice) -> Weights:
    """Some agents of a population, or one as a population of one."""
    agents = which if isinstance(which, slice) else slice(which, which + 1)

    def part(layers: Layers) -> Layers:
        return [(weight[agents], bias[agents]) for weight, bias in layers]

    tariff = None if weights.tariff is None else Tariff(*(values[agents] for values in weights.tariff))
    clips = tuple(None if clip is None else Clip(*(bound[agents] for bound in clip)) for clip in weights.clips)
    return Weights(tuple(part(layers) for layers in weights.gears), part(weights.master), tariff, clips)
