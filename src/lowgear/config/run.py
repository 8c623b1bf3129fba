"""What defines a run: the task, the recipe, the agents. Resolved once, kept in config.json."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lowgear import LowgearError
from lowgear.config import recipes, settings
from lowgear.config.agents import AgentConfig, agent_from_json, check_relative, combined
from lowgear.config.gears import Frozen, GivenGear, arrange, check_gears, read_digests
from lowgear.config.ranges import MOST_AGENTS, MOST_STEPS, check_recipe
from lowgear.config.recipes import Recipe
from lowgear.config.tasks import Task
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.gears import Gear, read_gear
from lowgear.policy.header import MOST_GEARS

ANY_GEARS = (16, 128)  # of tasks without a preset
ENVIRONMENTS_ACCELERATED = 4
EARLIER_FIELDS = ("dial_reach", "goal_scale", "goal_normalise")  # of recipes that earlier versions wrote


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
        """Hidden width of each gear's critics: its own, or, with `critic_units`, that or the widest trained gear's."""
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
        recipe = _recipe_from_json(fields.entries("recipe", entry(raw, "recipe")))
        gears, frozen = [read_gear(gear) for gear in _listed(raw, "gears")], read_digests(raw.get("frozen", []))
        listed = _listed(raw, "agents", MOST_AGENTS)
        agents = tuple(agent_from_json(fields.entries("an agent", agent)) for agent in listed)
        check_relative(recipe, agents)
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
            agents=agents,
            boltzmann=fields.flag("boltzmann", entry(raw, "boltzmann")),
            **numbers,
        )


def _recipe_from_json(raw: dict[str, Any]) -> Recipe:
    """A recipe back from config.json, checked; settings that it does not have are the paper's."""
    name = fields.word("name of recipe", entry(raw, "name"))
    found = {key: value for key, value in raw.items() if key not in (*EARLIER_FIELDS, "name")}
    recipe = replace(Recipe(name=name), **settings.checked(found))
    check_recipe(recipe)
    return recipe


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
    gears: Sequence[GivenGear] | None = None,
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
    cost_coefficients = None if cost_coefficients is None or not len(cost_coefficients) else tuple(cost_coefficients)
    chosen = replace(recipes.find(recipe, task.name), **overrides)
    # Defaults give way to what was asked for.
    if "known_prices" not in overrides and not chosen.can_know_prices:
        chosen = replace(chosen, known_prices=False)
    if accelerator and "environments" not in overrides:
        chosen = replace(chosen, environments=_environments(chosen, task))
    check_recipe(chosen)
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
        agents=combined(chosen, seeds, variants, (cost_coefficients, task.cost_coefficient), discounts, learning_rates),
        boltzmann=task.boltzmann and chosen.sample_master,
        evaluate_every=whole_chunks(evaluate_every, chosen.chunk),
        evaluate_episodes=evaluate_episodes,
        checkpoint_every=whole_chunks(checkpoint_every, chosen.chunk),
        log_every=whole_chunks(max(1_000, steps // 500), chosen.chunk),
    )


def _environments(recipe: Recipe, task: Task) -> int:
    """Of each agent, where an accelerator learns: more if EnvPool's threads step them and they share chunks evenly."""
    if recipe.name != "modern" or task.source != "envpool":
        return recipe.environments
    return math.gcd(ENVIRONMENTS_ACCELERATED, recipe.chunk)


def whole_chunks(steps: int, chunk: int) -> int:
    """Rounded up to whole chunks."""
    return -(-steps // chunk) * chunk
