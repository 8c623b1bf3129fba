"""Whole episodes through compiled C, beside `lowgear evaluate`'s from the same starts, for every agent of runs.

Rounding grows where a closed loop is chaotic, so C also plays beside itself, one early action moved by a millionth.

python benchmarks/c_returns.py runs/rivals/cartpole-swingup/runs/*-hold-* --episodes 16 --json results/c-returns.json
"""

import json
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from lowgear.config.run_directory import RunDirectory
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import play_policies, starts
from lowgear.export import compiler
from lowgear.export.c_format import c_files
from lowgear.export.c_library import build_library, library_returns
from lowgear.export.check import compare
from lowgear.export.source import record_episodes
from lowgear.policy.files import write_whole
from lowgear.studies.evaluations import EVALUATION_SEED
from lowgear.training.provenance import provenance

RECORDED = 2  # episodes that are compared step by step, from the state that the network was in
NUDGE, NUDGED_STEP = np.float32(1e-6), 10
SAME = 1e-3  # of a return: what counts as the same


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--episodes", default=16, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(runs, episodes, json_path):
    cases = [case for run in runs for case in compared(run, episodes)]
    if json_path is not None:
        found = {"episodes": episodes, "provenance": provenance(), "cases": cases}
        write_whole(json_path, (json.dumps(found, indent=1) + "\n").encode())


def compared(path, episodes):
    """What each agent of a run returns as C and as it is evaluated."""
    run = RunDirectory(path)
    config = run.read_config()
    make = partial(make_env, config)
    policies = run.load_policies()
    played = play_policies(policies, make, episodes, "greedy", EVALUATION_SEED, slots=episodes)
    for number, policy in enumerate(policies):
        library, recorded = compiled(policy, make)
        seeds = starts(EVALUATION_SEED, episodes)
        with closing(make(episodes)) as env:
            driven = library_returns(library, env, seeds)
        with closing(make(episodes)) as env:
            nudged = library_returns(library, Nudged(env), seeds)
        returns = played.returns[number]
        shares = played.gear_steps[number].sum(axis=0) / played.lengths[number].sum()
        case = {
            "run": path.name,
            "task": config.task,
            "seed": config.agents[number].seed,
            "gear_shares": shares.tolist(),
            "c": float(driven.mean()),
            "evaluated": float(returns.mean()),
            **apart("", driven, returns),
            **apart("nudged_", nudged, driven),
            "step_by_step": asdict(compare(library, recorded)),
        }
        click.echo(
            f"{case['task']} seed {case['seed']}: C {case['c']:.2f}, evaluated {case['evaluated']:.2f}; "
            f"{case['same']} of {episodes} the same, at most {case['largest_difference']:.3g} apart; nudged "
            f"{case['nudged_same']} and {case['nudged_largest_difference']:.3g}"
        )
        yield case


def apart(prefix, one, other):
    gap = np.abs(one - other)
    same = int((gap <= SAME * np.abs(other)).sum())
    return {f"{prefix}same": same, f"{prefix}largest_difference": float(gap.max())}


class Nudged:
    """An environment that moves every number of one action by a little."""

    def __init__(self, env):
        self.env, self.step_number = env, 0

    def reset(self, seeds):
        return self.env.reset(seeds)

    def step(self, action):
        self.step_number += 1
        return self.env.step(np.clip(action + NUDGE, -1, 1) if self.step_number == NUDGED_STEP else action)


def compiled(policy, make):
    """The policy's C as a library, which outlives the folder it was built in, and episodes to hold it against."""
    recorded = record_episodes(policy, make, RECORDED)
    with TemporaryDirectory() as folder:
        files = c_files(policy, "robot", "float32", recorded)
        return build_library(files, "robot", policy, Path(folder), compiler.find()), recorded


if __name__ == "__main__":
    main()
