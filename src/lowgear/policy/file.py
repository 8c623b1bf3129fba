"""A trained controller in a file that can't run code: safetensors with a JSON header."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from lowgear import LowgearError
from lowgear.policy.controller import ActionBounds
from lowgear.policy.fields import shown
from lowgear.policy.files import write_whole
from lowgear.policy.header import FORMAT, PolicyHeader, check_header, parse_header
from lowgear.policy.networks import Clip, Layers, Tariff, Weights
from lowgear.policy.tensors import TensorFile, open_tensors

__all__ = ["FORMAT", "Policy", "PolicyHeader", "load"]
ENTRY = "lowgear"  # of the metadata: the header
TARIFF = "master.tariff"
REMEDY = "train or copy it again"
MOST_BYTES = 1 << 30  # of a policy file
SOUND_OBSERVATION = 1e6  # no observation within it may overflow
LARGEST_SUM = 1e37  # a float32 ends at 3.4e38
LARGEST_COST = 1e15  # of a choice, at a coefficient of 1


@dataclass(frozen=True)
class Policy:
    """One trained controller: its header and its weights, a population of one."""

    header: PolicyHeader
    weights: Weights

    def __post_init__(self) -> None:
        assert self.header.known_prices == (self.weights.tariff is not None), (
            "a tariff, and only where prices are known"
        )

    @property
    def turns(self) -> bool:
        """Whether it has a dial to set."""
        return self.header.dial is not None and self.header.dial.turns

    @cached_property
    def bounds(self) -> ActionBounds:
        """Of its actions, in the environment's units."""
        return ActionBounds(np.array(self.header.action_low), np.array(self.header.action_high), np.dtype(np.float32))

    def at(self, coefficient: float) -> "Policy":
        """The same controller with its dial set to a coefficient; one it was not trained for is an error."""
        if self.header.dial is None or not self.turns:
            raise LowgearError(
                f"this policy knows one cost coefficient, {self.header.cost_coefficient:g}: it has no dial"
            )
        self.header.dial.position(coefficient)
        return replace(self, header=replace(self.header, cost_coefficient=float(coefficient)))

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all; a header that `load` would refuse is an error."""
        check_header(self.header, f"could not write {path}")
        tensors = {}
        for name, layers in _named(self.weights):
            for i, (weight, bias) in enumerate(layers):
                tensors[f"{name}.{i}.weight"] = np.ascontiguousarray(weight[0])
                tensors[f"{name}.{i}.bias"] = np.ascontiguousarray(bias[0])
        if self.weights.tariff is not None:
            tensors[TARIFF] = np.ascontiguousarray(self.weights.tariff.each[0])
        for gear, clip in enumerate(self.weights.clips):
            if clip is not None:
                tensors |= {
                    name: np.ascontiguousarray(bound[0]) for name, bound in zip(_bounds(gear), clip, strict=True)
                }
        write_whole(Path(path), save(tensors, {ENTRY: json.dumps(self.header.to_json())}))


def load(path: str | Path) -> Policy:
    """Read a policy file; a damaged, edited or hostile one is an error that names what is wrong.

    Nothing is read before what comes earlier is known to be sound: the list of tensors, the header, the tensors' types
    and shapes, their numbers.
    """
    path = Path(path)
    with open_tensors(path, "policy file", REMEDY, MOST_BYTES) as file:
        if ENTRY not in file.metadata:
            raise LowgearError(
                f"{path} is a safetensors file but not a Lowgear policy: its header has no {ENTRY!r} entry; {REMEDY}"
            )
        header = parse_header(path, file.metadata[ENTRY])
        _check_declared(file, header)
        return Policy(header, _read(file, header))


def _sizes(header: PolicyHeader) -> dict[str, tuple[int, ...]]:
    """Inputs, hidden widths and outputs of each network."""
    found = {f"gear{number}": gear.sizes(header.obs_dim, header.act_dim) for number, gear in enumerate(header.gears)}
    units = header.master_units
    return found | ({"master": (header.master_inputs, units, units, header.choices)} if units else {})


def _bounds(gear: int) -> tuple[str, str]:
    """The tensors that a gear clips observations to."""
    return f"gear{gear}.low", f"gear{gear}.high"


def _layers(name: str, sizes: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
    """Names and shapes of the weight and the bias of each layer."""
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        yield f"{name}.{i}.weight", (fan_in, fan_out), f"{name}.{i}.bias", (fan_out,)


def _check_declared(file: TensorFile, header: PolicyHeader) -> None:
    """Refuse a file that declares other tensors than its header asks for."""
    wanted: dict[str, tuple[int, ...]] = {}
    for name, sizes in _sizes(header).items():
        for weight, shape, bias, width in _layers(name, sizes):
            wanted |= {weight: shape, bias: width}
    if header.known_prices:
        wanted[TARIFF] = (header.choices,)
    elif TARIFF in file.declared:
        raise LowgearError(f"{file.path} holds {TARIFF}, but its header says that its master learned prices; {REMEDY}")
    for number, gear in enumerate(header.gears):
        if gear.clips:
            wanted |= dict.fromkeys(_bounds(number), (header.obs_dim,))
    for name, shape in wanted.items():
        file.require(name, np.float32, shape)
    extra = sorted(file.declared.keys() - wanted.keys())
    if extra:
        raise LowgearError(f"{file.path} holds a tensor that its header does not name: {shown(extra[0])}; {REMEDY}")


def _read(file: TensorFile, header: PolicyHeader) -> Weights:
    """The networks, once the file is known to declare what they need."""
    networks: dict[str, Layers] = {
        name: [
            (file.read_finite(weight, shape)[None], file.read_finite(bias, width)[None])
            for weight, shape, bias, width in _layers(name, sizes)
        ]
        for name, sizes in _sizes(header).items()
    }
    clips = tuple(_clip(file, number, header) if gear.clips else None for number, gear in enumerate(header.gears))
    for number, (gear, clip) in enumerate(zip(header.gears, clips, strict=True)):
        activation, name = gear.activation or header.activation, f"gear{number}"
        _check_reach(file, name, networks[name], activation, SOUND_OBSERVATION if clip is None else _reach(clip))
    master = networks.pop("master", ())
    _check_reach(file, "master", master, header.activation)
    tariff = _tariff(file, header) if header.known_prices else None
    return Weights(tuple(networks.values()), master, tariff, clips if any(clips) else ())


def _clip(file: TensorFile, gear: int, header: PolicyHeader) -> Clip:
    low, high = (file.read_finite(name, (header.obs_dim,))[None] for name in _bounds(gear))
    if not (low <= high).all():
        raise LowgearError(f"{file.path}: gear{gear}.low is above gear{gear}.high somewhere; {REMEDY}")
    return Clip(low, high)


def _reach(clip: Clip) -> float:
    """How large a sound observation can be once it is clipped."""
    ends = [np.clip(end, clip.low, clip.high) for end in (-SOUND_OBSERVATION, SOUND_OBSERVATION)]
    return float(np.abs(ends).max())


def _check_reach(
    file: TensorFile, name: str, layers: Layers, activation: str, reach: float = SOUND_OBSERVATION
) -> None:
    """Refuse weights by which a sound observation could overflow on its way to an action."""
    for weight, bias in layers:
        reach = float((np.abs(weight[0]).sum(axis=0, dtype=np.float64) * reach + np.abs(bias[0])).max())
        if reach > LARGEST_SUM:
            raise LowgearError(f"{file.path}: the weights of {name} are so large that sums overflow; {REMEDY}")
        reach = 1.0 if activation == "tanh" else max(reach, 1.0)


def _tariff(file: TensorFile, header: PolicyHeader) -> Tariff:
    assert header.dial is not None
    each = file.read(TARIFF, np.float32, (header.choices,))
    if not ((each >= 0) & (each <= LARGEST_COST)).all():
        raise LowgearError(f"{file.path}: {TARIFF} holds values that no choice can cost; {REMEDY}")
    return Tariff(np.array([header.dial.low], np.float32), np.array([header.dial.high], np.float32), each[None])


def _named(weights: Weights) -> list[tuple[str, Layers]]:
    return [*((f"gear{g}", layers) for g, layers in enumerate(weights.gears)), ("master", weights.master)]
