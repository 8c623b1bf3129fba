"""What a gear is: a network that is trained, the last action again, or a frozen policy from elsewhere.

A gear is written as text, `64`, `64x64x64`, `x64` or `hold`, and in JSON as a width where it has two hidden layers of
it, as that text where it has not, and as an object where it is frozen. Weights are elsewhere (`networks`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry

NETWORK, HOLDING, FROZEN = "network", "hold", "frozen"  # kinds
ACTIVATIONS = ("tanh", "relu")  # of networks that are trained
FROZEN_ACTIVATIONS = (*ACTIVATIONS, "elu", "silu", "leaky_relu")  # leaky_relu's slope is 0.01
SQUASHES = ("tanh", "clip")
MOST_UNITS = 2**20  # of a layer, and of an observation
MOST_LAYERS = 16  # hidden ones of a gear
SIZES = re.compile(r"x?[0-9]{1,9}(x[0-9]{1,9})*", re.ASCII)
EXAMPLE = "write a width, widths of several layers, or hold: for example 64, 64x64x64, hold"


@dataclass(frozen=True, repr=False)
class Gear:
    """One sub-policy: what it computes."""

    kind: str
    hidden: tuple[int, ...] = ()  # widths of the hidden layers
    # Of a frozen one alone, because it came from elsewhere:
    activation: str | None = None  # None: as the policy's own networks
    squash: str = "tanh"  # how the mean becomes an action in [-1, 1]
    heads: int = 2  # outputs for each action: mean and log standard deviation, or the mean alone
    clips: bool = False  # observations are clipped first
    source: str = ""  # where it came from, for people

    @property
    def computes(self) -> bool:
        """Whether it looks at the observation."""
        return self.kind != HOLDING

    @property
    def learns(self) -> bool:
        """Whether it is trained."""
        return self.kind == NETWORK

    @property
    def is_plain(self) -> bool:
        """Whether it is a network with two hidden layers of equal width, the paper's."""
        return self.kind == NETWORK and len(self.hidden) == 2 and self.hidden[0] == self.hidden[1]

    def sizes(self, obs_dim: int, act_dim: int) -> tuple[int, ...]:
        """Inputs, hidden widths and outputs of its network; nothing where it has none."""
        return (obs_dim, *self.hidden, self.heads * act_dim) if self.computes else ()

    def to_json(self) -> int | str | dict[str, Any]:
        """As headers and config.json keep it."""
        if self.kind == FROZEN:
            return asdict(self) | {"hidden": list(self.hidden)}
        return self.hidden[0] if self.is_plain else str(self)

    @property
    def description(self) -> str:
        """For a person, who is told its number already: `64 units`, `the last action again`."""
        if not self.computes:
            return "the last action again"
        units = f"{_sizes_text(self.hidden)} units" if self.hidden else "linear"
        return f"frozen, {units}{f', {self.source}' if self.source else ''}" if self.kind == FROZEN else units

    @property
    def label(self) -> str:
        """For a table: `64`, `hold`, `frozen 256 (Stable-Baselines3 SAC)`."""
        return f"{self} ({self.source})" if self.source else str(self)

    def __str__(self) -> str:
        if not self.computes:
            return HOLDING
        text = _sizes_text(self.hidden) if self.hidden else "linear"
        return f"{FROZEN} {text}" if self.kind == FROZEN else text

    __repr__ = __str__


HOLD = Gear(HOLDING)  # repeats the last action


def network(*hidden: int) -> Gear:
    """A network to train, with these hidden layers; of one width alone it has two, as the paper's."""
    return Gear(NETWORK, (*hidden, *hidden) if len(hidden) == 1 else hidden)


def gears_of(values: "Iterable[Gear | int | str]") -> tuple[Gear, ...]:
    """Gears that are given as gears, as widths or as text."""
    return tuple(value if isinstance(value, Gear) else parse_gear(f"{value}") for value in values)


def parse_gear(text: str) -> Gear:
    """A gear from what a person wrote: `64`, `64x64x64`, `x64` (one layer) or `hold`."""
    try:
        return _gear(text.strip())
    except BadField as error:
        raise LowgearError(f"{error}: {EXAMPLE}") from None


def read_gear(raw: Any) -> Gear:
    """A gear from a file's JSON; raises BadField."""
    if isinstance(raw, str):
        return _gear(raw)
    if isinstance(raw, Mapping):
        return _frozen(fields.entries("a gear", raw))
    width = fields.whole("a width in gears", raw, 1, MOST_UNITS)
    return network(width)


def check_set(gears: Sequence[Gear]) -> None:
    """Raise BadField unless they can be the gears of one controller, in their order."""
    if any(not gear.computes for gear in gears[1:]):
        raise BadField(f"gears are {names(gears)}: hold is the cheapest and comes first, once")
    if not any(gear.computes for gear in gears):
        raise BadField(f"gears are {names(gears)}: one besides hold must act, at an episode's start")


def small_of(gears: Sequence[Gear]) -> int:
    """The number of the cheapest gear that computes."""
    return next(number for number, gear in enumerate(gears) if gear.computes)


def forced_by(variant: str, gears: Sequence[Gear]) -> int | None:
    """The only gear of a variant that never asks its master, by number; None of variants that do."""
    return {"small-only": small_of(gears), "large-only": len(gears) - 1}.get(variant)


def names(gears: Iterable[Gear]) -> str:
    """All of them in a line."""
    return ",".join(map(str, gears))


def _gear(text: str) -> Gear:
    if text == HOLDING:
        return HOLD
    if len(text) > fields.LONGEST_TEXT or not SIZES.fullmatch(text):
        raise BadField(f"gear {fields.shown(text)} is neither widths nor {HOLDING}")
    widths = [int(width) for width in text.removeprefix("x").split("x")]
    hidden = _hidden(widths, 1)
    return Gear(NETWORK, hidden) if text.startswith("x") else network(*hidden)


def _frozen(raw: dict[str, Any]) -> Gear:
    fields.one_of("the kind of a gear", entry(raw, "kind"), (FROZEN,))
    activation = entry(raw, "activation")
    return Gear(
        FROZEN,
        _hidden(fields.items("hidden", entry(raw, "hidden"), 0, MOST_LAYERS), 0),
        None if activation is None else fields.one_of("activation of a gear", activation, FROZEN_ACTIVATIONS),
        fields.one_of("squash", entry(raw, "squash"), SQUASHES),
        fields.whole("heads", entry(raw, "heads"), 1, 2),
        fields.flag("clips", entry(raw, "clips")),
        fields.text("source", entry(raw, "source")),
    )


def _hidden(widths: Sequence[Any], least: int) -> tuple[int, ...]:
    listed = fields.items("hidden layers", widths, least, MOST_LAYERS)
    return tuple(fields.whole("a width in gears", width, 1, MOST_UNITS) for width in listed)


def _sizes_text(hidden: tuple[int, ...]) -> str:
    """Widths as `parse_gear` reads them."""
    if len(hidden) == 2 and hidden[0] == hidden[1]:
        return f"{hidden[0]}"
    return f"x{hidden[0]}" if len(hidden) == 1 else "x".join(map(str, hidden))
