"""Whether one pair of critics for all gears learns as well as a pair for each gear, and what it saves.

    python benchmarks/shared_critics.py cartpole-swingup --steps 100000 --seeds 0-3 --json out.json

Trains the same population three ways in turn, with the same seeds and settings:

apart  the product as it is: every gear has critics and targets of its own.
large  one pair of critics, whose targets act with the largest gear; the actors of all gears climb them.
mixed  one pair too, but the next action of each transition's target comes from a gear drawn at random.

The two other ways are one more `GearLearner` that trains all gears at once, on batches that they share. Prints how fast
each way trained, compiling not counted, how long an update takes alone, and returns over seeds: as the master drives at
each coefficient, and with each agent's smallest or largest gear alone. Left out: separate buffers,
rates of their own for actors, and the rescaling of critics.
"""

import json
import statistics
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.table import Table

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import at_settings, play_policies, summarise
from lowgear.learning.networks import Mlp, critic_values, init_actor, init_critics, sample_action
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.learning.sac import Sac, SacSettings, combine
from lowgear.policy.files import write_whole
from lowgear.training.loop import Listener, Training
from lowgear.training.provenance import provenance
from lowgear.training.setup import sac_learners

WAYS = ("apart", "large", "mixed")
WARM = 4  # chunks of updates before the clock starts: the first compiles


class Params(NamedTuple):
    """What the gradient moves."""

    actors: tuple[Mlp, ...]
    critics: Mlp
    log_alpha: jax.Array  # (gears,)


class State(NamedTuple):
    params: Params
    target_critics: Mlp
    adam: optax.OptState


@dataclass(frozen=True)
class SharedCritics:
    """SAC for all gears with one pair of critics."""

    gear_numbers: tuple[int, ...]
    singles: tuple[Sac, ...]  # what each gear would have alone
    mixed: bool
    cycle: int = 1

    @property
    def batch(self) -> int:
        return self.singles[-1].batch

    @property
    def noise_dim(self) -> int:
        """A next action, an action of each gear, and a number that draws the target's gear."""
        return (1 + len(self.gear_numbers)) * self.act_dim + 1

    @property
    def act_dim(self) -> int:
        return self.singles[-1].act_dim

    @property
    def settings(self) -> SacSettings:
        return self.singles[-1].settings

    def init(self, key):
        critic_key, *actor_keys = jax.random.split(key, len(self.gear_numbers) + 1)
        large = self.singles[-1]
        critics = init_critics(critic_key, large.obs_dim, large.act_dim, large.critic_units)
        actors = tuple(
            init_actor(actor_key, sac.obs_dim, sac.act_dim, sac.units)
            for actor_key, sac in zip(actor_keys, self.singles, strict=True)
        )
        log_alpha = jnp.full(len(self.gear_numbers), jnp.log(jnp.float32(self.settings.first_alpha)))
        params = Params(actors, critics, log_alpha)
        return State(params, jax.tree.map(jnp.copy, critics), ADAM.init(params))

    def update(self, state, batch, noise, agent, phase):  # noqa: ARG002
        actions, mix = jnp.split(noise, [self.batch * (self.noise_dim - 1)])
        actions = actions.reshape(1 + len(self.gear_numbers), self.batch, self.act_dim)
        target = self.targets(state, batch, actions[0], mix, agent)
        grads, metrics = jax.grad(self.losses, has_aux=True)(state.params, batch, target, actions[1:], agent)
        params, adam = adam_step(state.params, grads, state.adam, agent.learning_rate)
        rate = agent.target_rate
        target_critics = jax.tree.map(lambda t, p: t + rate * (p - t), state.target_critics, params.critics)
        return State(params, target_critics, adam), metrics

    def actors(self, state):
        return state.params.actors

    def flops(self):
        """Each gear's actor as ever, the critics' targets and fit once."""
        large = self.singles[-1]
        alone = replace(large, units=0).flops()
        climb = sum(sac.flops() - replace(sac, units=0).flops() for sac in self.singles)
        return alone + climb

    def targets(self, state, batch, noise, mix, agent):
        params, settings = state.params, self.settings
        last = len(self.gear_numbers) - 1
        sampled = [
            sample_action(actor, batch.next_observation, noise, settings.actor_activation) for actor in params.actors
        ]
        gear = jnp.full(self.batch, last)
        if self.mixed:
            gear = jnp.minimum((jax.scipy.stats.norm.cdf(mix) * len(self.gear_numbers)).astype(jnp.int32), last)
        rows = jnp.arange(self.batch)
        action = jnp.stack([action for action, _ in sampled])[gear, rows]
        log_density = jnp.stack([density for _, density in sampled])[gear, rows]
        values = critic_values(state.target_critics, batch.next_observation, action, settings.critic_style)
        value = combine(values, agent.pessimism)
        target = batch.reward + batch.discount * (value - jnp.exp(params.log_alpha)[gear] * log_density)
        if settings.value_bounds is None:
            return target
        low, high = settings.value_bounds
        return jnp.clip(target, low / agent.reward_scale, high / agent.reward_scale)

    def losses(self, params, batch, target, noise, agent):
        fixed, settings = jax.lax.stop_gradient(params), self.settings
        value = critic_values(params.critics, batch.observation, batch.action, settings.critic_style)
        critic_loss = 0.5 * jnp.square(value - target[None]).mean(axis=1).sum()
        total, metrics = critic_loss, {"critic_loss": critic_loss, "value": value.mean()}
        for g, actor in enumerate(params.actors):
            action, log_density = sample_action(actor, batch.observation, noise[g], settings.actor_activation)
            values = critic_values(fixed.critics, batch.observation, action, settings.critic_style)
            climbed = combine(values, agent.pessimism)
            entropy = -jax.lax.stop_gradient(log_density).mean()
            total = total + (jnp.exp(fixed.log_alpha[g]) * log_density - climbed).mean()
            total = total + params.log_alpha[g] * (entropy - agent.target_entropy)
            metrics[f"entropy{g}"] = entropy
        return total, metrics


def shared_learners(config, spec, goals, *, mixed):
    """One learner for all gears."""
    return (SharedCritics(tuple(range(len(config.gears))), sac_learners(config, spec, goals), mixed),)


class Clock(Listener):
    """Listens to a training and tells its speed from when all its programs are compiled."""

    def __init__(self, config):
        self._from = config.recipe.random_steps + WARM * config.recipe.chunk
        self._marks = []

    def on_steps(self, steps):
        if steps >= self._from:
            self._marks.append((steps, time.perf_counter()))

    def steps_per_second(self):
        """Of one agent."""
        (first, began), (last, ended) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began)


def training_of(config, way):
    """A population that will train one of the ways."""
    make = sac_learners if way == "apart" else partial(shared_learners, mixed=way == "mixed")
    return Training(config, make_env(config, config.environments), None, make_learners=make)


def check(config, ways):
    for way in ways:
        if way not in WAYS:
            raise LowgearError(f"--ways {way!r}: choose from {', '.join(WAYS)}")
    if all(agent.forced_gear(config.gears) is not None for agent in config.agents):
        raise LowgearError("--variants: without an agent whose master picks, not all gears learn; add asymmetric")
    if any(agent.variant == "separate-buffers" for agent in config.agents):
        raise LowgearError("--variants separate-buffers: gears with rows of their own alone can't share critics")
    least = config.recipe.random_steps + (WARM + 2) * config.recipe.chunk
    if config.steps < least:
        raise LowgearError(f"--steps {config.steps}: too few to time; write {least} or more")


def scores(config, training, coefficients, episodes):
    """A line for each agent and setting, and for the smallest and the largest gear of each whose master picks."""
    policies = [training.policy(agent) for agent in range(len(config.agents))]
    numbered = at_settings(policies, coefficients) if coefficients else list(enumerate(policies))
    named = [(number, policy, policy.header.variant) for number, policy in numbered]
    for name, gear in (("small", 0), ("large", len(config.gears) - 1)):
        named += [
            (
                number,
                replace(policy, header=replace(policy.header, forced_gear=gear)),
                f"{policy.header.variant}: {name} alone",
            )
            for number, policy in enumerate(policies)
            if policy.header.forced_gear is None
        ]
    players = [policy for _, policy, _ in named]
    played = play_policies(players, partial(make_env, config), episodes, config.master, 0)
    lines = []
    for place, (number, policy, name) in enumerate(named):
        header = policy.header
        forced = header.forced_gear is not None
        lines.append(
            {"agent": number, "player": name, "seed": header.seed}
            | {"cost_coefficient": None if forced else header.cost_coefficient}
            | summarise(played, place, header.cost)
        )
    return lines


def update_times(learners, chunk, repetitions):
    """Microseconds of an update of the whole population, for each way; the ways take turns."""
    seconds = {way: [] for way in learners}
    for _ in range(repetitions):
        for way, learner in learners.items():
            began = time.perf_counter()
            learner.start(chunk)
            learner.wait()
            seconds[way].append(time.perf_counter() - began)
    return {
        way: dict(
            zip(
                ("lower_quartile", "median", "upper_quartile"),
                1e6 * np.quantile(each, [0.25, 0.5, 0.75]) / chunk,
                strict=True,
            )
        )
        for way, each in seconds.items()
    }


@click.command()
@click.argument("task")
@click.option("--steps", default=100_000, show_default=True)
@click.option("--seeds", default="0-3", show_default=True)
@click.option("--variants", default="asymmetric", show_default=True, help="Asymmetric and others, in one population.")
@click.option("--gears", default=None, help="Widths, if not the task's.")
@click.option("--cost-coefficients", default=None, help="Evaluated settings; the ends are the dial's too.")
@click.option("--episodes", default=10, show_default=True)
@click.option("--ways", default=",".join(WAYS), show_default=True)
@click.option("--repetitions", default=40, show_default=True, help="Chunks of updates timed alone.")
@click.option("--json", "json_path", default=None, type=click.Path(path_type=Path))
def main(json_path, **options):
    try:
        for found in compare(options):
            if json_path:
                write_whole(json_path, json.dumps(found, indent=1).encode())
        show(found)
    except LowgearError as error:
        raise click.ClickException(str(error)) from None


def compare(options):
    """All that is measured, as the JSON file keeps it: what is known so far after each way, the whole at last."""
    coefficients = options["cost_coefficients"]
    coefficients = lists.numbers("--cost-coefficients", coefficients) if coefficients else None
    config = resolve(
        tasks.find(options["task"]),
        steps=options["steps"],
        seeds=lists.integers("--seeds", options["seeds"]),
        variants=lists.words(options["variants"]),
        gears=lists.integers("--gears", options["gears"]) if options["gears"] else None,
        cost_coefficients=coefficients,
        evaluate_every=0,
    )
    ways = lists.words(options["ways"])
    check(config, ways)
    found = {"provenance": provenance(), "config": config.to_json(), "episodes": options["episodes"]}
    found |= {"agent_steps_per_second": {}, "update_us": {}, "found": []}
    trainings = {}
    for way in ways:
        trainings[way], clock = training_of(config, way), Clock(config)
        trainings[way].run([clock])
        found["agent_steps_per_second"][way] = len(config.agents) * clock.steps_per_second()
        lines = scores(config, trainings[way], coefficients, options["episodes"])
        found["found"] += [{"way": way} | line for line in lines]
        print(f"{config.task} {way}: {found['agent_steps_per_second'][way]:.0f} agent-steps/s", flush=True)
        yield found
    learners = {way: training.learner for way, training in trainings.items()}
    found["update_us"] = update_times(learners, config.recipe.chunk, options["repetitions"])
    for training in trainings.values():
        training.close()
    yield found


def show(found):
    agents, console = len(found["config"]["agents"]), Console(width=120)
    times = Table("critics", "agent-steps/s", f"an update of {agents} agents, µs (quartiles)", "to the first")
    first = next(iter(found["update_us"].values()))["median"]
    for way, us in found["update_us"].items():
        spread = f"{us['median']:.0f} ({us['lower_quartile']:.0f} to {us['upper_quartile']:.0f})"
        times.add_row(way, f"{found['agent_steps_per_second'][way]:.0f}", spread, f"{us['median'] / first:.2f}")
    groups = {}
    for line in found["found"]:
        groups.setdefault((line["player"], line["cost_coefficient"], line["way"]), []).append(line)
    order = {way: place for place, way in enumerate(found["update_us"])}
    players = list(dict.fromkeys(line["player"] for line in found["found"]))
    table = Table("player", "λ", "critics", "return", "each seed", "FLOPs saved")
    for key in sorted(groups, key=lambda k: (players.index(k[0]), k[1] or 0, order[k[2]])):
        player, coefficient, way = key
        returns = [line["return_mean"] for line in groups[key]]
        deviation = statistics.stdev(returns) if len(returns) > 1 else 0.0
        table.add_row(
            player,
            "" if coefficient is None else f"{coefficient:g}",
            way,
            f"{statistics.mean(returns):.1f} ± {deviation:.1f}",
            " ".join(f"{value:.0f}" for value in returns),
            f"{statistics.mean(line['flops_reduction'] for line in groups[key]):.3f}",
            end_section=way == list(order)[-1],
        )
    console.print(f"{found['config']['task']}, {found['config']['steps']} steps, {found['provenance']['device']}")
    console.print(times)
    console.print(table)


if __name__ == "__main__":
    main()
