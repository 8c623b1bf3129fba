"""What a policy file says about itself: its header, every entry of which is checked for type and range."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.cost import CostModel, cost_model
from lowgear.policy.dial import Dial
from lowgear.policy.fields import MAX_COUNT, MAX_SEED, BadField, entry
from lowgear.policy.gears import ACTIVATIONS, MOST_UNITS, Gear, check_set, forced_by, gears_of, read_gear
from lowgear.policy.tensors import unique

FORMAT = 4  # 3 had plain networks alone, two or more; 2 had no tariffs either: its masters learned prices
PLAIN_FORMAT = 3  # which policies of plain networks are still written in, so that earlier versions read them
READS = (2, PLAIN_FORMAT, FORMAT)
MOST_GEARS = 64
MOST_PERIODS = 64
LONGEST_PERIOD = 1_000_000  # steps
LARGEST_ACTION = 1e30
LEAST_COEFFICIENT, LARGEST_COEFFICIENT = 1e-18, 1e15  # apart from 0
IMPORTED = "imported"  # the variant and the recipe of a policy from elsewhere
MASTERED = ("asymmetric", "fixed-cost", "no-cost", "separate-buffers")  # variants whose master picks


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
    gears: tuple[Gear, ...]  # cheapest first; widths are taken as plain networks
    master_units: int  # 0 where there is one gear, and no master
    periods: tuple[int, ...]  # steps a pick may hold, shortest first
    activation: str
    forced_gear: int | None  # small-only, large-only and imported never ask the master
    boltzmann: bool  # how the paper evaluates this task
    hindsight: bool
    known_prices: bool = False  # a tariff is taken off its values, and the dial's position is not among its inputs
    cost_unit: float | None = None  # the coefficient whose dearest step costs what a typical step of the task earns
    observation_names: tuple[str, ...] = ()  # of each number, where the environment gives them
    action_names: tuple[str, ...] = ()
    format: int = PLAIN_FORMAT  # at least: other gears than plain networks raise it

    def __post_init__(self) -> None:
        gears = gears_of(self.gears)
        object.__setattr__(self, "gears", gears)
        if len(gears) == 1 or not all(gear.is_plain for gear in gears):
            object.__setattr__(self, "format", FORMAT)

    def to_json(self) -> dict[str, Any]:
        """As the file keeps it."""
        return asdict(self) | {"gears": [gear.to_json() for gear in self.gears]}

    @property
    def sees_action(self) -> bool:
        """Whether the last action is an input of its master: where a gear can hold it."""
        return any(not gear.computes for gear in self.gears)

    @property
    def master_inputs(self) -> int:
        """The observation, the last action where it is held, the dial's position where prices are learned."""
        return self.obs_dim + self.act_dim * self.sees_action + self.sees_position

    @property
    def sees_position(self) -> bool:
        """Whether the dial's position is an input of its master."""
        return self.dial is not None and not self.known_prices

    @property
    def choices(self) -> int:
        """What the master chooses from: a gear and how long it holds."""
        return len(self.gears) * len(self.periods)

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


def parse_header(path: Path, text: str) -> PolicyHeader:
    """The header in a policy file; one of another format, or with any entry that cannot be right, is an error."""
    try:
        raw = fields.entries("it", json.loads(text, object_pairs_hook=unique))
        version = raw.get("format")
        if type(version) is not int or version not in READS:
            raise LowgearError(
                f"{path} has policy format {fields.shown(version)}; this version of Lowgear reads "
                f"{', '.join(map(str, READS[:-1]))} and {FORMAT}: train it again, or take another version"
            )
        return _checked(raw)
    except (RecursionError, ValueError) as error:
        raise LowgearError(
            f"{path} has a damaged policy header ({fields.reason(error)}); train or copy it again"
        ) from None


def check_header(header: PolicyHeader, what: str) -> None:
    """An error, which begins with `what` it prevents, for a header that no policy file may have."""
    try:
        _checked(header.to_json())
    except BadField as error:
        raise LowgearError(f"{what}: in the policy's header {error}; change it") from None


def _checked(raw: dict[str, Any]) -> PolicyHeader:
    """The header of entries as JSON has them."""

    def units(name: str) -> int:
        return fields.whole(name, entry(raw, name), 1, MOST_UNITS)

    obs_dim, act_dim = units("obs_dim"), units("act_dim")
    low, high = _bounds(raw, act_dim)
    version = entry(raw, "format")
    gears = _gears(entry(raw, "gears"), version)
    known_prices = version != 2 and fields.flag("known_prices", entry(raw, "known_prices"))
    coefficient, dial = _coefficient(raw)
    if known_prices and dial is None:
        raise BadField("known_prices is true, which only a policy with a dial can have")
    if dial is not None and len(gears) == 1:
        raise BadField("dial is there, which only a policy with a master can have")
    unit = raw.get("cost_unit")  # which earlier files do not have
    header = PolicyHeader(
        task=fields.word("task", entry(raw, "task")),
        recipe=fields.word("recipe", entry(raw, "recipe")),
        variant=fields.word("variant", entry(raw, "variant")),
        seed=fields.whole("seed", entry(raw, "seed"), 0, MAX_SEED),
        cost_coefficient=coefficient,
        dial=dial,
        steps=fields.whole("steps", entry(raw, "steps"), 0, MAX_COUNT),
        obs_dim=obs_dim,
        act_dim=act_dim,
        layout=read_layout(entry(raw, "layout")),
        action_low=low,
        action_high=high,
        gears=gears,
        master_units=_master_units(raw, gears),
        periods=_periods(entry(raw, "periods")),
        activation=fields.one_of("activation", entry(raw, "activation"), ACTIVATIONS),
        forced_gear=_forced_gear(raw, gears),
        boltzmann=fields.flag("boltzmann", entry(raw, "boltzmann")),
        hindsight=fields.flag("hindsight", entry(raw, "hindsight")),
        known_prices=known_prices,
        cost_unit=None if unit is None else fields.number("cost_unit", unit, LEAST_COEFFICIENT, LARGEST_COEFFICIENT),
        observation_names=_names(raw, "observation_names", obs_dim),
        action_names=_names(raw, "action_names", act_dim),
        format=version,
    )
    if sum(size for _, size in header.layout) != obs_dim:
        raise BadField(f"layout does not have the {obs_dim} numbers of obs_dim")
    return header


def read_layout(raw: Any) -> tuple[tuple[str, int], ...]:
    """(key, size) of the parts of a flat observation; the key of the only part may be empty."""
    pairs = [fields.items("a part of layout", pair, 2, 2) for pair in fields.items("layout", raw)]
    return tuple(
        (fields.text("a key of layout", key), fields.whole("a size in layout", size, 0, MOST_UNITS))
        for key, size in pairs
    )


def read_bounds(raw: dict[str, Any], least: int = 1, most: int = MOST_UNITS) -> tuple[tuple[float, ...], ...]:
    """`action_low` and `action_high`: as many of each, the lower below the higher."""
    low, high = (
        tuple(
            fields.number(f"a bound of {name}", bound, -LARGEST_ACTION, LARGEST_ACTION)
            for bound in fields.items(name, entry(raw, name), least, most)
        )
        for name in ("action_low", "action_high")
    )
    if len(low) != len(high):
        raise BadField(f"action_low has {len(low)} numbers and action_high {len(high)}")
    for lower, higher in zip(low, high, strict=True):
        if not lower < higher:
            raise BadField(f"action_low has {lower:g}, which is not below {higher:g} of action_high")
    return low, high


def _bounds(raw: dict[str, Any], act_dim: int) -> tuple[tuple[float, ...], ...]:
    return read_bounds(raw, act_dim, act_dim)


def _names(raw: dict[str, Any], name: str, size: int) -> tuple[str, ...]:
    """One for each number, or none: earlier files have none."""
    given = tuple(fields.word(f"a name in {name}", each) for each in fields.items(name, raw.get(name, []), 0, size))
    if len(given) not in (0, size):
        raise BadField(f"{name} has {len(given)} names for {size} numbers")
    return given


def _periods(raw: Any) -> tuple[int, ...]:
    periods = tuple(
        fields.whole("a period", period, 1, LONGEST_PERIOD) for period in fields.items("periods", raw, 1, MOST_PERIODS)
    )
    if list(periods) != sorted(set(periods)):
        raise BadField(f"periods are {','.join(map(str, periods))}, not different and the shortest first")
    return periods


def _coefficient(raw: dict[str, Any]) -> tuple[float, Dial | None]:
    """The cost coefficient, and the dial that it stands on."""
    value = fields.number("cost_coefficient", entry(raw, "cost_coefficient"), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
    if entry(raw, "dial") is None:
        if value < 0:
            raise BadField(f"cost_coefficient is {value:g}, below 0, without a dial")
        return value, None
    dial = Dial(
        *(
            fields.number("an end of dial", end, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
            for end in fields.items("dial", raw["dial"], 2, 2)
        )
    )
    if any(end and abs(end) < LEAST_COEFFICIENT for end in dial):
        raise BadField(f"dial ends at {dial.low:g} and {dial.high:g}, too near to 0")
    if not dial.holds(value):
        raise BadField(f"cost_coefficient is {value:g}, which no dial from {dial.low:g} to {dial.high:g} has")
    return value, dial


def _gears(raw: Any, version: int) -> tuple[Gear, ...]:
    """Of any kind, in the newest format; before it, two plain networks or more."""
    if version < FORMAT:
        widths = fields.items("gears", raw, 2, MOST_GEARS)
        return gears_of(fields.whole("a width in gears", width, 1, MOST_UNITS) for width in widths)
    gears = tuple(map(read_gear, fields.items("gears", raw, 1, MOST_GEARS)))
    check_set(gears)
    return gears


def _master_units(raw: dict[str, Any], gears: Sequence[Gear]) -> int:
    """One gear has no master, several have one."""
    least, most = (1, MOST_UNITS) if len(gears) > 1 else (0, 0)
    return fields.whole("master_units", entry(raw, "master_units"), least, most)


def _forced_gear(raw: dict[str, Any], gears: Sequence[Gear]) -> int | None:
    """The only gear that acts, where there is one: as the variant says."""
    forced, variant = entry(raw, "forced_gear"), fields.word("variant", entry(raw, "variant"))
    gear = None if forced is None else fields.whole("forced_gear", forced, 0, len(gears) - 1)
    wanted = forced_by(variant, gears)
    if wanted is not None and gear != wanted:
        raise BadField(f"forced_gear is {gear}, but {variant} acts with gear {wanted}")
    if variant in MASTERED and gear is not None:
        raise BadField(f"forced_gear is {gear}, but the master of {variant} picks")
    if gear is None and len(gears) == 1:
        raise BadField("forced_gear is None, but there is one gear, and no master that picks")
    if gear is not None and not gears[gear].computes:
        raise BadField(f"forced_gear is {gear}, which only repeats what another gear did")
    return gear
