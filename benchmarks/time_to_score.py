"""Minutes until an agent's evaluation passes a score: the modern recipe as it is, and as it was until November 2026.

    python benchmarks/time_to_score.py --seeds 700-702 --json results/time-to-score.json

One asymmetric agent at a time on the cores that are there, before and after in turn, each in a process of its own.
Compiling and evaluations count, as they do for a person's first run; with --warm programs are compiled already, as they
are for the second. A seed that never passes counts with the time of all its steps, as "more than".
"""

import itertools
import json
import multiprocessing
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from lowgear.commands import lists
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make_env
from lowgear.training.loop import Listener, Training
from lowgear.training.provenance import provenance

BEFORE = {
    "actor_learning_rate": None,
    "actor_boost": 1.0,
    "actor_every": 1,
    "target_rate": 0.005,
    "critic_normalise": False,
    "lenient_twins": False,
    "target_entropy": 1.0,
    "first_alpha": 1.0,
    "normalise_observations": False,
    "scale_rewards": False,
    "random_steps": 1_000,
}
# Task: score to pass, steps at most, steps between evaluations, what its recipe was beside BEFORE, its coefficients.
CASES = {
    "cartpole-swingup": (819.8, 150_000, 2_500, {}, (0.003 / 30, 0.03)),
    "walker-stand": (891.3, 200_000, 5_000, {}, (0.01 / 30, 0.1)),
    "MountainCarContinuous-v0": (
        87.8,
        100_000,
        2_500,
        {"discount": 0.999, "learning_rate": 3e-4, "random_steps": 10_000},
        (1e-4 / 30, 1e-3),
    ),
    "gym:Pendulum-v1": (-200.0, 60_000, 1_000, {}, (1e-3,)),
}


class Stopwatch(Listener):
    """Ends a run when an evaluation passes the score."""

    def __init__(self, score):
        self.score, self.began, self.passed = score, time.perf_counter(), None

    def on_evaluation(self, lines):
        if self.passed is None and lines[0]["return_mean"] >= self.score:
            self.passed = {"minutes": (time.perf_counter() - self.began) / 60} | {
                name: lines[0][name] for name in ("steps", "return_mean", "flops_reduction")
            }

    def on_steps(self, steps):  # noqa: ARG002
        return self.passed is None


def timed(name, seed, before, episodes):
    """What passed the score, and when."""
    score, steps, every, own, coefficients = CASES[name]
    watch = Stopwatch(score)
    config = resolve(
        tasks.find(name),
        steps=steps,
        seeds=[seed],
        overrides=BEFORE | own if before else {},
        cost_coefficients=coefficients if before else None,
        evaluate_every=every,
        evaluate_episodes=episodes,
    )
    training = Training(config, make_env(config, config.environments), partial(make_env, config))
    try:
        training.run([watch])
    finally:
        training.close()
    return watch.passed or {"more_than_minutes": (time.perf_counter() - watch.began) / 60}


def alone(*case):
    """The same in a new process, which takes over the environment."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(timed, *case).result()


def keep_compiled_in(folder):
    """Compiled programs are kept under the folder, as they are in a person's cache."""
    os.environ["XDG_CACHE_HOME"] = folder
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)


def minutes(runs):
    """Of each seed, the least it took."""
    return [run.get("minutes", run.get("more_than_minutes")) for run in runs]


@click.command()
@click.option("--tasks", "names", default=",".join(CASES))
@click.option("--seeds", default="700-702")
@click.option("--episodes", default=10)
@click.option("--warm", is_flag=True, help="With programs compiled already: each side runs once untimed before.")
@click.option("--json", "json_path", default=None)
def main(names, seeds, episodes, warm, json_path):
    found, seeds = {}, lists.integers("--seeds", seeds)
    table = Table("task", "score", "before, minutes", "after, minutes", "after / before (medians)")
    for name in names.split(","):
        runs = {"before": [], "after": []}
        with TemporaryDirectory() as folder:
            for side in runs if warm else ():
                keep_compiled_in(folder)
                alone(name, seeds[0], side == "before", episodes)
            for seed, (side, kept) in itertools.product(seeds, runs.items()):
                with TemporaryDirectory() as empty:
                    keep_compiled_in(folder if warm else empty)
                    kept.append(alone(name, seed, side == "before", episodes) | {"seed": seed})
                Console(stderr=True).print(name, side, kept[-1])
        before, after = (statistics.median(minutes(kept)) for kept in runs.values())
        found[name] = {"score": CASES[name][0], **runs, "ratio_of_medians": after / before}
        table.add_row(name, f"{CASES[name][0]:g}", *map(shown, runs.values()), f"{after / before:.2f}")
    Console().print(table)
    if json_path:
        with open(json_path, "w", encoding="utf-8") as file:
            json.dump({"provenance": provenance(), "episodes": episodes, "warm": warm, "tasks": found}, file, indent=2)


def shown(runs):
    return ", ".join(("" if "minutes" in run else ">") + f"{minutes([run])[0]:.1f}" for run in runs)


if __name__ == "__main__":
    main()
