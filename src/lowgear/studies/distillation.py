"""Against one policy of the same price: `fit`, trained from scratch, and imitators of the large-only policy.

All students are as wide as a policy must be to cost what the asymmetric agents cost on average. Their teacher is the
best large-only agent. The paper has fit, GAIL and BC; DAgger, with as many labels as BC has pairs, is ours.
"""

from collections.abc import Sequence
from dataclasses import replace

from lowgear.baselines.record import Amount
from lowgear.config import paper
from lowgear.config.tasks import Task
from lowgear.policy import cost
from lowgear.studies.imitation import METHODS, ImitationRunner
from lowgear.studies.rows import TableRow
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import Group, Setup
from lowgear.studies.variants import compare

EPISODES = (25, 50, 200)
PAIRS = Amount()  # 25 trajectories of 50 pairs
groups = compare("large-only", "asymmetric")  # the teachers, and the agents that set the price
LATER = "`fit` and the students, as wide as the asymmetric agents' FLOPs allow"


def same_price(setup: Setup, store: RunStore, task: Task, rows: Sequence[TableRow]) -> list[TableRow]:
    """With `fit` and the imitators of 25 × 50 pairs."""
    runner = _runner(setup, store, task, rows)
    config = setup.config(task, "large-only", gears=(runner.units, runner.units))
    fit = Group(f"fit, {runner.units} units", config, paper.distillation(task.name, "fit"))
    return [
        *rows,
        *(against(row, rows[0].mean("flops_per_step")) for row in store.rows([fit], setup.episodes)),
        *(runner.row(method, PAIRS, method, paper.distillation(task.name, method)) for method in METHODS),
    ]


def expert_data(setup: Setup, store: RunStore, task: Task, rows: Sequence[TableRow]) -> list[TableRow]:
    """With the imitators of 25, 50 and 200 whole episodes."""
    runner = _runner(setup, store, task, rows)
    students = [
        runner.row(
            method, Amount(count, None), f"{method}, {count} episodes", paper.expert_data(task.name, method, count)
        )
        for count in EPISODES
        for method in METHODS
    ]
    return [*rows, *students]


def _runner(setup: Setup, store: RunStore, task: Task, rows: Sequence[TableRow]) -> ImitationRunner:
    large, asymmetric = rows[:2]
    group = groups(setup, task)[0]
    best = max(range(len(large.seeds)), key=lambda number: large.seeds[number].score)
    teacher = store.policies(group)[best]
    header = teacher.header
    units = cost.units_for(header.obs_dim, header.act_dim, asymmetric.mean("flops_per_step"))
    return ImitationRunner(setup, store, group.config, teacher, units)


def against(row: TableRow, flops: float) -> TableRow:
    """What a row saves against another policy than its own."""
    seeds = (replace(s, flops_reduction=1 - s.flops_per_step / flops) for s in row.seeds)
    return replace(row, seeds=tuple(seeds))
