"""The picture of a frontier: return against FLOPs per step, as frontier.svg and frontier.png.

Comes in: the object that `lowgear evaluate --json` prints. A dial agent is a thin line, the mean of its variant's
agents a bold one; agents of one coefficient are markers. Needs Matplotlib, the extra `report`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter
from matplotlib.transforms import ScaledTranslation

from lowgear.report.coefficients import label_coefficients
from lowgear.report.looks import Look, look_of, place
from lowgear.report.pictures import GREY, keep, new_figure
from lowgear.report.scores import Mean, MeanLine, Score, agent_lines, large_flops, mean_lines, read

SIZE_INCHES = (6.5, 4.2)
LOG_FROM = 5.0  # ratio of the dearest agent's FLOPs to the cheapest's
ROOM = 0.05  # left free at both ends of a log scale, as a share of it
LONG_NAME = 28  # letters of a task's name that fit beside the facts
NAMES = 12  # agents named in a note
REACH = 1.25  # how far beyond the outermost agents a log scale follows their bars
DASHES = (0, (5, 3))


def draw(report: dict[str, Any], directory: Path) -> list[Path]:
    """Draw the report into `directory`; both pictures are ready before either is written."""
    return keep(lambda: _figure(report), directory, "frontier")


def _figure(report: dict[str, Any]) -> Figure:
    scores = read(report["agents"], report["episodes"])
    finite = [score for score in scores if score.finite]
    lines = sorted(mean_lines(finite), key=lambda line: place(line.variant))
    figure = new_figure(*SIZE_INCHES)
    axes = figure.add_subplot()
    for line in lines:
        draw_line = _draw_dial if line.dial else _draw_points
        draw_line(axes, line, finite)
    _scale(axes, finite)
    _name_axes(axes, report["agents"])
    _name_picture(figure, report)
    _explain(figure, scores, lines)
    _legend(figure, axes, lines)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    label_coefficients(axes, finite, lines)
    return figure


def _draw_dial(axes: Axes, line: MeanLine, scores: Sequence[Score]) -> None:
    """Each dial agent of a variant with its intervals, and their mean."""
    look, agents = look_of(line.variant), agent_lines(scores, line.variant)
    alone = len(agents) == 1
    for agent in agents:
        flops, score = [s.flops for s in agent], [s.score for s in agent]
        axes.errorbar(
            flops,
            score,
            xerr=[s.flops_ci95 for s in agent],
            yerr=[[s.score - s.low for s in agent], [s.high - s.score for s in agent]],
            fmt="none",
            ecolor=look.colour,
            elinewidth=0.9 if alone else 0.6,
            alpha=0.7 if alone else 0.25,
        )
        if not alone:
            axes.plot(flops, score, color=look.colour, lw=0.7, marker=look.marker, ms=2.2, alpha=0.5, zorder=2.5)
    axes.plot(*_xy(line.means), zorder=5, **_mark(look), lw=1.8)


def _draw_points(axes: Axes, line: MeanLine, scores: Sequence[Score]) -> None:
    """Each agent of one coefficient, and their means."""
    look = look_of(line.variant)
    if line.agents > 1:
        each = [s for s in scores if s.variant == line.variant and not s.dial]
        axes.plot(
            [s.flops for s in each], [s.score for s in each], look.marker, color=look.colour, ms=3.2, mew=0, alpha=0.4
        )
    if line.variant == "large-only":
        axes.axhline(line.means[0].score, color=look.colour, lw=0.9, ls=DASHES, zorder=1.5)
    axes.plot(*_xy(line.means), ls="none", zorder=4, **_mark(look))


def _mark(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "ms": look.size, "mec": "white", "mew": 0.7}


def _xy(means: Sequence[Mean]) -> tuple[list[float], list[float]]:
    return [mean.flops for mean in means], [mean.score for mean in means]


def _legend(figure: Figure, axes: Axes, lines: Sequence[MeanLine]) -> None:
    """Below the axes, where it covers nothing."""
    handles = []
    for line in lines:
        dashes: Any = "-" if line.dial else DASHES if line.variant == "large-only" else "none"
        name = f"{line.variant} (dial)" if line.dial else line.variant
        handles.append(
            Line2D([], [], ls=dashes, lw=1.8 if line.dial else 0.9, label=name, **_mark(look_of(line.variant)))
        )
    below = axes.transAxes + ScaledTranslation(0, -30 / 72, figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below,
        ncols=4,
        borderaxespad=0,
        columnspacing=1.6,
        handlelength=2.4,
        frameon=False,
    )


def _scale(axes: Axes, scores: Sequence[Score]) -> None:
    """A log scale where FLOPs differ much, with ticks that can be read."""
    if not scores:
        axes.text(0.5, 0.5, "no finite scores", transform=axes.transAxes, ha="center", color=GREY)
        axes.set(xticks=[], yticks=[])
        return
    low, high = min(s.flops for s in scores), max(s.flops for s in scores)
    if high / low > LOG_FROM:
        axes.set_xscale("log")
        room = (high / low) ** ROOM
        left = min(s.flops - s.flops_ci95 * s.dial for s in scores)
        right = max(s.flops + s.flops_ci95 * s.dial for s in scores)
        axes.set_xlim(max(left, low / REACH) / room, min(right, high * REACH) * room)
        _tick_log(axes.xaxis)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda flops, _: f"{flops:,.0f}"))


def _tick_log(axis: XAxis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_formatter(NullFormatter())


def _name_axes(axes: Axes, agents: Sequence[dict[str, Any]]) -> None:
    log = axes.get_xscale() == "log"
    axes.set_xlabel("FLOPs per step" + (", log scale" if log else ""))
    with_success = any(row["success_rate"] is not None for row in agents)
    axes.set_ylabel("success rate" if with_success else "return")
    if with_success:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    large = large_flops(agents)
    if large is None or not axes.has_data():
        return
    to_share, to_flops = lambda flops: np.divide(flops, large), lambda share: np.multiply(share, large)
    top = axes.secondary_xaxis("top", functions=(to_share, to_flops))
    top.set_xlabel("share of the large gear's FLOPs")
    if log:
        _tick_log(top.xaxis)
    top.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))


def _name_picture(figure: Figure, report: dict[str, Any]) -> None:
    """What was evaluated, above: on one line, or on two where the task's name is long."""
    seeds = _count(len({row["seed"] for row in report["agents"]}), "seed")
    episodes = _count(report["episodes"], "episode")
    facts = f"{report['recipe']} recipe, {report['steps']:,} steps, {seeds}, {episodes} each"
    long = len(report["task"]) > LONG_NAME
    figure.suptitle(report["task"] + "\n" * long, x=0.012, ha="left", fontsize=10.5, fontweight="bold")
    x, y = (0.012, 0.94) if long else (0.988, 0.988)
    figure.text(x, y, facts, ha="left" if long else "right", va="top", fontsize=8.5, color=GREY)


def _explain(figure: Figure, scores: Sequence[Score], lines: Sequence[MeanLine]) -> None:
    """How to read it, below, and what could not be drawn."""
    notes = ["λ: cost coefficient."]
    if any(line.dial for line in lines):
        notes.append("Bars: 95% intervals over episodes.")
    if any(line.agents > 1 for line in lines):
        notes.append("Large marks: means; small, faint ones: each agent.")
    missing = [score.agent for score in scores if not score.finite]
    if missing:
        agents = sorted(set(missing))
        names = ", ".join(map(str, agents[:NAMES])) + ", …" * (len(agents) > NAMES)
        notes.append(f"\nLeft out, not finite: {len(missing)} of {_count(len(scores), 'score')} (agent {names}).")
    figure.supxlabel(" ".join(notes), fontsize=8, color=GREY)


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" + ("" if number == 1 else "s")
