"""Against one policy of the same price: `fit`, trained from scratch, and imitators of the large-only policy.

All students are as wide as a policy must be to cost what the asymmetric agents cost on average. Their teacher is the
best large-only agent. The paper has fit, GAIL and BC; DAgger, with as many labels as BC has pairs, is ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lowgear.baselines.record import Amount
from lowgear.config.tasks import Task
from lowgear.policy import cost
from lowgear.studies import published
from lowgear.studies.lines import Line
from lowgear.studies.setup import NOTHING, Group, Paper, Setup
from lowgear.studies.students import METHODS, School

if TYPE_CHECKING:
    from lowgear.studies.catalogue import Workshop

EPISODES = (25, 50, 200)
PAIRS = Amount()  # 25 trajectories of 50 pairs
LATER = "`fit` and the students, as wide as the asymmetric agents' FLOPs allow"


def groups(setup: Setup, task: Task) -> list[Group]:
    """The teachers, and the agents that set the price."""
    figures = published.performance(task)
    return [
        Group(variant, setup.config(task, variant), paper=figures.get(variant, NOTHING))
        for variant in ("large-only", "asymmetric")
    ]


def compare(shop: "Workshop", task: Task, lines: Sequence[Line]) -> list[Line]:
    """`fit` and the imitators of 25 × 50 pairs."""
    school = _school(shop, task, lines)
    config = shop.setup.config(task, "large-only", gears=(school.units, school.units))
    (fit,) = shop.answer([Group(f"fit, {school.units} units", config, paper=published.distillation(task, "fit"))])
    fit = _against(fit, lines[0].mean("flops_per_step"))
    return [fit, *(school.line(method, PAIRS, method, _paper(task, method)) for method in METHODS)]


def expert_data(shop: "Workshop", task: Task, lines: Sequence[Line]) -> list[Line]:
    """The imitators with 25, 50 and 200 whole episodes."""
    school = _school(shop, task, lines)
    return [
        school.line(method, Amount(count, None), f"{method}, {count} episodes", _paper(task, method, count))
        for count in EPISODES
        for method in METHODS
    ]


def _school(shop: "Workshop", task: Task, lines: Sequence[Line]) -> School:
    large, asymmetric = lines[:2]
    group = groups(shop.setup, task)[0]
    best = max(range(len(large.seeds)), key=lambda number: large.seeds[number].score)
    teacher = shop.pool.policies(group)[best]
    header = teacher.header
    units = cost.units_for(header.obs_dim, header.act_dim, asymmetric.mean("flops_per_step"))
    return School(shop.pool.path, shop.setup, task, group.config, teacher, units, shop.progress)


def _against(line: Line, flops: float) -> Line:
    """What a line saves against another policy than its own."""
    seeds = (replace(s, flops_reduction=cost.flops_reduction(s.flops_per_step, flops)) for s in line.seeds)
    return replace(line, seeds=tuple(seeds))


def _paper(task: Task, method: str, episodes: int | None = None) -> Paper:
    if method == "dagger":
        return NOTHING
    return published.distillation(task, method) if episodes is None else published.expert_data(task, method, episodes)
