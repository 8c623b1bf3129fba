"""How the small gear around a frozen policy should come about: three ways, same seeds, steps and starts.

    python benchmarks/slim_ways.py sb3/ppo-pendulum.zip gym:Pendulum-v1 --normalise sb3/ppo-pendulum.npz --units 16 \
        --out runs/slim-ways --json results/slim/ways-pendulum.json

distilled  what `lowgear slim` does: a DAgger student, frozen; only masters learn.
sac        SAC from nothing, with the frozen policy's steps in its buffer: `lowgear train --gears 16,large.safetensors`.
both       SAC whose actor begins as the student. Its critics learn for a tenth of the steps before it moves.

Each way's masters, one for each seed, are tuned to the demand as `slim` does and reported on starts that nothing was
chosen by. `both` sees observations as they are: a student's first layer has its own normalisation, which the running
statistics of a training would shift.
"""

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import jax
import jax.numpy as jnp
import optax

from lowgear.commands import lists
from lowgear.config.gears import freeze
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.evaluation.imported import import_policy
from lowgear.learning.networks import Layer
from lowgear.learning.sac import Sac
from lowgear.policy.file import load
from lowgear.policy.files import write_whole
from lowgear.studies import slim, slimmed
from lowgear.studies.run_store import RunStore
from lowgear.training.loop import Training
from lowgear.training.provenance import provenance
from lowgear.training.setup import sac_learners

WAYS = ("distilled", "sac", "both")
CRITICS_FIRST = 0.1  # of the updates


@dataclass(frozen=True)
class Started(Sac):
    """SAC whose actor begins as a given network and stays so for its first updates."""

    student: Path | None = None
    held_updates: int = 0

    def init(self, key):
        state = super().init(key)
        network = load(self.student).weights.gears[0]
        actor = tuple(Layer(jnp.asarray(weight[0]), jnp.asarray(bias[0])) for weight, bias in network)
        return state._replace(params=state.params._replace(actor=actor))

    def update(self, state, batch, noise, agent, phase):
        new, metrics = super().update(state, batch, noise, agent, phase)
        held = optax.tree_utils.tree_get(state.critic_adam, "count") < self.held_updates
        actor = jax.tree.map(lambda a, b: jnp.where(held, a, b), state.params.actor, new.params.actor)
        return new._replace(params=new.params._replace(actor=actor)), metrics


def started_learners(student, held_updates, config, spec, goals):
    return tuple(
        Started(**vars(one), student=student, held_updates=held_updates) for one in sac_learners(config, spec, goals)
    )


def train(request, way, student, large, out):
    """The masters of one way, and the minutes they took."""
    gears = (student if way == "distilled" else request.widths[0], large)
    config = request.groups(gears)[0].config
    make = partial(make_env, config)
    learners = sac_learners
    if way == "both":
        learners = partial(started_learners, student, round(CRITICS_FIRST * request.steps))
    began = time.perf_counter()
    directory = RunDirectory(out / way)
    directory.create(config, provenance())
    training = Training(config, make(config.environments), make, directory, make_learners=learners)
    try:
        training.run()
        policies = [training.policy(agent) for agent in range(len(config.agents))]
    finally:
        training.close()
    return policies, (time.perf_counter() - began) / 60


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("task")
@click.option("--normalise", type=click.Path(path_type=Path))
@click.option("--units", default=16, show_default=True)
@click.option("--keep-return", default=0.97, show_default=True)
@click.option("--steps", default=50_000, show_default=True)
@click.option("--seeds", default="0-2", show_default=True)
@click.option("--episodes", default=40, show_default=True)
@click.option("--ways", default=",".join(WAYS), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(path, task, normalise, units, keep_return, steps, seeds, episodes, ways, out, json_path):
    policy = load(path) if path.suffix == ".safetensors" else import_policy(path, task, normalise=normalise).policy
    large = freeze(policy).read
    numbers = tuple(lists.integers("--seeds", seeds))
    found = {"task": task, "units": units, "keep": keep_return, "steps": steps, "seeds": numbers, "ways": {}}
    store = RunStore(out)
    out.mkdir(parents=True, exist_ok=True)
    large_path = out / slim.LARGE
    large.save(large_path)
    for way in ways.split(","):
        overrides = {"normalise_observations": False} if way == "both" else {}
        request = slim.Request(find(task), large, keep_return, (units,), numbers, steps, episodes, overrides=overrides)
        student = slim.student(request, store, units, slim.episode_steps(request))
        policies, minutes = train(request, way, student, large_path, out)
        candidates = slim.tuned(request, policies, lambda _: None)
        rows = []
        for candidate in candidates:
            pair = {slimmed.ITSELF: large, way: candidate.policy}
            rows.append(slimmed.rows(pair, slim.confirm(request, pair, lambda _: None))[1] | {"meets": candidate.meets})
            shown = {key: rows[-1][key] for key in ("kept", "flops_reduction", "large_share", "meets")}
            click.echo(f"{way}: {shown}")
        found["ways"][way] = {"minutes": minutes, "seeds": rows}
    if json_path is not None:
        write_whole(json_path, json.dumps(found | {"provenance": provenance()}, indent=1).encode())


if __name__ == "__main__":
    main()
