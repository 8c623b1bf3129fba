"""What a study has to run, and how long that takes here: from runs that were made, or else from matrix products."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import median

import jax
from rich import box
from rich.console import Console
from rich.table import Table

from lowgear import LowgearError
from lowgear.bench import gemm
from lowgear.bench.floor import update_flops
from lowgear.config.run import RunConfig
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.evaluation.numbers import duration
from lowgear.policy import fields
from lowgear.policy.files import read_text
from lowgear.report.terminal import print_table
from lowgear.studies.run_store import RunStore, StoredRun
from lowgear.studies.setup import Group

SHARE = 0.5  # of the rate of products: training reaches 0.35 (paper, 8/64) to 0.66 (modern) of it on two cores
COMPILING_S = 20.0
MOST_METRICS = 1 << 28  # bytes
LEAST_RATE, LARGEST_RATE = 1e-3, 1e12  # steps a second
_product_rate = cache(gemm.rate_alone)


def print_plan(console: Console, store: RunStore, groups: Sequence[Group], later: str = "") -> None:
    """Runs, their steps and about the time they take, and what comes `later`."""
    runs = store.plan(groups)
    known = {_program(run.config): rate for run in store.existing() if (rate := _logged_rate(run)) is not None}
    times = [_seconds(run, known) for run in runs]
    table = Table("run", "gears", "agents", "steps each", "state", "about", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for run, seconds in zip(runs, times, strict=True):
        state = "done" if run.finished else f"at {run.steps_done:,}" if run.directory.path.exists() else "new"
        table.add_row(
            f"{run.config.task} {run.config.recipe.name}",
            ",".join(map(str, run.config.gears)),
            str(len(run.config.agents)),
            f"{run.config.steps:,}",
            state,
            _time(seconds),
        )
    print_table(table, console)
    whole = None if None in times else sum(seconds for seconds in times if seconds is not None)
    left = sum(not run.finished for run in runs)
    console.print(
        f"{left} of {len(runs)} runs to do, about {_time(whole)} of training on this machine", highlight=False
    )
    if later:
        console.print(f"then: {later}", highlight=False)


def _seconds(run: StoredRun, known: Mapping[RunConfig, float]) -> float | None:
    """What is left of a run, by the rates of programs; None where nothing is known, as on a GPU before its first."""
    config = run.config
    left = (config.steps - run.steps_done) * len(config.agents)
    if not left:
        return 0.0
    rate = known.get(_program(config))
    if rate is None:
        if jax.default_backend() != "cpu":
            return None
        rate = SHARE * _product_rate(max(config.critic_units), config.recipe.batch) / _update_flops(config)
    return left / rate + COMPILING_S


def _program(config: RunConfig) -> RunConfig:
    """What decides the rate of agent-steps, but for the number of agents."""
    return replace(config, agents=(), steps=0, evaluate_every=0, checkpoint_every=0, log_every=0)


def _logged_rate(run: StoredRun) -> float | None:
    """Agent-steps per second of a run."""
    try:
        text = read_text(run.directory.metrics, "file of metrics", "", MOST_METRICS)
        lines = [json.loads(line) for line in text.splitlines()]
        rates = [
            fields.number("steps_per_second", line["steps_per_second"], LEAST_RATE, LARGEST_RATE)
            for line in lines
            if line["kind"] == "train" and line["agent"] == 0
        ]
    except (LowgearError, RecursionError, ValueError, KeyError, TypeError):
        return None
    return median(rates) * len(run.config.agents) if rates else None


def _update_flops(config: RunConfig) -> int:
    task = find(config.task)
    if task.obs_dim is not None and task.act_dim is not None:
        return update_flops(config, task.obs_dim, task.act_dim)
    env = make_env(config, 1)
    env.close()
    return update_flops(config, env.spec.obs_dim, env.spec.act_dim)


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else duration(seconds)
