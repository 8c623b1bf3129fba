"""Draws a described figure with Matplotlib: one style, one SVG and one PNG."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox, ScaledTranslation

from lowgear.policy.files import write_whole
from lowgear.report.figure import MARGIN, Axis, Chart, Figure, Series, Still
from lowgear.report.style import GREY
from lowgear.report.text import tick

PNG_DPI = 200
LONG_HEADING = 28  # letters that fit beside the facts
LETTERS = 15  # of a legend in an inch
NOTE_LETTERS = 16  # of a note in an inch
LINES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 3)), "dotted": ":", "dashdot": "-.", "": "none"}
LABEL_OFFSETS = (5, 17, 29)  # points between a point and its label, the nearest that is free
INK = 0.8  # letters are this much darker than what they name
STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "figure.constrained_layout.h_pad": 0.03,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name with two $ in it is a name
    "svg.hashsalt": "lowgear",
}


def save(figure: Figure, directory: Path) -> list[Path]:
    """Write the figure as SVG and PNG; both are ready before either is written."""
    with style.context(["default", STYLE]):
        canvas = _draw(figure)
        pictures = {directory / f"{figure.name}.{kind}": _render(canvas, kind) for kind in ("svg", "png")}
    for path, data in pictures.items():
        write_whole(path, data)
    return list(pictures)


def svg(figure: Figure) -> str:
    """The figure as an SVG element, for a page that it becomes part of."""
    with style.context(["default", STYLE]):
        text = _render(_draw(figure), "svg").decode()
    return text[text.index("<svg") :]


def _render(canvas: Canvas, kind: str) -> bytes:
    """As a file's content, the same bytes each time."""
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=kind, dpi=PNG_DPI, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _draw(figure: Figure) -> Canvas:
    canvas = Canvas(figsize=figure.size, layout="constrained")
    FigureCanvasAgg(canvas)
    places = _stacked(canvas, figure) if figure.stacked else _side_by_side(canvas, figure)
    for axes, chart in zip(places, figure.charts, strict=True):
        _draw_chart(axes, chart, figure.size[0] if figure.stacked else figure.size[0] / len(places))
    noted = figure.legend and _legend(canvas, places[0], figure)
    long = len(figure.heading) > LONG_HEADING
    canvas.suptitle(figure.heading + "\n" * long, x=0.012, ha="left", fontsize=10.5, fontweight="bold")
    x, y = (0.012, 0.94) if long else (0.988, 0.988)
    canvas.text(x, y, figure.facts, ha="left" if long else "right", va="top", fontsize=8.5, color=GREY)
    if not noted:
        canvas.supxlabel(_within(figure.note, figure.size[0]), fontsize=8, color=GREY)
    _part_labels(canvas, [text for axes in places for text in axes.texts if isinstance(text, Annotation)])
    return canvas


def _within(note: str, inches: float) -> str:
    """A note whose lines are no wider than the picture."""
    return "\n".join(fill(line, int(inches * NOTE_LETTERS)) for line in note.split("\n"))


def _side_by_side(canvas: Canvas, figure: Figure) -> list[Axes]:
    if figure.charts[0].bins is None:
        return list(canvas.subplots(1, len(figure.charts), squeeze=False)[0])
    places = canvas.subplot_mosaic("a.;sb", width_ratios=(4, 1), height_ratios=(1, 4))
    _histograms(figure.charts[0], places["a"], places["b"])
    return [places["s"]]


def _stacked(canvas: Canvas, figure: Figure) -> list[Axes]:
    """Rows over one horizontal axis, below the stills."""
    heights = [chart.inches for chart in figure.charts]
    if figure.stills:
        heights = [figure.size[1] - sum(heights) - MARGIN, *heights]
    rows = list(canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if figure.stills:
        _stills(rows.pop(0), figure.stills)
    for row in rows:
        row.tick_params(labelsize=7)
    for row in rows[:-1]:
        row.tick_params(labelbottom=False)
        row.xaxis.label.set_visible(False)
    for row in rows:
        row.yaxis.label.set(rotation=0, ha="right", va="center")
        row.yaxis.labelpad = 12
    canvas.align_ylabels(rows)
    return rows


def _stills(axes: Axes, stills: Sequence[Still]) -> None:
    """Side by side, each above the middle of its share of the steps."""
    axes.set_axis_off()
    for place, still in enumerate(stills):
        inset = axes.inset_axes((place / len(stills), 0, 1 / len(stills) - 0.006, 1))
        inset.imshow(np.asarray(still.picture), aspect="auto")
        inset.set(xticks=[], yticks=[])
        inset.spines[:].set(visible=True, color=still.colour, linewidth=2)
        black = {"facecolor": "black", "alpha": 0.55, "pad": 1.2, "linewidth": 0}
        inset.text(
            0.04, 0.95, f"{still.step}", transform=inset.transAxes, va="top", fontsize=7, color="white", bbox=black
        )


def _draw_chart(axes: Axes, chart: Chart, inches: float) -> None:
    if chart.x.log:
        axes.set_xscale("log")
    elif chart.x.knee:
        axes.set_xscale("asinh", linear_width=chart.x.knee)
    axes.set(xlim=(chart.x.low, chart.x.high), ylim=(chart.y.low, chart.y.high))
    axes.set(xlabel=chart.x.label, ylabel=chart.y.label)
    _ticks(axes.xaxis, chart.x, inches)
    _ticks(axes.yaxis, chart.y, inches)
    if chart.top is not None:
        label, factor = chart.top
        top = axes.secondary_xaxis("top", functions=(lambda x: np.multiply(x, factor), lambda x: np.divide(x, factor)))
        top.spines["top"].set_visible(True)
        top.set_xlabel(label)
        _ticks(top.xaxis, Axis("", chart.x.low, chart.x.high, chart.x.log, "percent"), inches)
    for series in chart.series:
        if series.y:
            _draw_series(axes, series)
    for place, series in enumerate(series for series in chart.series if series.point_labels):
        _label_points(axes, series, above=place % 2 == 0)
    if chart.bars:
        _bars(axes, chart)
    elif not any(series.y for series in chart.series):
        axes.text(0.5, 0.5, "no finite scores", transform=axes.transAxes, ha="center", color=GREY)
        axes.set(xticks=[], yticks=[])


def _ticks(axis: Any, described: Axis, inches: float) -> None:
    """As described; on a log scale 1, 2 and 5 of each decade where there is room for them."""
    if described.ticks:
        axis.set_ticks(described.ticks)
    elif described.log:
        crowded = 3 * math.log10(described.high / described.low) > 1.5 * inches
        axis.set_major_locator(LogLocator(subs=(1,) if crowded else (1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, described.format)))


def _draw_series(axes: Axes, series: Series) -> None:
    colour, y = series.style.colour, np.array(series.y)
    x = np.array(series.x) if series.x else np.arange(len(y)) + 0.5
    if series.spans is not None:
        solid = np.full(len(y), np.nan)
        for start, end in series.spans:
            solid[start:end] = y[start:end]
        alone = [start for start, end in series.spans if end - start == 1]  # one step has no line to show
        axes.plot(x, y, color=colour, alpha=0.3, lw=0.8, zorder=1.5)
        axes.plot(x, solid, color=colour, lw=1.3, solid_capstyle="round")
        axes.plot(x[alone], y[alone], ".", color=colour, ms=2.5)
        return
    if series.interval is not None and series.bars:
        around = np.abs(np.array(series.interval) - y)
        faint = 0.7 * series.opacity
        axes.errorbar(x, y, around, series.x_error or None, "none", ecolor=colour, elinewidth=0.9, alpha=faint)
    elif series.interval is not None:
        axes.fill_between(x, *series.interval, color=colour, alpha=0.15, lw=0)
    if series.level:
        axes.axhline(y[0], color=colour, lw=0.9, ls=LINES["dashed"], zorder=1.5)
    axes.plot(x, y, **_line(series))


def _line(series: Series) -> dict[str, Any]:
    """How a series is drawn, in the chart and in its legend."""
    colour, marker, size = series.style
    inside, edge, width = (colour, "white", 0.7 if series.opacity == 1 else 0)
    if series.hollow or marker == "|":
        inside, edge, width = ("white", colour, 1.2)
    look = {"color": colour, "ls": LINES[series.line], "lw": series.width, "alpha": series.opacity}
    return look | {"marker": marker or None, "ms": size, "mfc": inside, "mec": edge, "mew": width}


def _label_points(axes: Axes, series: Series, above: bool) -> None:
    """Over the points of one series and under those of the next, so that neighbours keep off each other."""
    for x, y, text in zip(series.x, series.y, series.point_labels, strict=False):
        axes.annotate(
            text,
            (x, y),
            (0, LABEL_OFFSETS[0] if above else -LABEL_OFFSETS[0]),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            color=[INK * part for part in to_rgb(series.style.colour)],
            bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.3},
        )


def _part_labels(canvas: Canvas, labels: Sequence[Annotation]) -> None:
    """Move labels that cover one another to the other side of their points, or further off; hide what has no place."""
    if not labels:
        return
    canvas.draw_without_rendering()
    taken: list[Bbox] = []
    for label in labels:
        side = np.sign(label.get_position()[1])
        for offset in (side * away * sign for away in LABEL_OFFSETS for sign in (1, -1)):
            label.set(position=(0, offset), va="bottom" if offset > 0 else "top")
            box = label.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            label.set_visible(False)


def _bars(axes: Axes, chart: Chart) -> None:
    for start, end, height, colour in chart.bars:
        axes.bar(start, height, end - start, align="edge", color=colour, linewidth=0)
    axes.vlines(chart.marks, -0.16, -0.02, color=GREY, lw=0.5)
    axes.set(ylim=(-0.18, 1.02), yticks=[])
    _bare(axes)


def _histograms(chart: Chart, above: Axes, beside: Axes) -> None:
    assert chart.bins is not None
    for series in chart.series:
        if series.counts is not None:
            bars: dict[str, Any] = {"fill": True, "color": series.style.colour, "alpha": series.opacity}
            above.stairs(series.counts[0], chart.bins[0], **bars)
            beside.stairs(series.counts[1], chart.bins[1], orientation="horizontal", **bars)
    above.set(xlim=(chart.x.low, chart.x.high), xticklabels=[], yticks=[])
    beside.set(ylim=(chart.y.low, chart.y.high), yticklabels=[], xticks=[])
    _bare(above)
    _bare(beside)


def _bare(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.grid(False)
    axes.tick_params(length=0)


def _legend(canvas: Canvas, axes: Axes, figure: Figure) -> bool:
    """Below the axes, where it covers nothing; above the rows of a stacked figure. Whether it holds the note too."""
    entries = {series.label: series for chart in figure.charts for series in chart.series if series.label}
    level = {"ls": LINES["dashed"], "lw": 0.9}
    handles = [Line2D([], [], label=s.label, **(_line(s) | (level if s.level else {}))) for s in entries.values()]
    below = axes.transAxes + ScaledTranslation(0, -30 / 72, canvas.dpi_scale_trans)
    if figure.stacked:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 0.94), "handlelength": 1.2}
    else:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below, "handlelength": 2.4}
    widest = max(map(len, entries), default=0) + 5
    columns = max(1, min(4, int(LETTERS * figure.size[0] / widest)))
    looks: dict[str, Any] = {"ncols": columns, "borderaxespad": 0.2, "columnspacing": 1.6, "frameon": False}
    if figure.stacked or len(figure.charts) < 3:
        axes.legend(handles=handles, **looks, **place)
        return False
    # Under all charts: it would squeeze the one that it belonged to.
    below_all = canvas.legend(handles=handles, loc="outside lower center", handlelength=2.4, **looks)
    below_all.set_title(figure.note)
    below_all.get_title().set(color=GREY, ha="center", fontsize=8)
    return True
