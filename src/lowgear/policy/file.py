"""A trained controller in a file that can't run code: safetensors with a JSON header."""

import itertools
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from lowgear import LowgearError
from lowgear.policy.controller import ActionBounds, Layers, Tariff, Weights
from lowgear.policy.cost import CostModel, cost_model
from lowgear.policy.dial import Dial
from lowgear.policy.files import read_tensors, write_whole

FORMAT = 3  # 2 had no tariffs: its masters learned prices
READS = (2, FORMAT)
TARIFF = "master.tariff"


@dataclass(frozen=True)
class PolicyHeader:
    """What a policy file says about itself."""

    task: str
    recipe: str
    variant: str
    seed: int
    cost_coefficient: float  # that it pays, or the dial's setting unless another is asked for
    dial: Dial | None  # None: it was trained for one coefficient, without a dial
    steps: int  # environment steps it was trained for
    obs_dim: int
    act_dim: int
    layout: tuple[tuple[str, int], ...]  # (key, size) in the order of the flat observation
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    gears: tuple[int, ...]  # hidden widths
    master_units: int
    periods: tuple[int, ...]  # steps a pick may hold, shortest first
    activation: str
    forced_gear: int | None  # small-only and large-only never ask the master
    boltzmann: bool  # how the paper evaluates this task
    hindsight: bool
    known_prices: bool = False  # a tariff is taken off its values, and the dial's position is not among its inputs
    cost_unit: float | None = None  # the coefficient whose dearest step costs what a typical step of the task earns
    format: int = FORMAT

    @property
    def sees_position(self) -> bool:
        """Whether the dial's position is an input of its master."""
        return self.dial is not None and not self.known_prices

    @property
    def relative_coefficient(self) -> float | None:
        """The cost coefficient measured against the task's rewards; None where their scale is not known."""
        return None if self.cost_unit is None else float(f"{self.cost_coefficient / self.cost_unit:.6g}")

    @property
    def master(self) -> str:
        """How the paper evaluates this task: one of `controller.MASTERS`."""
        return "boltzmann" if self.boltzmann else "greedy"

    @property
    def cost(self) -> CostModel:
        """What each part costs when it runs."""
        return cost_model(
            self.obs_dim,
            self.act_dim,
            self.gears,
            self.master_units,
            periods=len(self.periods),
            sees_position=self.sees_position,
        )


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

    @property
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
        """Write the file whole or not at all."""
        tensors = {}
        for name, layers in _named(self.weights):
            for i, (weight, bias) in enumerate(layers):
                tensors[f"{name}.{i}.weight"] = np.ascontiguousarray(weight[0])
                tensors[f"{name}.{i}.bias"] = np.ascontiguousarray(bias[0])
        if self.weights.tariff is not None:
            tensors[TARIFF] = np.ascontiguousarray(self.weights.tariff.each[0])
        write_whole(Path(path), save(tensors, {"lowgear": json.dumps(asdict(self.header))}))


def load(path: str | Path) -> Policy:
    """Read a policy file; a damaged or edited one is an error that names what is wrong."""
    path = Path(path)
    metadata, tensors = read_tensors(path, "policy file", "train or copy it again")
    if "lowgear" not in metadata:
        raise LowgearError(f"{path} is a safetensors file but not a Lowgear policy: its header has no 'lowgear' entry")
    header = _parse_header(path, metadata["lowgear"])
    return Policy(header, _build(path, header, tensors))


def _named(weights: Weights) -> list[tuple[str, Layers]]:
    return [*((f"gear{g}", layers) for g, layers in enumerate(weights.gears)), ("master", weights.master)]


def _parse_header(path: Path, text: str) -> PolicyHeader:
    try:
        raw: dict[str, Any] = json.loads(text)
        version = raw.get("format")
        if version not in READS:
            raise LowgearError(
                f"{path} has policy format {version}; this version of Lowgear reads {' and '.join(map(str, READS))}"
            )
        raw["layout"] = tuple((str(key), int(size)) for key, size in raw["layout"])
        for key in ("action_low", "action_high", "gears", "periods"):
            raw[key] = tuple(raw[key])
        if version == 2:
            raw["known_prices"] = False
        raw = {"cost_unit": None} | raw  # which earlier files do not have
        if raw["dial"] is not None:
            raw["dial"] = Dial(*raw["dial"])
        header = PolicyHeader(**{field.name: raw[field.name] for field in fields(PolicyHeader)})
        _check_header(header)
        return header
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LowgearError(f"{path} has a damaged policy header ({error!r}); train or copy it again") from None


def _check_header(header: PolicyHeader) -> None:
    """Refuse values that would run as something else than was trained."""
    sizes = (header.obs_dim, header.act_dim, header.master_units, *header.periods, *header.gears)
    forced, dial, unit = header.forced_gear, header.dial, header.cost_unit
    bounds = (*header.action_low, *header.action_high)
    problems = {
        "sizes": not all(type(size) is int and size >= 1 for size in sizes)
        or len(header.gears) < 2
        or not header.periods,
        "activation": header.activation not in ("tanh", "relu"),
        "forced_gear": forced is not None and (type(forced) is not int or not 0 <= forced < len(header.gears)),
        "layout": sum(size for _, size in header.layout) != header.obs_dim,
        "action bounds": not len(header.action_low) == len(header.action_high) == header.act_dim
        or not all(type(bound) is float for bound in bounds),
        "cost coefficient": not math.isfinite(header.cost_coefficient)
        or (dial is None and header.cost_coefficient < 0),
        "dial": dial is not None and not dial.holds(header.cost_coefficient),
        "known prices": type(header.known_prices) is not bool,
        "cost unit": unit is not None and not (type(unit) is float and 0 < unit < math.inf),
    }
    bad = [name for name, wrong in problems.items() if wrong]
    if bad:
        raise ValueError(f"its {bad[0]} cannot be right")


def _build(path: Path, header: PolicyHeader, tensors: dict[str, Any]) -> Weights:
    def layers(name: str, sizes: tuple[int, ...]) -> Layers:
        found = []
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            weight, bias = tensors.pop(f"{name}.{i}.weight", None), tensors.pop(f"{name}.{i}.bias", None)
            for part, tensor, shape in (("weight", weight, (fan_in, fan_out)), ("bias", bias, (fan_out,))):
                if tensor is None or tensor.shape != shape or tensor.dtype != np.float32:
                    got = "missing" if tensor is None else f"{tensor.dtype} {tensor.shape}"
                    raise LowgearError(f"{path}: {name}.{i}.{part} should be float32 {shape} but is {got}")
                if not np.isfinite(tensor).all():
                    raise LowgearError(f"{path}: {name}.{i}.{part} holds values that are not finite")
            found.append((weight[None], bias[None]))
        return found

    gears = tuple(
        layers(f"gear{g}", (header.obs_dim, units, units, 2 * header.act_dim)) for g, units in enumerate(header.gears)
    )
    inputs, choices = header.obs_dim + header.sees_position, len(header.gears) * len(header.periods)
    master = layers("master", (inputs, header.master_units, header.master_units, choices))
    tariff = _tariff(path, header, tensors.pop(TARIFF, None), choices) if header.known_prices else None
    if TARIFF in tensors:
        raise LowgearError(f"{path} holds {TARIFF}, but its header says that its master learned prices")
    if tensors:
        raise LowgearError(f"{path} holds a tensor that its header does not name: {sorted(tensors)[0]}")
    return Weights(gears, master, tariff)


def _tariff(path: Path, header: PolicyHeader, each: Any, choices: int) -> Tariff:
    if header.dial is None:
        raise LowgearError(f"{path}: its header says that prices are known, which only a policy with a dial can have")
    if each is None or each.shape != (choices,) or each.dtype != np.float32:
        got = "missing" if each is None else f"{each.dtype} {each.shape}"
        raise LowgearError(f"{path}: {TARIFF} should be float32 {(choices,)} but is {got}")
    if not (np.isfinite(each) & (each >= 0)).all():
        raise LowgearError(f"{path}: {TARIFF} holds values that no choice can cost")
    return Tariff(np.array([header.dial.low], np.float32), np.array([header.dial.high], np.float32), each[None])
