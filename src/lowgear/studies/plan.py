"""What a study has to run, and how long that takes here: from runs that were made, or else from matrix products."""

import json
from collections.abc import Sequence
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
from lowgear.studies.schedule import makespan
from lowgear.studies.setup import Group
from lowgear.studies.speeds import Speeds

SHARE = 0.5  # of the rate of products: training reaches 0.35 (paper, 8/64) to 0.66 (modern) of it on two cores
COMPILING_S = 20.0
MOST_METRICS = 1 << 28  # bytes
LEAST_RATE, LARGEST_RATE = 1e-3, 1e12  # steps a second
_product_rate = cache(gemm.rate_alone)


class Estimates:
    """Seconds that are left of runs, by the rates of a store's runs, of a benchmark, or of this machine's products."""

    def __init__(self, store: RunStore, speeds: Speeds | None = None) -> None:
        self._speeds = speeds
        found = store.existing() if speeds is None else []
        self._known = {_program(run.config): rate for run in found if (rate := _logged_rate(run)) is not None}

    @property
    def of_others(self) -> bool:
        """Whether they are of machines that a benchmark was run on, and not of this one."""
        return self._speeds is not None

    def seconds(self, run: StoredRun) -> float | None:
        """None where nothing is known, as on a GPU before its first."""
        left = (run.config.steps - run.steps_done) * len(run.config.agents)
        if not left:
            return 0.0
        rate = self._known.get(_program(run.config))
        if rate is None and self._speeds is not None:
            rate = self._speeds.rate(run.config, _update_flops(run.config))
        if rate is None:
            if jax.default_backend() != "cpu":
                return None
            rate = SHARE * _product_rate(max(run.config.critic_units), run.config.recipe.batch)
            rate /= _update_flops(run.config)
        return left / rate + COMPILING_S


def print_plan(
    console: Console,
    store: RunStore,
    groups: Sequence[Group],
    estimates: Estimates,
    later: str = "",
    machines: Sequence[int] = (1,),
) -> None:
    """Runs, their steps and about the time they take, on so many machines, and what comes `later`."""
    runs = store.plan(groups)
    times = [estimates.seconds(run) for run in runs]
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
    known = [seconds for seconds in times if seconds is not None]
    left = sum(not run.finished for run in runs)
    for count in machines:
        whole = makespan(known, count) if len(known) == len(times) else None
        where = "one such machine" if estimates.of_others else "this machine"
        if count > 1:
            where = f"{count} of them, one program at a time each"
        console.print(f"{left} of {len(runs)} runs to do, about {_time(whole)} of training on {where}", highlight=False)
    if later:
        console.print(f"then: {later}", highlight=False)


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
