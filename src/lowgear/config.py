"""What defines a run: the task, the recipe, the agents. Resolved once, kept in config.json."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lowgear import recipes
from lowgear.errors import LowgearError
from lowgear.recipes import Recipe
from lowgear.tasks import Task, check_gears

VARIANTS = ("asymmetric", "small-only", "large-only", "no-cost", "separate-buffers")
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class AgentConfig:
    """What differs between the agents of a population."""

    variant: str
    seed: int
    cost_coefficient: float
    discount: float
    learning_rate: float

    def forced_gear(self, gears: int) -> int | None:
        """The only gear of small-only and large-only agents, whose master is never asked."""
        return {"small-only": 0, "large-only": gears - 1}.get(self.variant)


@dataclass(frozen=True)
class RunConfig:
    """A run, resolved: nothing in it depends on defaults that may change."""

    task: str
    recipe: Recipe
    gears: tuple[int, ...]
    steps: int  # environment steps of each agent
    agents: tuple[AgentConfig, ...]
    boltzmann: bool  # how the paper evaluates this task
    hindsight: bool
    evaluate_every: int  # steps; 0: never while training
    evaluate_episodes: int
    checkpoint_every: int  # steps
    log_every: int  # steps

    @property
    def critic_units(self) -> tuple[int, ...]:
        """Hidden width of each gear's critics."""
        return tuple(self.recipe.critic_units or units for units in self.gears)

    @property
    def capacity(self) -> int:
        """Steps that each agent's ring holds: a whole number of chunks."""
        chunk = self.recipe.chunk
        return min(_whole(self.recipe.replay, chunk), self.steps)

    def to_json(self) -> dict[str, Any]:
        """As config.json keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "RunConfig":
        """Back from config.json."""
        known = {key: raw[key] for key in cls.__dataclass_fields__}
        known["recipe"] = Recipe(**raw["recipe"])
        known["gears"] = tuple(raw["gears"])
        known["agents"] = tuple(AgentConfig(**agent) for agent in raw["agents"])
        return cls(**known)


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
    gears: Sequence[int] | None = None,
    overrides: dict[str, Any] | None = None,
    evaluate_every: int | None = None,
    evaluate_episodes: int = 5,
    checkpoint_every: int = 40_000,
) -> RunConfig:
    """A run from what a person asked for, the task's preset and the recipe; every bad value is an error."""
    overrides = overrides or {}
    unknown = sorted(overrides.keys() - {field.name for field in fields(Recipe)})
    if unknown:
        raise LowgearError(f"the recipe has no setting {unknown[0]!r}: see lowgear.recipes.Recipe")
    chosen = replace(recipes.find(recipe, task.name), **overrides)
    _check_recipe(chosen)
    widths = gears or task.gears
    if widths is None:
        raise LowgearError(f"{task.name} has no preset widths: give --gears, for example --gears 8,64")
    if cost_coefficients is None:
        if task.cost_coefficient is None:
            raise LowgearError(
                f"{task.name} has no preset cost coefficient: give --cost-coefficients; "
                "about 0.001 of the reward of a good step is a start"
            )
        cost_coefficients = (task.cost_coefficient,)
    steps = task.steps if steps is None else steps
    if steps < 1:
        raise LowgearError(f"--steps {steps}: a run needs at least one step")
    for name, value in (("--evaluate-episodes", evaluate_episodes), ("--checkpoint-every", checkpoint_every)):
        if value < 1:
            raise LowgearError(f"{name} {value}: write 1 or more")
    steps = _whole(steps, chosen.chunk)
    if evaluate_every is None:
        evaluate_every = _whole(max(steps // 10, 1), chosen.chunk)
    return RunConfig(
        task=task.name,
        recipe=chosen,
        gears=check_gears(widths),
        steps=steps,
        agents=_agents(chosen, seeds, variants, cost_coefficients, discounts, learning_rates),
        boltzmann=task.boltzmann,
        hindsight=task.hindsight,
        evaluate_every=evaluate_every,
        evaluate_episodes=evaluate_episodes,
        checkpoint_every=_whole(checkpoint_every, chosen.chunk),
        log_every=_whole(max(1_000, steps // 500), chosen.chunk),
    )


def _agents(
    recipe: Recipe,
    seeds: Sequence[int],
    variants: Sequence[str],
    cost_coefficients: Sequence[float],
    discounts: Sequence[float] | None,
    learning_rates: Sequence[float] | None,
) -> tuple[AgentConfig, ...]:
    """Every combination once; a coefficient means nothing to an agent that does not pay."""
    for variant in variants:
        if variant not in VARIANTS:
            hint = "; two-large is a setting: --gears 64,64" if variant == "two-large" else ""
            raise LowgearError(f"unknown variant {variant!r}: choose from {', '.join(VARIANTS)}{hint}")
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            raise LowgearError(f"seed {seed} is outside 0 to {MAX_SEED}")
    for value in cost_coefficients:
        if not 0 <= value < float("inf"):
            raise LowgearError(f"cost coefficient {value}: write a number of 0 or more")
    for value in discounts or ():
        if not 0 <= value < 1:
            raise LowgearError(f"discount {value}: write a number from 0 to less than 1")
    for value in learning_rates or ():
        if not 0 < value < float("inf"):
            raise LowgearError(f"learning rate {value}: write a number above 0")
    agents = []
    for variant, coefficient, discount, rate, seed in itertools.product(
        variants,
        cost_coefficients,
        discounts or (recipe.discount,),
        learning_rates or (recipe.learning_rate,),
        seeds,
    ):
        pays = variant in ("asymmetric", "separate-buffers")
        agents.append(AgentConfig(variant, seed, coefficient if pays else 0.0, discount, rate))
    agents = list(dict.fromkeys(agents))
    if not agents:
        raise LowgearError("a run needs at least one agent: give --seeds and --variants")
    return tuple(agents)


def _check_recipe(recipe: Recipe) -> None:
    for name in (
        "batch",
        "replay",
        "master_units",
        "master_batch",
        "master_replay",
        "master_copy_every",
        "noise_hold",
        "period",
        "chunk",
    ):
        if getattr(recipe, name) < 1:
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)}: write 1 or more")
    if recipe.critic_units is not None and recipe.critic_units < 1:
        raise LowgearError(f"critic units {recipe.critic_units}: write 1 or more")


def _whole(steps: int, chunk: int) -> int:
    """Rounded up to whole chunks."""
    return -(-steps // chunk) * chunk
