"""Trains masters alone, on the gears of a run that is there: what a setting does to the dial, in minutes.

    python benchmarks/masters.py runs/NAME --steps 20000 --setting '{"known_prices": false}' --setting '{}' --json FILE

Every dial agent of the run lends its gears, which act and no longer learn. For each setting of the recipe: returns and
FLOPs saved along the dial, means over agents, and how often a higher setting of an agent's dial costs more than a
lower one, beyond the intervals of both. Returns are those of gears that were trained with other masters.
"""

import json
import time
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import at_settings, play_policies, summarise
from lowgear.learning.networks import Layer, init_mlp
from lowgear.policy.file import load as load_policy
from lowgear.policy.files import write_whole
from lowgear.policy.networks import stack
from lowgear.training.loop import Training
from lowgear.training.provenance import provenance


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--steps", default=20_000, show_default=True)
@click.option("--setting", "settings", multiple=True, default=("{}",), help="JSON of recipe fields, repeatable")
@click.option("--frontier", default=6, show_default=True, help="Settings along the dial.")
@click.option("--episodes", default=20, show_default=True)
@click.option("--json", "json_path", default=None, type=click.Path(path_type=Path))
def main(run, steps, settings, frontier, episodes, json_path):
    files = sorted((run / "policies").glob("agent*.safetensors"), key=lambda path: (len(path.name), path.name))
    policies = [policy for policy in map(load_policy, files) if policy.turns]
    if not policies:
        raise click.ClickException(f"{run} has no agent with a dial")
    found = []
    for setting in settings:
        began = time.perf_counter()
        masters = trained(policies, steps, json.loads(setting))
        print(f"{setting}: {len(policies)} masters, {time.perf_counter() - began:.0f} s", flush=True)
        config = config_of(policies, steps, json.loads(setting))
        numbered = at_settings(masters, frontier)
        played = play_policies([p for _, p in numbered], partial(make_env, config), episodes, "greedy", 0)
        for place, (number, policy) in enumerate(numbered):
            line = {"setting": setting, "agent": number, "cost_coefficient": policy.header.cost_coefficient}
            found.append(line | summarise(played, place, policy.header.cost))
    if json_path:
        header = policies[0].header
        about = {"task": header.task, "gears_steps": header.steps, "steps": steps, "episodes": episodes}
        text = json.dumps(about | {"provenance": provenance(), "found": found}, indent=1)
        write_whole(json_path, text.encode())
    show(found, settings)


def config_of(policies, steps, overrides):
    header = policies[0].header
    return resolve(
        tasks.find(header.task),
        "modern",
        gears=header.gears,
        seeds=range(len(policies)),
        steps=steps,
        cost_coefficients=tuple(header.dial) if header.cost_unit is None else None,  # relative ones are found again
        evaluate_every=0,
        overrides=overrides,
    )


@dataclass(frozen=True)
class Frozen:
    """A gear that acts and does not learn, as a `GearLearner`; its weights are put into its state afterwards."""

    gear: int
    sizes: tuple[int, ...]
    batch = noise_dim = cycle = 1

    @property
    def gears(self):
        return (self.gear,)

    def init(self, key):
        return init_mlp(key, self.sizes)

    def update(self, state, batch, noise, agent, phase):  # noqa: ARG002
        return state, {}

    def actors(self, state):
        return (state,)

    def flops(self):
        return 0


def frozen_gears(config, spec, goals):  # noqa: ARG001
    sizes = [gear.sizes(spec.obs_dim, spec.act_dim) for gear in config.gears]
    return tuple(Frozen(gear, size) for gear, size in enumerate(sizes))


def trained(policies, steps, overrides):
    """The policies with masters of their own."""
    config = config_of(policies, steps, overrides)
    training = Training(config, make_env(config, config.environments), None, make_learners=frozen_gears)
    if training.learner.method.normalise_observations:
        raise click.ClickException(f"{config.task}: gears that saw normalised observations are folded; choose another")
    gears = stack([policy.weights._replace(tariff=None) for policy in policies]).gears
    states = training.learner.states()
    frozen = tuple(tuple(Layer(*layer) for layer in layers) for layers in gears)
    training.learner.restore(states._replace(learners=(*frozen, states.learners[-1])), 0)
    training.pipeline.act_with(training.learner.published())
    training.run()
    training.close()
    return [training.policy(agent) for agent in range(len(policies))]


def show(found, settings):
    table = Table("setting", *(f"{i + 1}" for i in range(len(dials(found, settings[0])[0]))), "cost more", "by up to")
    for setting in settings:
        lines = dials(found, setting)
        cells = [
            f"{np.mean([dial[i]['return_mean'] for dial in lines]):.0f}, "
            f"{np.mean([dial[i]['flops_reduction'] for dial in lines]):.1%}"
            for i in range(len(lines[0]))
        ]
        pairs = [pair for dial in lines for pair in combinations(dial, 2)]
        rises = [low["flops_reduction"] - high["flops_reduction"] for low, high in pairs if beyond(low, high)]
        table.add_row(setting, *cells, f"{len(rises)} of {len(pairs)}", f"{max(rises, default=0):.1%}")
    Console(width=150).print("Return and FLOPs saved along the dial, cheap compute first", table)


def dials(found, setting):
    """The lines of each agent along its dial."""
    groups = {}
    for line in found:
        if line["setting"] == setting:
            groups.setdefault(line["agent"], []).append(line)
    return list(groups.values())


def beyond(low, high):
    """Whether the higher setting costs more, beyond both intervals."""
    rise = low["flops_reduction"] - high["flops_reduction"]
    return rise > low["flops_reduction_ci95"] + high["flops_reduction_ci95"]


if __name__ == "__main__":
    main()
