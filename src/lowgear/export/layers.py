"""The networks of an export: which layers it holds, in float32 or int8, and the policy that they amount to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.networks import Clip, Layers

INT8_MAX = 127


class ExportedLayer(NamedTuple):
    """One layer as it is written down."""

    weight: npt.NDArray[Any]  # (inputs, outputs) of float32, or of int8 with `scale`
    bias: FloatArray
    scale: FloatArray | None  # (outputs,): what one step of int8 is worth

    @property
    def dequantised(self) -> FloatArray:
        """The float weights that the layer stands for."""
        if self.scale is None:
            return np.asarray(self.weight, np.float32)
        weight: FloatArray = self.weight.astype(np.float32) * self.scale
        return weight


class ExportedNetworks(NamedTuple):
    """What a controller runs: all gears that compute and the master, or a forced gear alone."""

    gears: dict[int, list[ExportedLayer]]
    master: list[ExportedLayer] | None
    clips: dict[int, Clip]  # of gears that clip observations first


def activation_of(header: PolicyHeader, gear: int) -> str:
    """Of a gear's hidden layers."""
    return header.gears[gear].activation or header.activation


def holds(header: PolicyHeader) -> bool:
    """Whether an export keeps the last action: where its master can pick a gear that repeats it."""
    return header.sees_action and header.forced_gear is None


def exported_networks(policy: Policy, weights: str = "float32") -> ExportedNetworks:
    """With float32 or int8 weights; actors without the half of their last layer that only training needs.

    First layers stay in float32: observations are normalised in them, so that what hardly varies has large weights and
    a bias that takes most of it away again, and a step of int8 would be worth more than what is left.
    """
    header = policy.header
    computing = [number for number, gear in enumerate(header.gears) if gear.computes]
    numbers = computing if header.forced_gear is None else [header.forced_gear]
    gears = {gear: _export_layers(policy.weights.gears[gear], weights, header.act_dim) for gear in numbers}
    clips = {gear: clip for gear, clip in enumerate(policy.weights.clips) if clip is not None and gear in gears}
    return ExportedNetworks(
        gears, _export_layers(policy.weights.master, weights) if header.forced_gear is None else None, clips
    )


def quantise(policy: Policy, weights: str) -> Policy:
    """The policy with the weights that an export of this kind really has."""
    if weights == "float32":
        return policy
    networks, old = exported_networks(policy, weights), policy.weights
    gears = tuple(_dequantise(layers, networks.gears.get(gear)) for gear, layers in enumerate(old.gears))
    return replace(policy, weights=old._replace(gears=gears, master=_dequantise(old.master, networks.master)))


def _dequantise(layers: Layers, exported: Sequence[ExportedLayer] | None) -> Layers:
    """Layers with the weights of their export; as they are where it has none of them."""
    found = [(weight.copy(), bias) for weight, bias in layers]
    for (weight, _), one in zip(found, exported or (), strict=False):
        weight[0, :, : one.weight.shape[1]] = one.dequantised
    return found


def _export_layers(layers: Layers, weights: str, outputs: int | None = None) -> list[ExportedLayer]:
    """Layers of one agent; of the last one only the first `outputs`, if given."""
    pairs = [(weight[0], bias[0]) for weight, bias in layers]
    pairs[-1] = (pairs[-1][0][:, :outputs], pairs[-1][1][:outputs])
    return [_export_layer(*pair, weights if place else "float32") for place, pair in enumerate(pairs)]


def _export_layer(weight: FloatArray, bias: FloatArray, weights: str) -> ExportedLayer:
    """int8 has a scale for each output, so that the largest weight of each is 127 steps."""
    if weights == "float32":
        return ExportedLayer(weight, bias, None)
    largest = np.abs(weight).max(axis=0)
    scale = np.where(largest > 0, largest / INT8_MAX, 1.0).astype(np.float32)
    return ExportedLayer(np.clip(np.rint(weight / scale), -INT8_MAX, INT8_MAX).astype(np.int8), bias, scale)
