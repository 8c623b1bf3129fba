"""Score and share of the large gear against λ, within a run, and against the period, over runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from lowgear.policy.dial import span
from lowgear.report.figure import Axis, Chart, Figure, Series, axis, knee_axis, score_axis
from lowgear.report.matplotlib_figure import save
from lowgear.report.runs import RunData
from lowgear.report.settings import Setting, best
from lowgear.report.style import pays, variant_style

SIZE = (6.5, 3.2)  # inches
COEFFICIENT, PERIOD = "cost coefficient λ", "period: steps that a pick holds"
NOTE = "Means over seeds; the band is their 95% bootstrap interval, of one seed that over episodes."


class Point(NamedTuple):
    """What was found at one value of what is swept."""

    x: float
    score: float  # mean over seeds
    low: float  # of its 95% interval over seeds, or over episodes where there is one
    high: float
    large_share: float


@dataclass(frozen=True)
class Sweep:
    """One variant along what is swept."""

    label: str
    variant: str
    kind: str  # of the scores: return, or success rate
    points: tuple[Point, ...]


def against_coefficient(run: RunData) -> list[Sweep]:
    """Each variant that pays, where it was evaluated or trained at two coefficients or more."""
    found = []
    for line in run.evaluation.lines():
        own = [s for s in line if pays(s.variant)]
        if len(own) > 1:
            points = tuple(_point(s.coefficient, s) for s in own)
            found.append(Sweep(own[0].label, own[0].variant, run.evaluation.kind, points))
    return found


def against_period(runs: Sequence[RunData]) -> list[Sweep]:
    """Runs of one task whose masters have one period each, two different ones at least; the best setting of each."""
    found = []
    for task in dict.fromkeys(run.task.name for run in runs):
        points: dict[float, Point] = {}
        kind = "return"
        for run in runs:
            own = [s for s in run.settings if s.variant == "asymmetric"]
            if run.task.name == task and len(run.config.recipe.periods) == 1 and own:
                period = float(run.config.recipe.periods[0])
                points[period] = _point(period, best(own))
                kind = run.evaluation.kind
        if len(points) > 1:
            found.append(Sweep(task, "asymmetric", kind, tuple(sorted(points.values()))))
    return found


def describe_coefficients(run: RunData) -> Figure | None:
    """What the cost coefficient does; None where nothing is swept."""
    sweeps = against_coefficient(run)
    if not sweeps:
        return None
    facts = f"{run.config.recipe.name} recipe, {run.evaluation.steps:,} steps"
    title, hint = "What the cost coefficient does", "A higher λ makes the large gear dearer to the master."
    charts = _charts(sweeps, COEFFICIENT)
    return Figure("coefficients", run.task.name, facts, NOTE, charts, SIZE, title, hint, legend=len(sweeps) > 1)


def describe_periods(sweep: Sweep) -> Figure:
    """What the period does on one task."""
    hint = "Runs whose masters have one period each, at their best coefficient."
    figure = _describe(sweep, PERIOD, "periods", "")
    return replace(figure, title=f"What the period does: {sweep.label}", hint=hint)


def draw_sweep(sweep: Sweep, across: str, name: str, directory: Path, facts: str = "") -> list[Path]:
    """A sweep that is labelled with its task, against `across`, into `directory` as NAME-TASK.svg and NAME-TASK.png."""
    return save(_describe(sweep, across, name, facts), directory)


def _point(x: float, setting: Setting) -> Point:
    return Point(x, setting.score.mean, setting.mean_low, setting.mean_high, setting.large_share)


def _describe(sweep: Sweep, across: str, name: str, facts: str) -> Figure:
    file = re.sub(r"[^\w.-]+", "-", f"{name}-{sweep.label}")
    return Figure(file, sweep.label, facts, NOTE, _charts([sweep], across), SIZE, legend=False)


def _charts(sweeps: Sequence[Sweep], across: str) -> tuple[Chart, Chart]:
    """The scores and the shares of the large gear."""
    points = [point for sweep in sweeps for point in sweep.points]
    x = _axis(across, [point.x for point in points])
    heights = [value for point in points for value in (point.low, point.high, point.score)]
    highest = 1.07 * max(0.05, *(point.large_share for point in points))
    shares = Axis("share of steps in the large gear", -0.04 * highest, highest, format="percent")
    return (
        Chart(x, score_axis(sweeps[0].kind, heights), tuple(_series(sweep, scores=True) for sweep in sweeps)),
        Chart(x, shares, tuple(_series(sweep, scores=False) for sweep in sweeps)),
    )


def _axis(label: str, values: Sequence[float]) -> Axis:
    """Of periods; of coefficients on a log scale where all are above 0, else on that of a dial through 0."""
    if COEFFICIENT not in label:
        return axis(label, values, name="period {}")
    if min(values) > 0:
        return axis(f"{label}, log scale", values, log=True, name="λ {}")
    if max(values) > 0:
        return knee_axis(f"{label}, as the dial turns", values, span(values).knee, name="λ {}")
    return axis(label, values, name="λ {}")


def _series(sweep: Sweep, scores: bool) -> Series:
    x, score, low, high, share = zip(*sweep.points, strict=True)
    band = (low, high) if scores and low != high else None
    style = variant_style(sweep.variant)
    return Series(x, score if scores else share, style, label=sweep.label, line="solid", interval=band)
