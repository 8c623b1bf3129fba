"""What defines a run: the task, the recipe, the agents. Resolved once, kept in config.json."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any

from lowgear import LowgearError
from lowgear.config import recipes, settings
from lowgear.config.gears import Frozen, Given, arrange, check_gears, read_digests
from lowgear.config.recipes import Recipe
from lowgear.config.tasks import MOST_WIDTH, Task
from lowgear.policy import fields
from lowgear.policy.dial import Dial, span
from lowgear.policy.fields import BadField, entry
from lowgear.policy.gears import Gear, forced_by, read_gear
from lowgear.policy.header import LARGEST_COEFFICIENT, LONGEST_PERIOD, MOST_GEARS, MOST_PERIODS

VARIANTS = ("asymmetric", "small-only", "large-only", "fixed-cost", "no-cost", "separate-buffers")
ANY_GEARS = (16, 128)  # of tasks without a preset
SHARES = (
    "master_discount",
    "target_rate",
    "explore_share",
    "explore_last",
    "hindsight_share",
    "goal_random_share",
)
MAX_SEED = fields.MAX_SEED
MOST_STEPS = 10**12  # of a run
ENVIRONMENTS_ACCELERATED = 4
MOST_AGENTS = 4096
LARGEST_RATE = 1e30  # of learning, and of a first temperature
MOST = {  # of settings that decide how much memory a run takes
    "batch": 2**20,
    "replay": 10**9,
    "master_units": MOST_WIDTH,
    "master_batch": 2**20,
    "master_replay": 10**9,
    "master_copy_every": 10**9,
    "noise_hold": 10**6,
    "environments": 2**14,
    "chunk": 2**16,
    "actor_every": 2**16,
}
EARLIER_FIELDS = ("dial_reach", "goal_scale", "goal_normalise")  # of recipes that earlier versions wrote


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


@dataclass(frozen=True)
class RunConfig:
    """A run, resolved: nothing in it depends on defaults that may change."""

    task: str
    recipe: Recipe
    gears: tuple[Gear, ...]
    steps: int  # environment steps of each agent
    agents: tuple[AgentConfig, ...]
    boltzmann: bool  # how the paper evaluates this task
    evaluate_every: int  # steps; 0: never while training
    evaluate_episodes: int
    checkpoint_every: int  # steps
    log_every: int  # steps
    frozen: tuple[Frozen, ...] = ()  # policies of the gears that are frozen, in their order

    @property
    def critic_units(self) -> tuple[int, ...]:
        """Hidden width of each gear's critics: none is narrower than the widest gear that is trained."""
        least = self.recipe.critic_units
        widths = tuple(max(gear.hidden) if gear.learns else 1 for gear in self.gears)
        return widths if least is None else (max(least, *widths),) * len(widths)

    @property
    def master(self) -> str:
        """How controllers are evaluated unless told otherwise: greedy, or boltzmann where the paper samples."""
        return "boltzmann" if self.boltzmann else "greedy"

    @property
    def environments(self) -> int:
        """Of all agents together."""
        return len(self.agents) * self.recipe.environments

    @property
    def capacity(self) -> int:
        """Steps that each agent's ring holds: a whole number of chunks."""
        chunk = self.recipe.chunk
        return min(whole_chunks(self.recipe.replay, chunk), self.steps)

    def to_json(self) -> dict[str, Any]:
        """As config.json keeps it."""
        raw = asdict(replace(self, frozen=())) | {"gears": [gear.to_json() for gear in self.gears]}
        del raw["frozen"]
        return raw | ({"frozen": [one.digest for one in self.frozen]} if self.frozen else {})

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "RunConfig":
        """Back from config.json; every value is checked as `resolve` checks it, and one that does not fit is an error.

        Frozen policies are left to be read. Raises BadField or LowgearError.
        """
        recipe = recipe_from_json(fields.entries("recipe", entry(raw, "recipe")))
        gears, frozen = [read_gear(gear) for gear in _listed(raw, "gears")], read_digests(raw.get("frozen", []))
        agents = _listed(raw, "agents", MOST_AGENTS)
        counts = ("steps", "evaluate_every", "evaluate_episodes", "checkpoint_every", "log_every")
        least = {"evaluate_every": 0}
        most = whole_chunks(MOST_STEPS, recipe.chunk)
        numbers = {name: fields.whole(name, entry(raw, name), least.get(name, 1), most) for name in counts}
        for name, steps in numbers.items():
            if name != "evaluate_episodes" and steps % recipe.chunk:
                raise BadField(f"{name} is {steps}, not a whole number of chunks of {recipe.chunk} steps")
        return cls(
            task=fields.word("task", entry(raw, "task")),
            recipe=recipe,
            gears=check_gears(gears, frozen),
            frozen=frozen,
            agents=tuple(_agent_from_json(fields.entries("an agent", agent)) for agent in agents),
            boltzmann=fields.flag("boltzmann", entry(raw, "boltzmann")),
            **numbers,
        )


def recipe_from_json(raw: dict[str, Any]) -> Recipe:
    """A recipe back from config.json, checked; settings that it does not have are the paper's."""
    name = fields.word("name of recipe", entry(raw, "name"))
    found = {key: value for key, value in raw.items() if key not in (*EARLIER_FIELDS, "name")}
    recipe = replace(Recipe(name=name), **settings.checked(found))
    _check_recipe(recipe)
    return recipe


def _agent_from_json(raw: dict[str, Any]) -> AgentConfig:
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


def _listed(raw: dict[str, Any], name: str, most: int = MOST_GEARS) -> list[Any]:
    return fields.items(name, entry(raw, name), 1, most)


def resolve(
    task: Task,
    recipe: str = "modern",
    *,
    steps: int | None = None,
    seeds: Sequence[int] = (0,),
    variants: Sequence[str] = ("asymmetric",),
    cost_coefficients: Sequence[float] | None = None,
    discounts: Sequence[float] | None = None,
    learning_rates: Sequence[float] | None = None,
    gears: Sequence[Given] | None = None,
    overrides: dict[str, Any] | None = None,
    evaluate_every: int | None = None,
    evaluate_episodes: int = 5,
    checkpoint_every: int = 40_000,
    accelerator: bool = False,
) -> RunConfig:
    """A run from what a person asked for, the task's preset and the recipe; every bad value is an error.

    With an `accelerator` to learn on, the modern recipe has more environments for each agent.
    """
    overrides = settings.checked(overrides or {})
    chosen = replace(recipes.find(recipe, task.name), **overrides)
    # Defaults give way to what was asked for.
    if "known_prices" not in overrides and not chosen.can_know_prices:
        chosen = replace(chosen, known_prices=False)
    if accelerator and "environments" not in overrides:
        chosen = replace(chosen, environments=_environments(chosen, task))
    _check_recipe(chosen)
    if cost_coefficients is None and task.cost_coefficient is None and not chosen.dial:
        raise LowgearError(
            f"{task.name} has no preset cost coefficient, which the recipe {chosen.name} needs: give "
            "--cost-coefficients (where a good step earns about 1, 0.001 is a start), or train with --recipe modern"
        )
    steps = task.steps if steps is None else steps
    if not 1 <= steps <= MOST_STEPS:
        raise LowgearError(f"--steps {fields.shown(steps)}: a run needs at least one step, and {MOST_STEPS:,} at most")
    for name, value in (("--evaluate-episodes", evaluate_episodes), ("--checkpoint-every", checkpoint_every)):
        if not 1 <= value <= MOST_STEPS:
            raise LowgearError(f"{name} {fields.shown(value)}: write 1 or more, {MOST_STEPS:,} at most")
    steps = whole_chunks(steps, chosen.chunk)
    if evaluate_every is not None and not 0 <= evaluate_every <= MOST_STEPS:
        raise LowgearError(f"--evaluate-every {fields.shown(evaluate_every)}: write 0 or more, {MOST_STEPS:,} at most")
    if evaluate_every is None:
        evaluate_every = max(steps // 10, 1)
    arranged, frozen = arrange(gears or task.gears or ANY_GEARS, task)
    return RunConfig(
        task=task.name,
        recipe=chosen,
        gears=arranged,
        frozen=frozen,
        steps=steps,
        agents=_agents(chosen, seeds, variants, (cost_coefficients, task.cost_coefficient), discounts, learning_rates),
        boltzmann=task.boltzmann and chosen.sample_master,
        evaluate_every=whole_chunks(evaluate_every, chosen.chunk),
        evaluate_episodes=evaluate_episodes,
        checkpoint_every=whole_chunks(checkpoint_every, chosen.chunk),
        log_every=whole_chunks(max(1_000, steps // 500), chosen.chunk),
    )


def _agents(
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
            agents.append(AgentConfig(variant, seed, setting, dial, discount, rate, relative))
    agents = list(dict.fromkeys(agents))
    if not agents:
        raise LowgearError("a run needs at least one agent: give --seeds and --variants")
    if len(agents) > MOST_AGENTS:
        raise LowgearError(f"{len(agents)} agents: a run has {MOST_AGENTS} at most; train them in several")
    return tuple(agents)


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


def _environments(recipe: Recipe, task: Task) -> int:
    """Of each agent, where an accelerator learns: more if EnvPool's threads step them and they share chunks evenly."""
    if recipe.name != "modern" or task.source != "envpool":
        return recipe.environments
    return math.gcd(ENVIRONMENTS_ACCELERATED, recipe.chunk)


def _check_recipe(recipe: Recipe) -> None:
    for name, most in MOST.items():
        if not 1 <= getattr(recipe, name) <= most:
            shown = fields.shown(getattr(recipe, name))
            raise LowgearError(f"{name.replace('_', ' ')} {shown}: write 1 or more, {most:,} at most")
    periods = list(recipe.periods)
    whole = all(type(period) is int and 1 <= period <= LONGEST_PERIOD for period in periods)
    if not 1 <= len(periods) <= MOST_PERIODS or not whole or periods != sorted(set(periods)):
        raise LowgearError(
            f"period {','.join(map(fields.shown, periods[:MOST_PERIODS]))}: write different whole numbers of 1 or "
            f"more, {LONGEST_PERIOD:,} at most, shortest first"
        )
    if recipe.chunk % recipe.environments:
        raise LowgearError(
            f"{recipe.environments} environments cannot share chunks of {recipe.chunk} steps evenly: choose a divisor"
        )
    if recipe.chunk % recipe.actor_every:
        raise LowgearError(
            f"actor every {recipe.actor_every} updates: chunks have {recipe.chunk}, no multiple of it; choose a divisor"
        )
    for name in ("learning_rate", "actor_learning_rate", "actor_boost", "master_learning_rate", "first_alpha"):
        value = getattr(recipe, name)
        if value is not None and not 0 < value <= LARGEST_RATE:
            raise LowgearError(f"{name.replace('_', ' ')} {value}: write a number above 0, {LARGEST_RATE:g} at most")
    for name in ("actor_activation", "critic_activation"):
        if getattr(recipe, name) not in ("tanh", "relu"):
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)!r}: write tanh or relu")
    if not 0 <= recipe.random_steps <= MOST_STEPS:
        raise LowgearError(f"random steps {fields.shown(recipe.random_steps)}: write 0 or more, {MOST_STEPS:,} at most")
    for name in ("target_entropy", "goal_reward_shift"):
        if not math.isfinite(getattr(recipe, name)):
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)}: write a finite number")
    for name in SHARES:
        if not 0 <= getattr(recipe, name) <= 1:
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)}: write a number from 0 to 1")
    within = all(abs(end) <= LARGEST_COEFFICIENT for end in recipe.dial_ends)
    if len(recipe.dial_ends) != 2 or not within or not Dial(*recipe.dial_ends).holds(recipe.dial_setting):
        raise LowgearError(
            f"dial ends {recipe.dial_ends}, setting {recipe.dial_setting}: write two numbers, the lower first and the "
            "higher above 0, and a setting between them"
        )
    if recipe.known_prices and not recipe.can_know_prices:
        raise LowgearError(
            f"known prices need a dial, discounting by the step and a master's discount below 1, which the recipe "
            f"{recipe.name} has not: leave them out, or train with --recipe modern"
        )
    for name, most in (("critic_units", MOST_WIDTH), ("max_episode_steps", MOST_STEPS)):
        value = getattr(recipe, name)
        if value is not None and not 1 <= value <= most:
            raise LowgearError(f"{name.replace('_', ' ')} {fields.shown(value)}: write 1 or more, {most:,} at most")


def whole_chunks(steps: int, chunk: int) -> int:
    """Rounded up to whole chunks."""
    return -(-steps // chunk) * chunk
