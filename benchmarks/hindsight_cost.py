"""What hindsight adds to learning: a chunk of 64 updates with it and without, and drawing the batches alone.

    python benchmarks/hindsight_cost.py [--repetitions 40] [--json FILE]

The sizes are FetchPush's with the modern recipe: observations of 31 numbers, actions of 4, gears of 8 and 64 units,
critics of 128, batches of 256. Drawing is everything that comes before the updates (random numbers, rows, goals and
what they pay) and gathering the batches, in the same program with learners that only read what they are fed. The four
programs take turns within each repetition, in another order every time, so that a busy machine slows all of them; a
ratio is taken within its repetition, and printed as the median with the quartiles.
"""

import json
import os
import time
from dataclasses import dataclass

import click
import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.learning.dqn import Dqn
from lowgear.learning.sac import Sac
from lowgear.training.parallel import ParallelLearner
from lowgear.training.setup import method_of, parameters_of, tariff_of

TASK, EPISODE, PICK = find("FetchPush-v1"), 50, 5
GEARS, CRITICS = (8, 64), 128


def experience(columns, choices, agents, steps, rng):
    """Rows (agents, steps, width) of episodes of 50 steps, each cut into picks of five."""
    rows = rng.normal(size=(agents, steps, columns.width)).astype(np.float32)
    t = np.arange(steps)
    rows[..., columns.alive] = 1
    rows[..., columns.reward] = -1.0
    rows[..., columns.choice] = rng.integers(0, choices, (agents, -(-steps // PICK))).repeat(PICK, axis=1)[:, :steps]
    rows[..., columns.age] = t % PICK + 1
    rows[..., columns.closed] = t % PICK == PICK - 1
    rows[..., columns.ended] = t % EPISODE == EPISODE - 1
    return rows


@dataclass(frozen=True)
class ReadingSac(Sac):
    """Looks at every number it is fed, and learns nothing."""

    def update(self, state, batch, noise, agent, phase):  # noqa: ARG002
        return state, read((batch, noise))


@dataclass(frozen=True)
class ReadingDqn(Dqn):
    """Likewise in the master's place."""

    def update(self, state, batch, agent):  # noqa: ARG002
        return state, read(batch)


def read(fed):
    return {"read": sum(part.astype("float32").sum() for part in jax.tree.leaves(fed))}


def learner_of(agents, hindsight, capacity, chunk, reads):
    """A learner whose ring is full, compiled; with `reads` it draws its batches and does nothing else."""
    env = envs.make(TASK, 1)
    overrides = {"critic_units": CRITICS, "replay": capacity} | ({} if hindsight else {"hindsight_share": 0.0})
    config = resolve(TASK, gears=GEARS, seeds=range(agents), steps=10**8, overrides=overrides)
    method = method_of(config, env.spec, env.goal_rule)
    spec = env.spec
    env.close()
    if reads:
        gears = tuple(ReadingSac(**vars(learner)) for learner in method.gear_learners)
        method = method._replace(gear_learners=gears, master=ReadingDqn(**vars(method.master)))
    learner = ParallelLearner(method, parameters_of(config, spec, tariff_of(config, method.cost)), config.capacity)
    choices = method.master.choices
    rows = experience(method.replay.columns, choices, agents, config.capacity, np.random.default_rng(0))
    for begin in range(0, config.capacity, chunk):
        learner.insert(rows[:, begin : begin + chunk])
    seconds_of(learner, chunk)
    return learner


def seconds_of(learner, chunk):
    began = time.perf_counter()
    learner.start(chunk)
    learner.wait()
    return time.perf_counter() - began


def measure(agents, repetitions, capacity, chunk):
    """Seconds of each program in each repetition."""
    programs = {
        (what, hindsight): learner_of(agents, hindsight, capacity, chunk, what == "drawing")
        for what in ("chunk", "drawing")
        for hindsight in (True, False)
    }
    for _ in range(3):
        for learner in programs.values():
            seconds_of(learner, chunk)
    names, rng = list(programs), np.random.default_rng(0)
    seconds = {name: [] for name in names}
    for _ in range(repetitions):
        for place in rng.permutation(len(names)):
            seconds[names[place]].append(seconds_of(programs[names[place]], chunk))
    for learner in programs.values():
        learner.close()
    return {name: np.array(each) for name, each in seconds.items()}


def spread(sample):
    low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75])
    return {"median": middle, "lower_quartile": low, "upper_quartile": high}


@click.command()
@click.option("--repetitions", default=40, show_default=True)
@click.option("--capacity", default=100_000, show_default=True, help="Steps in each agent's ring.")
@click.option("--chunk", default=64, show_default=True, help="Updates at a time.")
@click.option("--json", "json_path", default=None)
def main(repetitions, capacity, chunk, json_path):
    found = {}
    for agents in (1, 4):
        seconds = measure(agents, repetitions, capacity, chunk)
        name = f"{agents} agent{'s' if agents > 1 else ''}"
        table = Table(f"{name}, {chunk} updates", "without, ms", "with hindsight, ms", "ratio")
        found[name] = {}
        for what in ("chunk", "drawing"):
            times = [spread(1e3 * seconds[what, hindsight]) for hindsight in (False, True)]
            ratio = spread(seconds[what, True] / seconds[what, False])
            found[name][what] = {"without_ms": times[0], "with_ms": times[1], "ratio": ratio}
            label = {"chunk": "the whole chunk", "drawing": "drawing alone"}[what]
            table.add_row(label, *(shown(each, 1) for each in times), shown(ratio, 3))
        shares = [spread(seconds["drawing", hindsight] / seconds["chunk", hindsight]) for hindsight in (False, True)]
        found[name]["drawing_share"] = {"without": shares[0], "with": shares[1]}
        table.add_row("drawing over the chunk", *(shown(each, 3) for each in shares), "")
        Console(width=120).print(table)
    Console(width=120).print(f"{os.cpu_count()} cores, {jax.default_backend()}, jax {jax.__version__}")
    if json_path:
        with open(json_path, "w") as file:
            json.dump(found, file, indent=1)


def shown(found, digits):
    return (
        f"{found['median']:.{digits}f} ({found['lower_quartile']:.{digits}f} to {found['upper_quartile']:.{digits}f})"
    )


if __name__ == "__main__":
    main()
