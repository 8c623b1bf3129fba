"""Whether one pair of critics for all gears learns as well as a pair for each gear, and what it saves.

    python benchmarks/shared_critics.py cartpole-swingup --steps 100000 --seeds 0-3 --json out.json

Trains the same population three ways in turn, with the same seeds and settings:

apart  the product as it is: every gear has critics and targets of its own.
large  only the largest gear has critics, and learns as ever; the smaller gears' actors climb them.
mixed  one pair too, but the next action of each row's target, its log density and its temperature come from a gear
       drawn at random.

Every way runs its learners as one job, so that times compare. Gears that share critics take one backward pass and one
Adam update together, and all their actors' actions go through the critics in one product. Each gear still learns from
rows of its own. Critics that are shared value their batches before each update, not before a chunk of them as the
product does. Tasks without goals only: hindsight is left out, and so are separate buffers.

Prints how fast each way trained, compiling not counted, how long an update takes alone, and returns over seeds: as the
master drives at each coefficient, and with each agent's smallest or largest gear alone.
"""

import json
import statistics
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import click
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from rich.console import Console
from rich.table import Table

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import at_settings, play_policies, summarise
from lowgear.learning import dqn, method, normalisation, replay, rng, sac
from lowgear.learning.networks import Mlp, critic_values, sample_action
from lowgear.learning.replay import Replay
from lowgear.policy.files import write_whole
from lowgear.training.loop import Training
from lowgear.training.parallel import Learner
from lowgear.training.provenance import provenance

WAYS = ("apart", "large", "mixed")
MIX = 16  # the purpose of the numbers that draw a target's gear, past those of lowgear.learning.rng
WARM = 4  # chunks of updates before the clock starts: the first compiles


class Joint(NamedTuple):
    """What the gradient moves of gears that share critics; in this order a single gear's lie as in SacParams."""

    actors: tuple[Mlp, ...]
    critics: Mlp
    log_alphas: tuple[jax.Array, ...]


class Batch(NamedTuple):
    """What the gears of one agent learn from at once."""

    steps: tuple[sac.Transitions, ...]  # each gear's own
    normal: tuple[jax.Array, ...]  # each gear's, (2, B, act): next actions, then current ones
    mix: jax.Array | None  # (B,) int32: the gear whose next action each row's target takes; None: the largest's


def gather(parts):
    """The joint of several gears' SacParams: the critics are the largest gear's."""
    return Joint(tuple(p.actor for p in parts), parts[-1].critics, tuple(p.log_alpha for p in parts))


def join(gears):
    """One agent's gears as one state, which moves the largest gear's critics alone."""
    shapes = [ravel_pytree(gear.params)[1] for gear in gears]

    def moments(name):
        flat = [getattr(gear.adam, name) for gear in gears]
        return ravel_pytree(gather([shape(f) for shape, f in zip(shapes, flat, strict=True)]))[0]

    adam = gears[-1].adam._replace(mu=moments("mu"), nu=moments("nu"))
    return sac.SacState(gather([gear.params for gear in gears]), gears[-1].target_critics, adam)


def part(joint, gears):
    """Back to states of single gears; what belongs to a smaller gear's critics stays as it was in `gears`."""
    shape = ravel_pytree(joint.params)[1]
    last = len(gears) - 1

    def spread(whole, params, g):
        new = params._replace(actor=whole.actors[g], log_alpha=whole.log_alphas[g])
        return new._replace(critics=whole.critics) if g == last else new

    def one(gear, g):
        own = ravel_pytree(gear.params)[1]
        mu, nu = (
            ravel_pytree(spread(shape(getattr(joint.adam, name)), own(getattr(gear.adam, name)), g))[0]
            for name in ("mu", "nu")
        )
        target = joint.target_critics if g == last else gear.target_critics
        return sac.SacState(spread(joint.params, gear.params, g), target, joint.adam._replace(mu=mu, nu=nu))

    return tuple(one(gear, g) for g, gear in enumerate(gears))


def soft_value(fixed, target_critics, batch, settings):
    """The value of the largest gear's next observations, (B,), under the gears that `batch.mix` names."""
    observation, normal = batch.steps[-1].next_observation, batch.normal[-1][0]
    candidates = range(len(fixed.actors)) if batch.mix is not None else [len(fixed.actors) - 1]
    drawn = [sample_action(fixed.actors[g], observation, normal, settings.actor_activation) for g in candidates]
    action, log_density = drawn[-1]
    alpha = jnp.exp(fixed.log_alphas[-1])
    if batch.mix is not None:
        for g, (other, density) in enumerate(drawn[:-1]):
            mine = batch.mix == g
            action = jnp.where(mine[:, None], other, action)
            log_density = jnp.where(mine, density, log_density)
            alpha = jnp.where(mine, jnp.exp(fixed.log_alphas[g]), alpha)
    return critic_values(target_critics, observation, action, settings.critic_style).min(axis=0) - alpha * log_density


def losses(params, target_critics, batch, settings):
    """As sac.losses, with one critics' loss, and an actor's and a temperature's for each gear."""
    fixed, last = jax.lax.stop_gradient(params), len(params.actors) - 1
    steps = batch.steps[-1]
    target = steps.reward + steps.discount * soft_value(fixed, target_critics, batch, settings)
    target = jax.lax.stop_gradient(target)
    value = critic_values(params.critics, steps.observation, steps.action, settings.critic_style)
    critic_loss = 0.5 * jnp.square(value - target[None]).mean(axis=1).sum()

    drawn = [
        sample_action(actor, own.observation, normal[1], settings.actor_activation)
        for actor, own, normal in zip(params.actors, batch.steps, batch.normal, strict=True)
    ]
    seen = jnp.concatenate([own.observation for own in batch.steps])
    done = jnp.concatenate([action for action, _ in drawn])
    climbed = critic_values(fixed.critics, seen, done, settings.critic_style).min(axis=0)
    total, metrics = critic_loss, {f"gear{last}_critic_loss": critic_loss, f"gear{last}_value": value.mean()}
    for g, ((_, log_density), reached) in enumerate(zip(drawn, jnp.split(climbed, last + 1), strict=True)):
        alpha = jnp.exp(fixed.log_alphas[g])
        entropy = -jax.lax.stop_gradient(log_density).mean()
        total = total + (alpha * log_density - reached).mean()
        total = total + params.log_alphas[g] * (entropy - settings.target_entropy)
        metrics |= {f"gear{g}_entropy": entropy, f"gear{g}_alpha": alpha}
    return total, metrics


def update(joint, batch, learning_rate, settings):
    """One gradient step on all gears, as sac.update takes it on one."""
    grads, metrics = jax.grad(losses, has_aux=True)(joint.params, joint.target_critics, batch, settings)
    steps, adam = sac.ADAM.update(grads, joint.adam)
    params = jax.tree.map(lambda p, s: p - learning_rate * s, joint.params, steps)
    target = jax.tree.map(lambda t, p: t + settings.target_rate * (p - t), joint.target_critics, params.critics)
    return sac.SacState(params, target, adam), metrics


def batch_of(rows, knobs, seen, draws, mix, method):
    """One agent's gears' batches, out of its ring."""
    steps = [replay.transitions(rows, draw.rows, knobs.discount, method.replay.columns) for draw in draws]
    if seen is not None:
        steps = [normalisation.see(own, seen) for own in steps]
    normal = tuple(draw.chance.reshape(2, method.batch, method.act_dim) for draw in draws)
    return Batch(tuple(steps), normal, mix)


def learn(learners, ring, knobs, time, which, updates, method, seen=None, *, mixed):
    """In place of method.learn: all learners of the agents, the gears with one pair of critics."""
    gears, last = len(method.gears), len(method.gears) - 1
    assert which == tuple(range(gears + 1)), "gears that share critics learn in one job"
    assert method.goals is None
    ring = replay.by_agent(ring, method.replay.lanes)

    def agent(joint, master, rows, knobs, seen, draws, mix):
        batch = batch_of(rows, knobs, seen, draws[:-1], mix, method)
        joint, metrics = update(joint, batch, knobs.learning_rate, method.sac)
        picks = method._picks(rows, knobs, seen, draws[-1], method)
        master, found = dqn.update(master, picks, knobs.master_learning_rate, method.dqn)
        return joint, master, metrics | {f"master_{name}": value for name, value in found.items()}

    def body(states, chance):
        joint, master, metrics = jax.vmap(agent)(*states, ring.rows, knobs, seen, *chance)
        return (joint, master), metrics

    def gear_of_row(seed, at):
        uniform = rng.uniform(seed, rng.stream(MIX, last), at, method.batch)
        return jnp.minimum((uniform * gears).astype(jnp.int32), last)

    times = time + jnp.arange(updates)
    agents = Replay(0, 0, None if ring.episodes is None else 0, None)
    draws = tuple(
        jax.vmap(jax.vmap(partial(method._draw, number, method), (0, agents, None)), (None, None, 0))(
            knobs.seed, ring, times
        )
        for number in which
    )
    mix = jax.vmap(jax.vmap(gear_of_row, (0, None)), (None, 0))(knobs.seed, times) if mixed else None
    states = (jax.vmap(join)(learners[:-1]), learners[-1])
    (joint, master), metrics = jax.lax.scan(body, states, (draws, mix))
    # With shared buffers every learner has rows to draw by now: none need stay as it was.
    new_learners = (*jax.vmap(part)(joint, learners[:-1]), master)
    return new_learners, jax.tree.map(lambda m: m.mean(axis=0), metrics)


class Clock:
    """Listens to a training and tells its speed from when all its programs are compiled."""

    def __init__(self, config):
        self._from = config.recipe.random_steps + WARM * config.recipe.chunk
        self._marks = []

    def on_log(self, lines):
        pass

    def on_evaluation(self, lines):
        pass

    def on_steps(self, steps):
        if steps >= self._from:
            self._marks.append((steps, time.perf_counter()))

    def steps_per_second(self):
        """Of one agent."""
        (first, began), (last, ended) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began)


def training_of(config, way):
    """A population that will train one of the ways, as one job."""
    whole = mock.patch("lowgear.training.loop.Learner", partial(Learner, cores=1))
    # Learner compiles the function that it finds when it is made.
    own = mock.patch.object(method, "learn", partial(learn, mixed=way == "mixed"))
    with whole:
        if way == "apart":
            return Training(config, make_env(config, config.environments), None)
        with own:
            return Training(config, make_env(config, config.environments), None)


def check(config, ways):
    for way in ways:
        if way not in WAYS:
            raise LowgearError(f"--ways {way!r}: choose from {', '.join(WAYS)}")
    if config.learners != tuple(range(len(config.gears) + 1)):
        raise LowgearError("--variants: without an agent whose master picks, not all gears learn; add asymmetric")
    if any(agent.variant == "separate-buffers" for agent in config.agents):
        raise LowgearError("--variants separate-buffers: gears with rows of their own alone can't share critics")
    least = config.recipe.random_steps + (WARM + 2) * config.recipe.chunk
    if config.steps < least:
        raise LowgearError(f"--steps {config.steps}: too few to time; write {least} or more")
    env = make_env(config, 1)
    has_goals = env.spec.desired_goal is not None
    env.close()
    if has_goals:
        raise LowgearError(f"{config.task} has goals: this trial leaves hindsight out, choose a task without")


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
    master = "boltzmann" if config.boltzmann else "greedy"
    played = play_policies([policy for _, policy, _ in named], partial(make_env, config), episodes, master, 0)
    lines = []
    for place, (number, policy, name) in enumerate(named):
        header = policy.header
        forced = header.forced_gear is not None
        lines.append(
            {"agent": number, "player": name, "seed": header.seed}
            | {"cost_coefficient": None if forced else header.cost_coefficient}
            | summarise(played, place, header.prices)
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
