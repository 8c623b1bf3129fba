"""The picture of learning curves with bootstrap bands."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from lowgear.report.learning import Curve, Curves
from lowgear.report.looks import look_of
from lowgear.report.pictures import explain, keep, name_figure, new_figure
from lowgear.report.runs import Run

SIZE = (6.5, 3.8)  # inches
BAND, FEW = 0.16, 4  # opacity of a band, for so many curves at most
STROKES = ("-", "--", ":", "-.")  # of a variant's coefficients, in turn


def draw(run: Run, found: Curves, directory: Path) -> list[Path]:
    """Draw the run's curves into `directory` as curves.svg and curves.png."""
    return keep(lambda: _figure(run, found), directory, "curves")


def _figure(run: Run, found: Curves) -> Figure:
    figure = new_figure(*SIZE)
    axes = figure.add_subplot()
    for curve, stroke in zip(found.curves, strokes(found), strict=True):
        _draw(axes, curve, stroke, BAND if len(found.curves) <= FEW else BAND / 2)
    axes.set(xlabel="environment steps of each agent", ylabel=found.score)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: f"{steps / 1000:,.0f}k" if steps else "0"))
    if found.score == "success rate":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.spines["top"].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    seeds = {curve.seeds for curve in found.curves}
    shown = f"{max(seeds)} seed{'s' * (max(seeds) > 1)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
    name_figure(figure, run.task.name, f"{run.config.recipe.name} recipe, {shown}")
    bands = " Bands: 95% bootstrap intervals of it." if max(seeds) > 1 else ""
    explain(figure, f"Interquartile mean over seeds, from {found.source}.{bands}")
    return figure


def strokes(found: Curves) -> list[str]:
    """A line style for each curve: coefficients of one variant share its colour."""
    counts: dict[str, int] = {}
    chosen = []
    for curve in found.curves:
        number = counts[curve.variant] = counts.get(curve.variant, -1) + 1
        chosen.append(STROKES[number % len(STROKES)])
    return chosen


def _draw(axes: Axes, curve: Curve, stroke: str, band: float) -> None:
    colour = look_of(curve.variant).colour
    if curve.seeds > 1:
        axes.fill_between(curve.steps, curve.low, curve.high, color=colour, alpha=band, lw=0)
    axes.plot(curve.steps, curve.middle, stroke, color=colour, lw=1.6, label=curve.label)
