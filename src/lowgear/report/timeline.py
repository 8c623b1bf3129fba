"""The picture of an episode: frames above, gears along the time axis, the actions of every gear below.

The chosen gear's actions are solid, those of the others faint, as in the paper's figures. Comes in: an `Episode`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from PIL import Image

from lowgear.report.episode import Episode
from lowgear.report.frames import stills
from lowgear.report.looks import gear_colour, gear_name
from lowgear.report.pictures import GREY, explain, keep, name_figure, new_figure

WIDTH = 7.2  # inches
STILLS = 9
LEAST, MOST = 100, 300  # steps
ACTIONS_AT_MOST = 6  # rows of actions: more would be too flat to read
GEARS_HIGH, ACTION_HIGH = 0.34, 0.62  # inches


def draw(episode: Episode, directory: Path, name: str = "timeline") -> list[Path]:
    """Draw the episode into `directory`."""
    return keep(lambda: _figure(episode), directory, name)


def window(episode: Episode) -> int:
    """How many steps to draw: not more than can be told apart, fewer where the gear settles early."""
    shifts = np.flatnonzero(np.diff(episode.gear))
    settled = round(1.3 * int(shifts[-1])) if len(shifts) else episode.steps
    return min(episode.steps, MOST, max(LEAST, settled))


def _figure(whole: Episode) -> Figure:
    steps = window(whole)
    episode = whole.until(steps)
    shown = stills(episode, STILLS)
    actions = min(episode.actions.shape[-1], ACTIONS_AT_MOST)
    heights = [GEARS_HIGH] + [ACTION_HIGH] * actions
    if shown:
        frame = shown[0][1]
        heights = [WIDTH * 0.93 / len(shown) * frame.height / frame.width, *heights]
    figure = new_figure(WIDTH, sum(heights) + 1.25)
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if shown:
        _film(axes[0], episode, shown)
    below = axes[1:] if shown else axes
    _gears(below[0], episode)
    for number, row in enumerate(below[1:]):
        _actions(row, episode, number)
    below[-1].set_xlabel("step")
    header = episode.policy.header
    who = header.variant if header.forced_gear is not None else f"{header.variant}, λ {header.cost_coefficient:.3g}"
    name_figure(figure, header.task, f"{who}, seed {header.seed}: return {whole.total:,.1f}")
    _legend(figure, whole, below[0])
    left = episode.actions.shape[-1] - actions
    notes = ["Solid: the actions taken. Faint: what the other gears would have done."]
    if left:
        notes.append(f"{left} more actions are not drawn.")
    if steps < whole.steps:
        rest = whole.gear[steps:]
        alone = (
            f", the rest all in the {gear_name(int(rest[0]), len(whole.actions))}" if (rest == rest[0]).all() else ""
        )
        notes.append(f"\nThe first {steps:,} of {whole.steps:,} steps{alone}; shares are of all steps.")
    explain(figure, " ".join(notes))
    return figure


def _film(axes: Axes, episode: Episode, shown: Sequence[tuple[int, Image.Image]]) -> None:
    """Frames side by side, each above the middle of its share of the steps, edged in the colour of its gear."""
    axes.set_axis_off()
    gears = len(episode.actions)
    for place, (step, frame) in enumerate(shown):
        inset = axes.inset_axes((place / len(shown), 0, 1 / len(shown) - 0.006, 1))
        inset.imshow(np.asarray(frame), aspect="auto")
        inset.set(xticks=[], yticks=[])
        for spine in inset.spines.values():
            spine.set(visible=True, color=gear_colour(int(episode.gear[step]), gears), linewidth=2)
        inset.text(0.04, 0.95, f"{step}", transform=inset.transAxes, va="top", fontsize=7, color="white").set_bbox(
            {"facecolor": "black", "alpha": 0.55, "pad": 1.2, "linewidth": 0}
        )


def _gears(axes: Axes, episode: Episode) -> None:
    """Which gear acted: colour, and height for those who can't tell colours; ticks where the master picked."""
    gears = len(episode.actions)
    edges = np.flatnonzero(np.diff(episode.gear, prepend=-1))
    ends = np.append(edges[1:], episode.steps)
    for start, end in zip(edges.tolist(), ends.tolist(), strict=True):
        gear = int(episode.gear[start])
        height = 0.45 + 0.55 * gear / (gears - 1)
        axes.bar(start, height, end - start, align="edge", color=gear_colour(gear, gears), linewidth=0)
    picks = np.flatnonzero(episode.picked)
    axes.vlines(picks, -0.16, -0.02, color=GREY, lw=0.5)
    axes.set(xlim=(0, episode.steps), ylim=(-0.18, 1.02), yticks=[], xticklabels=[])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("gear", rotation=0, ha="right", va="center")


def _actions(axes: Axes, episode: Episode, number: int) -> None:
    gears, steps = len(episode.actions), np.arange(episode.steps) + 0.5
    for gear in range(gears):
        values, taken = episode.actions[gear, :, number], episode.gear == gear
        colour = gear_colour(gear, gears)
        axes.plot(steps, values, color=colour, alpha=0.3, lw=0.8, zorder=1.5)
        axes.plot(steps, np.where(taken, values, np.nan), color=colour, lw=1.3, solid_capstyle="round")
        alone = taken & ~np.roll(taken, 1) & ~np.roll(taken, -1)  # a lone step has no line to show
        axes.plot(steps[alone], values[alone], ".", color=colour, ms=2.5)
    axes.set(xlim=(0, episode.steps), ylim=(-1.12, 1.12), yticks=[-1, 0, 1])
    axes.tick_params(labelsize=7)
    axes.set_ylabel(f"a{number + 1}", rotation=0, ha="right", va="center")
    axes.label_outer()
    axes.spines["top"].set_visible(False)


def _legend(figure: Figure, episode: Episode, axes: Axes) -> None:
    gears, shares = len(episode.actions), episode.gear_share
    handles: list[Patch | Line2D] = [
        Patch(
            color=gear_colour(gear, gears),
            label=f"{gear_name(gear, gears)}, {shares[gear]:.1%}{' of steps' * (gears < 3)}",
        )
        for gear in range(gears)
    ]
    if episode.picked.any():
        mark: dict[str, Any] = {"marker": "|", "ls": "none", "color": GREY, "ms": 5}
        handles.append(Line2D([], [], label=f"picks ({int(episode.picked.sum())})", **mark))
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 0.94),
        ncols=4,
        frameon=False,
        borderaxespad=0.2,
        handlelength=1.2,
        columnspacing=1.5,
    )
    figure.align_ylabels()
