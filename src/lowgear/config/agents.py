"""The agents of a population: what differs between them, and every combination of what a person asked for."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from lowgear import LowgearError
from lowgear.config.ranges import LARGEST_RATE, MAX_SEED, MOST_AGENTS
from lowgear.config.recipes import Recipe
from lowgear.policy import fields
from lowgear.policy.dial import Dial, span
from lowgear.policy.fields import BadField, entry
from lowgear.policy.gears import Gear, forced_by
from lowgear.policy.header import LARGEST_COEFFICIENT

LARGEST_DISCOUNT = 0.999999  # of the master, where coefficients are relative
VARIANTS = ("asymmetric", "small-only", "large-only", "fixed-cost", "no-cost", "separate-buffers")


@dataclass(frozen=True)
class AgentConfig:
    """What differs between the agents of a population."""

    variant: str
    seed: int
    cost_coefficient: float  # that it pays, or the dial's setting while it is evaluated
    dial: Dial  # coefficients that it learns; one alone has equal ends
    discount: float
    learning_rate: float
    relative: bool = False  # coefficient and dial are measured against the task's rewards, not in them

    def in_rewards(self, unit: float) -> "AgentConfig":
        """With coefficient and dial in the task's rewards, where a relative coefficient of 1 is `unit`."""
        if not self.relative:
            return self
        dial = self.dial.times(unit)
        return replace(self, cost_coefficient=self.cost_coefficient * unit, dial=dial, relative=False)

    def forced_gear(self, gears: Sequence[Gear]) -> int | None:
        """The only gear of small-only and large-only agents, whose master is never asked."""
        return forced_by(self.variant, gears)


def agent_from_json(raw: dict[str, Any]) -> AgentConfig:
    """An agent back from config.json; raises BadField where a value does not fit."""
    low, high = (
        fields.number("an end of dial", end, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
        for end in fields.items("dial", entry(raw, "dial"), 2, 2)
    )
    agent = AgentConfig(
        variant=fields.one_of("variant", entry(raw, "variant"), VARIANTS),
        seed=fields.whole("seed", entry(raw, "seed"), 0, MAX_SEED),
        cost_coefficient=fields.number(
            "cost_coefficient", entry(raw, "cost_coefficient"), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT
        ),
        dial=Dial(low, high),
        discount=fields.number("discount", entry(raw, "discount"), 0, 1),
        learning_rate=fields.number("learning_rate", entry(raw, "learning_rate"), 0, LARGEST_RATE),
        relative=fields.flag("relative", raw.get("relative", False)),
    )
    if not agent.dial.holds(agent.cost_coefficient):
        raise BadField(f"cost_coefficient is {agent.cost_coefficient:g}, which no dial from {low:g} to {high:g} has")
    if agent.discount == 1 or agent.learning_rate == 0:
        raise BadField(
            f"discount is {agent.discount:g} and learning_rate {agent.learning_rate:g}: less than 1, above 0"
        )
    return agent


def combined(
    recipe: Recipe,
    seeds: Sequence[int],
    variants: Sequence[str],
    coefficients: tuple[Sequence[float] | None, float | None],
    discounts: Sequence[float] | None,
    learning_rates: Sequence[float] | None,
) -> tuple[AgentConfig, ...]:
    """Every combination once, with the coefficients that were given or the task's."""
    for variant in variants:
        if variant not in VARIANTS:
            hint = "; two-large is a setting: --gears 64,64" if variant == "two-large" else ""
            raise LowgearError(f"unknown variant {variant!r}: choose from {', '.join(VARIANTS)}{hint}")
    for seed in seeds:
        if not isinstance(seed, Integral) or not 0 <= seed <= MAX_SEED:
            raise LowgearError(f"seed {fields.shown(seed)}: write a whole number from 0 to {MAX_SEED}")
    given = coefficients[0] or ()
    below_0 = recipe.dial and "fixed-cost" not in variants and max(given, default=0.0) > 0
    for value in given:
        if not abs(value) <= LARGEST_COEFFICIENT or (value < 0 and not below_0):
            raise LowgearError(
                f"cost coefficient {value}: write a number of 0 or more, up to {LARGEST_COEFFICIENT:g}; a dial alone "
                "may begin below 0, and ends above"
            )
    for value in discounts or (recipe.discount,):
        if not 0 <= value < 1:
            raise LowgearError(f"discount {value}: write a number from 0 to less than 1")
    for value in learning_rates or ():
        if not 0 < value <= LARGEST_RATE:
            raise LowgearError(f"learning rate {value}: write a number above 0, {LARGEST_RATE:g} at most")
    agents = []
    for variant in variants:
        for (setting, dial, relative), discount, rate, seed in itertools.product(
            _dials(variant, recipe, *coefficients),
            discounts or (recipe.discount,),
            learning_rates or (recipe.learning_rate,),
            seeds,
        ):
            if not dial.holds(setting):
                raise LowgearError(
                    f"no dial can have the ends {dial.low:g} and {dial.high:g}: write coefficients that are farther "
                    "apart or nearer, or one alone"
                )
            dial = Dial(float(dial.low), float(dial.high))  # NumPy's numbers would not go into files
            numbers = float(setting), dial, float(discount), float(rate)
            agents.append(AgentConfig(variant, int(seed), *numbers, relative))
    agents = list(dict.fromkeys(agents))
    if not agents:
        raise LowgearError("a run needs at least one agent: give --seeds and --variants")
    if len(agents) > MOST_AGENTS:
        raise LowgearError(f"{len(agents)} agents: a run has {MOST_AGENTS} at most; train them in several")
    check_relative(recipe, agents)
    return tuple(agents)


def check_relative(recipe: Recipe, agents: Sequence[AgentConfig]) -> None:
    """Refuse relative coefficients where nothing is what a typical step earns: without discounting."""
    if recipe.master_discount > LARGEST_DISCOUNT and any(agent.relative for agent in agents):
        raise LowgearError(
            f"master discount {recipe.master_discount}: a dial without coefficients is measured by discounted rewards; "
            f"write {LARGEST_DISCOUNT} at most, or give --cost-coefficients"
        )


def _dials(
    variant: str, recipe: Recipe, given: Sequence[float] | None, preset: float | None
) -> list[tuple[float, Dial, bool]]:
    """Setting and dial of each agent of a variant, and whether they are relative.

    A coefficient means nothing to an agent that does not pay. Those that are given are in the task's rewards, and so
    is the paper's; a dial has relative ones where none are given.
    """
    if variant not in ("asymmetric", "fixed-cost", "separate-buffers"):
        return [(0.0, Dial(0.0, 0.0), False)]
    if not recipe.dial:
        return [(value, Dial(value, value), False) for value in given or [preset or 0.0]]
    if variant == "fixed-cost":
        values, relative = given or [recipe.dial_setting], given is None
        return [(value, Dial(value, value), relative) for value in values]
    if given is None:
        return [(recipe.dial_setting, Dial(*recipe.dial_ends), True)]
    dial = span(given)
    inside = preset is not None and dial.low <= preset <= dial.high
    return [(preset if inside and preset is not None else dial.middle, dial, False)]
