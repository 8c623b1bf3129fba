"""The picture of return against cost: one dot for each episode, histograms on both margins, scaled as in the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lowgear.report.clouds import Cloud, Scale
from lowgear.report.looks import look_of
from lowgear.report.pictures import explain, keep, name_figure, new_figure

SIZE = (5.2, 4.6)  # inches
BINS = 36
LIGHTER = 0.5  # opacity of a variant's second setting


def draw(task: str, clouds: Sequence[Cloud], scale: Scale | None, directory: Path) -> list[Path]:
    """Draw the clouds into `directory` as scatter.svg and scatter.png."""
    return keep(lambda: _figure(task, clouds, scale), directory, "scatter")


def _figure(task: str, clouds: Sequence[Cloud], scale: Scale | None) -> Figure:
    figure = new_figure(*SIZE)
    axes = figure.subplot_mosaic("a.;sb", width_ratios=(4, 1), height_ratios=(1, 4))
    dots, above, beside = axes["s"], axes["a"], axes["b"]
    heights = [scale.apply(cloud.returns) if scale else cloud.returns for cloud in clouds]
    across = _bins([cloud.costs for cloud in clouds])
    up = _bins(heights)
    seen: set[str] = set()
    for cloud, height in zip(clouds, heights, strict=True):
        look = look_of(cloud.variant)
        strength = LIGHTER if cloud.variant in seen else 1.0
        seen.add(cloud.variant)
        marker: dict[str, Any] = {"marker": look.marker, "color": look.colour, "alpha": 0.55 * strength, "lw": 0}
        dots.scatter(cloud.costs, height, s=14, label=f"{cloud.label} (agent {cloud.agent})", **marker)
        bars: dict[str, Any] = {"color": look.colour, "alpha": 0.55 * strength}
        above.hist(cloud.costs, across, **bars)
        beside.hist(height, up, orientation="horizontal", **bars)
    dots.set(xlabel="cost: share of the large gear's FLOPs", ylabel="return, scaled" if scale else "return")
    dots.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    above.set(xlim=dots.get_xlim(), xticklabels=[], yticks=[])
    beside.set(ylim=dots.get_ylim(), yticklabels=[], xticks=[])
    for margin in (above, beside):
        margin.spines[:].set_visible(False)
        margin.grid(False)
        margin.tick_params(length=0)
    dots.spines["top"].set_visible(False)
    dots.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=7.5)
    name_figure(figure, task, f"{len(clouds[0].returns)} episodes each")
    explain(figure, f"Return: {scale.note}" if scale else "Return as the task pays it.")
    return figure


def _bins(values: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> list[float]:
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    return [float(edge) for edge in np.linspace(low, high, BINS + 1)]
