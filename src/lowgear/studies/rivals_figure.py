"""The figure of the rivals: scores against FLOPs, bytes and time, one picture for each task."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from lowgear.config.tasks import Task, file_name
from lowgear.evaluation import statistics
from lowgear.report.figure import Chart, Figure, Series, axis, heights, score_axis
from lowgear.report.matplotlib_figure import save
from lowgear.report.style import rival_style
from lowgear.studies.rivals_verdict import COSTS
from lowgear.studies.rows import TableRow

SIZE = (10.0, 4.6)  # inches
UNITS = {"flops_per_step": "FLOPs per step", "weight_bytes": "bytes of weights", "step_ns": "ns per step, C"}
LINES = ("asymmetric", "with hold", "pruned")  # kinds whose rows are settings of one thing
NOTE = (
    "Up is better, left is cheaper. Means over seeds with 95% bootstrap intervals. Hollow: int8 weights.\n"
    "FLOPs and bytes of pruned policies are those of their non-zero weights; their time is that of dense code."
)


def draw(rows: Sequence[TableRow], directory: Path) -> list[Path]:
    """Into `directory` as rivals-TASK.svg and rivals-TASK.png; nothing of tasks whose costs are not known."""
    written = []
    for task in dict.fromkeys(row.task for row in rows):
        own = [row for row in rows if row.task == task and row.told("weight_bytes") is not None]
        if own:
            written += save(describe(task, own), directory)
    return written


def describe(task: Task, rows: Sequence[TableRow]) -> Figure:
    """One chart for each kind of cost that is known."""
    kind = "success rate" if task.hindsight else "return"
    known = [cost for cost in COSTS if all(row.told(cost) is not None for row in rows)]
    facts = f"{rows[0].steps:,} steps, {len(rows[0].seeds)} seeds"
    charts = tuple(_chart(rows, cost, kind) for cost in known)
    return Figure(f"rivals-{file_name(task.name)}", task.name, facts, NOTE, charts, SIZE)


def kind_of(label: str) -> tuple[str, bool]:
    """What a row is drawn as, and whether its weights are int8."""
    name = label.removeprefix("int8 ").split(",")[0]
    name = {"dagger": "student"}.get(name, "pruned" if name.startswith("pruned") else name)
    return name, label.startswith("int8 ")


def _chart(rows: Sequence[TableRow], cost: str, kind: str) -> Chart:
    series = []
    for (name, int8), own in groupby(rows, key=lambda row: kind_of(row.label)):
        series.append(_series(list(own), cost, name, int8))
    across = axis(f"{UNITS[cost]}, log scale", [x for one in series for x in one.x], log=True)
    return Chart(across, score_axis(kind, heights(series)), tuple(series))


def _series(rows: Sequence[TableRow], cost: str, name: str, int8: bool) -> Series:
    bounds = [statistics.bootstrap([seed.score for seed in row.seeds], _mean) for row in rows]
    low, high = zip(*bounds, strict=True)
    label = f"{'int8 ' * int8}{'DAgger student' if name == 'student' else name}"
    return Series(
        tuple(row.mean(cost) for row in rows),
        tuple(row.score.mean for row in rows),
        rival_style(name),
        label=label,
        line="solid" if name in LINES and not int8 else "",
        width=1.2,
        hollow=int8,
        interval=(low, high),
        bars=True,
        level=name == "large-only" and not int8,
    )


def _mean(scores: np.ndarray) -> float:
    return float(np.mean(scores))
