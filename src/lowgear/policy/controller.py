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
from lowgear.policy.gears import NETWORK, Gear
from lowgear.policy.networks import Weights, frozen_action, mlp, squash, stack

if TYPE_CHECKING:
    from lowgear.policy.file import Policy

Chooser = Callable[[FloatArray], IntArray]  # from the master's values (P, N, choices) to choices (P, N)

OBSERVATION_LIMIT = 1e6  # what an infinite observation is read as
MASTERS = ("greedy", "boltzmann")  # how the master picks: its best value, or softmax of its values


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
        kinds: Sequence[Gear] | None = None,  # of the gears; None: networks of the activation above
    ) -> None:
        shape = len(forced_gear), environments
        self._weights = weights
        self.kinds = tuple(kinds) if kinds is not None else (Gear(NETWORK),) * len(weights.gears)
        self._networks = [number for number, kind in enumerate(self.kinds) if kind.kind == NETWORK]
        self._others = [number for number, kind in enumerate(self.kinds) if kind.kind != NETWORK]
        self._charges: FloatArray | None = None  # (P, N, choices): what choices cost where the dials stand
        self.periods: IntArray = np.asarray(periods, np.int32)
        self.activation = activation
        self.forced_gear = forced_gear[:, None]
        self.position = None if position is None else np.repeat(position[:, None], environments, axis=1)
        self.choice: IntArray = np.zeros(shape, np.int32)  # gear + gears · number of its period
        self.age: IntArray = np.zeros(shape, np.int32)  # steps the pick has held; 0: a new pick is due
        # What a gear that holds needs, (P, N, act) and (P, N); None where none does.
        self._hold = next((number for number in self._others if not self.kinds[number].computes), None)
        self.last_action = None if self._hold is None else np.zeros((*shape, self._act_dim), np.float32)
        self.fresh: BoolArray | None = None if self._hold is None else np.ones(shape, np.bool_)  # no action yet
        self._acted = self.last_action

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
            kinds=first.gears,
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
    def gear_count(self) -> int:
        """How many there are."""
        return len(self._weights.gears)

    @property
    def gear(self) -> IntArray:
        """The gear that acts."""
        gear: IntArray = self.choice % self.gear_count
        return gear

    @property
    def due(self) -> BoolArray:
        """Where a new pick is due before the next step."""
        return np.equal(self.age, 0)

    @property
    def left(self) -> IntArray:
        """Steps that the picks still hold, 0 where a new one is due."""
        left: IntArray = np.where(self.due, 0, self.periods[self.choice // self.gear_count] - self.age).astype(np.int32)
        return left

    def begin(self, where: BoolArray) -> None:
        """Start episodes: new picks are due there, and there is nothing to hold."""
        self.age[where] = 0
        if self.last_action is not None and self.fresh is not None:
            self.last_action[where], self.fresh[where] = 0, True

    def values(self, observation: FloatArray) -> FloatArray:
        """The master's values (P, N, choices); -inf where nothing was done yet that could be held."""
        weights, position = self.weights, self.position
        found = mlp(weights.master, self._seen(observation), self.activation)
        if position is not None and weights.tariff is not None:
            if self._charges is None:
                low, high, each = weights.tariff
                coefficient: FloatArray = price(position, low[:, None], high[:, None])
                self._charges = coefficient[..., None] * each[:, None, :]
            found = found - self._charges
        if self.fresh is not None:
            found[..., self._hold :: self.gear_count][self.fresh] = -np.inf
        return found

    def _seen(self, observation: FloatArray) -> FloatArray:
        """The master's inputs: the observation, the last action where it can be held, a dial's position."""
        sees_position = self.position is not None and self.weights.tariff is None
        if self.last_action is None and not sees_position:
            return observation
        parts = [observation] if self.last_action is None else [observation, self.last_action]
        if self.position is not None and sees_position:
            parts.append(self.position[..., None])
        return np.concatenate(parts, -1, dtype=np.float32)

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
        """Actions in [-1, 1], (P, N, act), of the gears that hold: their means, or samples for standard `noise`.

        Noise is for networks that are trained: frozen gears, and the last action again, have none.
        """
        gear, head = self.gear, None
        for number in self._networks:
            chosen = gear == number
            if chosen.any():
                out = mlp(self.weights.gears[number], observation, self.activation)
                head = out if head is None else np.where(chosen[..., None], out, head)
        action = None if head is None else squash(head, noise)
        for number in self._others:
            chosen = gear == number
            if chosen.any():
                out = self.act_with(number, observation)
                action = out if action is None else np.where(chosen[..., None], out, action)
        assert action is not None
        self._acted = action
        return action

    def act_with(self, gear: int, observation: FloatArray, last_action: FloatArray | None = None) -> FloatArray:
        """What one gear would do everywhere; `last_action` is what a gear that holds would repeat, if not its own."""
        kind, layers = self.kinds[gear], self.weights.gears[gear]
        if kind.kind == NETWORK:
            return squash(mlp(layers, observation, self.activation))
        if kind.computes:
            clip = self.weights.clips[gear] if self.weights.clips else None
            return frozen_action(kind, layers, clip, observation, self.activation)
        held = self.last_action if last_action is None else last_action
        assert held is not None
        return held

    def advance(self, ended: BoolArray, action: FloatArray | None = None) -> Held:
        """Count a step that was taken; picks that held for their period, or whose episode `ended`, are closed.

        The step was that of `act`, or another `action`: it is the last one from now on.
        """
        age: IntArray = self.age + 1
        closed: BoolArray = np.logical_or(age >= self.periods[self.choice // self.gear_count], ended)
        self.age = np.where(closed, np.int32(0), age)
        if self._acted is not None and self.fresh is not None:
            taken = self._acted if action is None else action
            self.last_action = np.where(ended[..., None], np.float32(0), taken)
            self.fresh = np.array(ended, np.bool_)
        return Held(age, closed)

    @property
    def _act_dim(self) -> int:
        number = next(number for number, kind in enumerate(self.kinds) if kind.computes)
        return int(self._weights.gears[number][-1][1].shape[-1]) // self.kinds[number].heads


def readable(observation: FloatArray) -> FloatArray:
    """An observation as every deployed controller reads it: 0 for NaN, a limit for what is infinite."""
    if np.isfinite(observation).all():
        return observation
    return np.nan_to_num(observation, nan=0, posinf=OBSERVATION_LIMIT, neginf=-OBSERVATION_LIMIT)


def greedy(values: FloatArray) -> IntArray:
    """The choices of the best values."""
    best: IntArray = values.argmax(axis=-1).astype(np.int32)
    return best


def any_choice(word: npt.NDArray[np.int64], values: FloatArray) -> IntArray:
    """Choices drawn evenly, by whole random words (P, N), from those whose values are not -inf."""
    allowed = values != -np.inf
    picked = word % np.maximum(allowed.sum(axis=-1), 1)
    if not allowed.all():
        picked = (np.cumsum(allowed, axis=-1) <= picked[..., None]).sum(axis=-1)
    found: IntArray = picked.astype(np.int32)
    return found


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
