"""Steps trained controllers with NumPy alone: gears, master, periods and dial, for any batch.

One class drives a policy on a robot, a population while it collects, and hundreds of episodes while it is evaluated:
every array of `Weights` has a leading axis of P agents, observations are (P, N, obs) for N environments each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.policy.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from lowgear.policy.dial import price

if TYPE_CHECKING:
    from lowgear.policy.file import Policy

Layers = Sequence[tuple[FloatArray, FloatArray]]  # weight (P, in, out), bias (P, out)
Chooser = Callable[[FloatArray], IntArray]  # from the master's values (P, N, choices) to choices (P, N)

OBSERVATION_LIMIT = 1e6  # what an infinite observation is read as
LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
MASTERS = ("greedy", "boltzmann")  # how the master picks: its best value, or softmax of its values


class Tariff(NamedTuple):
    """What choices cost, where the master's network holds only their advantages."""

    low: FloatArray  # (P,): the coefficient at the dial's low end
    high: FloatArray  # (P,): at its high end
    each: FloatArray  # (P, choices): at a coefficient of 1


class Weights(NamedTuple):
    """The networks that act: the gears' actors, cheapest first, and the master."""

    gears: tuple[Layers, ...]
    master: Layers
    tariff: Tariff | None = None  # None: the master's network has learned what its choices cost


class Held(NamedTuple):
    """The picks after a step, (P, N) each."""

    age: IntArray  # steps that each has held, this one counted
    closed: BoolArray  # those that ended with this step


class Controller:
    """P agents in N environments each: which pick holds where, since when, and what it does."""

    def __init__(
        self,
        weights: Weights,
        *,
        periods: Sequence[int],
        activation: str,
        forced_gear: IntArray,  # (P,): -1 where the master picks
        position: FloatArray | None,  # (P,): of each dial; None where the masters have none
        environments: int,
    ) -> None:
        shape = len(forced_gear), environments
        self._weights = weights
        self._charges: FloatArray | None = None  # (P, N, choices): what choices cost where the dials stand
        self.periods: IntArray = np.asarray(periods, np.int32)
        self.activation = activation
        self.forced_gear = forced_gear[:, None]
        self.position = None if position is None else np.repeat(position[:, None], environments, axis=1)
        self.choice: IntArray = np.zeros(shape, np.int32)  # gear + gears · number of its period
        self.age: IntArray = np.zeros(shape, np.int32)  # steps the pick has held; 0: a new pick is due

    @classmethod
    def from_policies(cls, policies: "Sequence[Policy]", environments: int = 1) -> "Controller":
        """Policies of equal shapes side by side, each with its dial at the coefficient that its header names."""
        headers = [policy.header for policy in policies]
        first = headers[0]
        for header in headers[1:]:
            for name in (
                "task",
                "gears",
                "obs_dim",
                "act_dim",
                "master_units",
                "periods",
                "activation",
                "sees_position",
            ):
                one, other = getattr(first, name), getattr(header, name)
                if one != other:
                    raise LowgearError(
                        f"policies of {first.task} and {header.task} do not mix: {name} {one} and {other}"
                    )
        positions = [header.dial.position(header.cost_coefficient) for header in headers if header.dial is not None]
        return cls(
            stack([policy.weights for policy in policies]),
            periods=first.periods,
            activation=first.activation,
            forced_gear=np.array([-1 if h.forced_gear is None else h.forced_gear for h in headers], np.int32),
            position=np.array(positions, np.float32) if positions else None,
            environments=environments,
        )

    @property
    def weights(self) -> Weights:
        """What acts."""
        return self._weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self._weights, self._charges = weights, None

    def turn(self, where: BoolArray, position: FloatArray) -> None:
        """Set dials, (P, N), to their places in `position`."""
        if self.position is not None:
            self.position[where], self._charges = position[where], None

    @property
    def gears(self) -> int:
        """How many there are."""
        return len(self._weights.gears)

    @property
    def gear(self) -> IntArray:
        """The gear that acts."""
        gear: IntArray = self.choice % self.gears
        return gear

    @property
    def due(self) -> BoolArray:
        """Where a new pick is due before the next step."""
        return np.equal(self.age, 0)

    @property
    def left(self) -> IntArray:
        """Steps that the picks still hold, 0 where a new one is due."""
        left: IntArray = np.where(self.due, 0, self.periods[self.choice // self.gears] - self.age).astype(np.int32)
        return left

    def begin(self, where: BoolArray) -> None:
        """Start episodes: new picks are due there."""
        self.age[where] = 0

    def values(self, observation: FloatArray) -> FloatArray:
        """The master's values (P, N, choices)."""
        weights, position = self.weights, self.position
        if position is None:
            return mlp(weights.master, observation, self.activation)
        if weights.tariff is None:
            seen = np.concatenate([observation, position[..., None]], -1, dtype=np.float32)
            return mlp(weights.master, seen, self.activation)
        if self._charges is None:
            low, high, each = weights.tariff
            coefficient: FloatArray = price(position, low[:, None], high[:, None])
            self._charges = coefficient[..., None] * each[:, None, :]
        return mlp(weights.master, observation, self.activation) - self._charges

    def pick(self, observation: FloatArray, choose: "Chooser | None" = None) -> BoolArray:
        """New picks where they are due: the forced gear, or what `choose` makes of the master's values (greedy).

        Returns where the master was asked.
        """
        due, forced = self.due, self.forced_gear
        asked: BoolArray = due & (forced < 0)
        choice = np.where(asked, (choose or greedy)(self.values(observation)), forced) if asked.any() else forced
        self.choice = np.where(due, choice, self.choice)
        return asked

    def act(self, observation: FloatArray, noise: FloatArray | None = None) -> FloatArray:
        """Actions in [-1, 1], (P, N, act), of the gears that hold: their means, or samples for standard `noise`."""
        gear, head = self.gear, None
        for number in range(self.gears):
            chosen = gear == number
            if chosen.any():
                out = self._head(number, observation)
                head = out if head is None else np.where(chosen[..., None], out, head)
        assert head is not None
        return squash(head, noise)

    def act_with(self, gear: int, observation: FloatArray) -> FloatArray:
        """What one gear would do everywhere."""
        return squash(self._head(gear, observation))

    def advance(self, ended: BoolArray) -> Held:
        """Count a step that was taken; picks that held for their period, or whose episode `ended`, are closed."""
        age: IntArray = self.age + 1
        closed: BoolArray = np.logical_or(age >= self.periods[self.choice // self.gears], ended)
        self.age = np.where(closed, np.int32(0), age)
        return Held(age, closed)

    def _head(self, gear: int, observation: FloatArray) -> FloatArray:
        return mlp(self.weights.gears[gear], observation, self.activation)


def mlp(layers: Layers, x: FloatArray, activation: str) -> FloatArray:
    """Forward pass of P networks on (P, N, in); the last layer is linear."""
    for weight, bias in layers[:-1]:
        x = x @ weight
        x += bias[:, None, :]
        x = np.tanh(x, out=x) if activation == "tanh" else np.maximum(x, 0, out=x)
    weight, bias = layers[-1]
    x = x @ weight
    x += bias[:, None, :]
    return x


def readable(observation: FloatArray) -> FloatArray:
    """An observation as every deployed controller reads it: 0 for NaN, a limit for what is infinite."""
    if np.isfinite(observation).all():
        return observation
    return np.nan_to_num(observation, nan=0, posinf=OBSERVATION_LIMIT, neginf=-OBSERVATION_LIMIT)


def squash(head: FloatArray, noise: FloatArray | None = None) -> FloatArray:
    """Actions from an actor's mean and log standard deviation, side by side in the last axis."""
    act_dim = head.shape[-1] // 2
    mean = head[..., :act_dim]
    if noise is None:
        return np.tanh(mean)
    log_std = np.maximum(np.minimum(head[..., act_dim:], LOG_STD_MAX), LOG_STD_MIN)  # in less time than np.clip
    return np.tanh(mean + np.exp(log_std) * noise)


def greedy(values: FloatArray) -> IntArray:
    """The choices of the best values."""
    best: IntArray = values.argmax(axis=-1).astype(np.int32)
    return best


def boltzmann(values: FloatArray, chance: FloatArray) -> IntArray:
    """Choices drawn from softmax(values), temperature 1, for `chance` uniform in [0, 1)."""
    weight = np.exp(values - values.max(axis=-1, keepdims=True))
    bound = np.cumsum(weight, axis=-1)
    picked: IntArray = (bound[..., :-1] <= chance[..., None] * bound[..., -1:]).sum(axis=-1).astype(np.int32)
    return picked


def chooser(master: str, generator: np.random.Generator) -> Chooser:
    """How a master picks, by its name in `MASTERS`."""
    if master not in MASTERS:
        raise LowgearError(f"unknown master {master!r}: write {' or '.join(MASTERS)}")
    if master == "greedy":
        return greedy
    return lambda values: boltzmann(values, generator.random(values.shape[:-1], np.float32))


@dataclass(frozen=True)
class ActionBounds:
    """The bounds of a Box action space, and the type that the environment wants its actions in."""

    low: DoubleArray
    high: DoubleArray
    dtype: np.dtype[Any]

    @cached_property
    def is_unit(self) -> bool:
        """Whether they are [-1, 1] already, so that scaling is a change of type."""
        return bool((self.low == -1).all() and (self.high == 1).all())

    def scale(self, actions: FloatArray) -> npt.NDArray[Any]:
        """Map `actions` from [-1, 1] to the bounds; clipped, because rounding may step over them by a bit."""
        if self.is_unit:
            return actions.astype(self.dtype)
        scaled = self.low + (actions.astype(np.float64) + 1) / 2 * (self.high - self.low)
        return np.clip(scaled, self.low, self.high).astype(self.dtype)


def stack(policies: Sequence[Weights]) -> Weights:
    """Several agents' weights of the same shapes as one population."""

    def join(parts: Sequence[Layers]) -> Layers:
        return [
            (np.concatenate([w for w, _ in layer]), np.concatenate([b for _, b in layer]))
            for layer in zip(*parts, strict=True)
        ]

    count, tariffs = len(policies[0].gears), [p.tariff for p in policies if p.tariff is not None]
    if len(tariffs) not in (0, len(policies)):
        raise LowgearError("policies whose masters know prices and policies whose masters learn them do not mix")
    return Weights(
        tuple(join([p.gears[g] for p in policies]) for g in range(count)),
        join([p.master for p in policies]),
        Tariff(*map(np.concatenate, zip(*tariffs, strict=True))) if tariffs else None,
    )


def leaves_of(weights: Weights) -> list[FloatArray]:
    """Every array, in one order."""
    networks = (*weights.gears, weights.master)
    return [array for layers in networks for layer in layers for array in layer] + list(weights.tariff or ())


def with_leaves(weights: Weights, leaves: Sequence[FloatArray]) -> Weights:
    """The same networks with other arrays, in the order of `leaves_of`."""
    arrays = iter(leaves)
    *gears, master = ([(next(arrays), next(arrays)) for _ in layers] for layers in (*weights.gears, weights.master))
    return Weights(tuple(gears), master, Tariff(*arrays) if weights.tariff is not None else None)


def take(weights: Weights, which: int | slice) -> Weights:
    """Some agents of a population, or one as a population of one."""
    agents = which if isinstance(which, slice) else slice(which, which + 1)

    def part(layers: Layers) -> Layers:
        return [(weight[agents], bias[agents]) for weight, bias in layers]

    tariff = None if weights.tariff is None else Tariff(*(values[agents] for values in weights.tariff))
    return Weights(tuple(part(layers) for layers in weights.gears), part(weights.master), tariff)
