"""The pictures of score and share of the large gear against λ, within a run, and against the period, over runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from lowgear.report.looks import PAY_NOTHING, look_of
from lowgear.report.pictures import explain, keep, name_figure, new_figure
from lowgear.report.runs import Run
from lowgear.report.settings import Setting, best
from lowgear.report.summary import with_success

SIZE = (6.5, 3.2)  # inches
COEFFICIENT = "cost coefficient λ, log scale"
PERIOD = "period: steps that a pick holds"


@dataclass(frozen=True)
class Sweep:
    """One variant along what is swept."""

    label: str
    variant: str
    score: str  # what is scored: return, or success rate
    x: tuple[float, ...]
    settings: tuple[Setting, ...]


def against_coefficient(run: Run) -> list[Sweep]:
    """Each variant that pays, where it was evaluated or trained at two coefficients or more."""
    found = []
    for variant, dial in dict.fromkeys((s.variant, s.dial) for s in run.settings if s.variant not in PAY_NOTHING):
        own = sorted(
            (s for s in run.settings if (s.variant, s.dial) == (variant, dial) and s.coefficient > 0),
            key=lambda s: s.coefficient,
        )
        if len(own) > 1:
            label = f"{variant} (dial)" if dial else variant
            found.append(Sweep(label, variant, _score(run), tuple(s.coefficient for s in own), tuple(own)))
    return found


def against_period(runs: Sequence[Run]) -> list[Sweep]:
    """Runs of one task whose masters have one period each, two different ones at least; the best setting of each."""
    found = []
    for task in dict.fromkeys(run.task.name for run in runs):
        points: dict[float, Setting] = {}
        score = "return"
        for run in runs:
            own = [s for s in run.settings if s.variant == "asymmetric"]
            if run.task.name == task and len(run.config.recipe.periods) == 1 and own:
                points[float(run.config.recipe.periods[0])] = best(own)
                score = _score(run)
        if len(points) > 1:
            xs = tuple(sorted(points))
            found.append(Sweep(task, "asymmetric", score, xs, tuple(points[x] for x in xs)))
    return found


def draw_coefficients(run: Run, sweeps: Sequence[Sweep], directory: Path) -> list[Path]:
    """Draw into `directory` as coefficients.svg and coefficients.png."""
    facts = f"{run.config.recipe.name} recipe, {run.evaluation['steps'] if run.evaluation else 0:,} steps"
    names = COEFFICIENT, _score(run)
    return keep(lambda: _figure(run.task.name, facts, sweeps, names), directory, "coefficients")


def draw_periods(sweep: Sweep, directory: Path) -> list[Path]:
    """Draw into `directory` as periods-TASK.svg and periods-TASK.png."""
    return draw_sweep(sweep, PERIOD, "periods", directory)


def draw_sweep(sweep: Sweep, across: str, name: str, directory: Path, facts: str = "") -> list[Path]:
    """A sweep that is labelled with its task, against `across`, into `directory` as NAME-TASK.svg and NAME-TASK.png."""
    task = re.sub(r"[^\w.-]+", "-", sweep.label)
    return keep(lambda: _figure(sweep.label, facts, [sweep], (across, sweep.score)), directory, f"{name}-{task}")


def _score(run: Run) -> str:
    return "success rate" if with_success(run) else "return"


def _figure(task: str, facts: str, sweeps: Sequence[Sweep], names: tuple[str, str]) -> Figure:
    figure = new_figure(*SIZE)
    scores, shares = figure.subplots(1, 2)
    across, score = names
    for sweep in sweeps:
        look = look_of(sweep.variant)
        line: dict[str, Any] = {
            "color": look.colour,
            "marker": look.marker,
            "ms": look.size,
            "mec": "white",
            "mew": 0.7,
            "lw": 1.5,
        }
        if max(s.score.seeds for s in sweep.settings) > 1:
            low, high = [s.mean_low for s in sweep.settings], [s.mean_high for s in sweep.settings]
            scores.fill_between(sweep.x, low, high, color=look.colour, alpha=0.15, lw=0)
        scores.plot(sweep.x, [s.score.mean for s in sweep.settings], label=sweep.label, **line)
        shares.plot(sweep.x, [s.large_share for s in sweep.settings], **line)
    for axes in (scores, shares):
        axes.set_xlabel(across)
        axes.spines["top"].set_visible(False)
        if "log" in across:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    scores.set_ylabel(score)
    if score == "success rate":
        scores.yaxis.set_major_formatter(PercentFormatter(1.0))
    shares.set_ylabel("share of steps in the large gear")
    shares.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g}%"))
    shares.set_ylim(bottom=min(0, shares.get_ylim()[0]))
    if len(sweeps) > 1:
        scores.legend(frameon=False, loc="best")
    name_figure(figure, task, facts)
    explain(figure, "Means over seeds; the band is their 95% bootstrap interval.")
    return figure
