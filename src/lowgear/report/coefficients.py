"""Writes the cost coefficients beside the means they belong to, off each other and off what is drawn."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from lowgear.report.labels import Box, FloatArray, Label, disc, leader, place, samples
from lowgear.report.looks import PAY_NOTHING, Look, look_of
from lowgear.report.scores import Mean, MeanLine, Score, agent_lines

SAME_PLACE = 6.0  # points: settings of a dial whose means lie closer share a label
LEADER_FROM = 6.5  # points: a label this far from its mean is tied to it by a line
POINTS_SIZE = 8.0  # of the letters
INK = 0.8  # letters are this much darker than their lines
ON_MEAN, ON_MEAN_LINE, ON_AGENT, ON_AGENT_LINE, ON_BAR, ON_BASELINE = 30.0, 3.0, 1.0, 0.3, 0.15, 1.0  # cost of covering

XY = tuple[float, float]


def label_coefficients(axes: Axes, scores: Sequence[Score], lines: Sequence[MeanLine]) -> None:
    """Label every mean of the variants that pay, in a figure whose layout is settled at 72 dots per inch."""
    named = [
        (look_of(line.variant), means)
        for line in lines
        if line.variant not in PAY_NOTHING
        for means in _places(axes, line)
    ]
    wanted = [_measure(axes, means) for _, means in named]
    window = axes.get_window_extent()
    frame = Box(window.x0, window.y0, window.x1, window.y1)
    boxes = place(wanted, _drawn(axes, scores, lines), frame)
    for (look, means), label, box in zip(named, wanted, boxes, strict=True):
        _write(axes, means, look, label, box)


def _places(axes: Axes, line: MeanLine) -> list[list[Mean]]:
    """A line's means, those of neighbouring settings together where they fall on the same place."""
    places: list[list[Mean]] = []
    for mean in line.means:
        if line.dial and places and math.dist(_at(axes, places[-1][0]), _at(axes, mean)) < SAME_PLACE:
            places[-1].append(mean)
        else:
            places.append([mean])
    return places


def _name(means: Sequence[Mean]) -> str:
    ends = dict.fromkeys(f"{mean.coefficient:.3g}" for mean in (means[0], means[-1]))
    return "λ " + "–".join(ends)


def _middle(means: Sequence[Mean]) -> Mean:
    return means[len(means) // 2]


def _measure(axes: Axes, means: Sequence[Mean]) -> Label:
    text = axes.text(0, 0, _name(means), fontsize=POINTS_SIZE)
    size = text.get_window_extent()
    text.remove()
    return Label(*_at(axes, _middle(means)), size.width, size.height)


def _at(axes: Axes, point: Mean | Score) -> XY:
    x, y = axes.transData.transform((point.flops, point.score))
    return float(x), float(y)


def _drawn(axes: Axes, scores: Sequence[Score], lines: Sequence[MeanLine]) -> FloatArray:
    """What is better not covered: x, y and how bad it is."""
    window = axes.get_window_extent()
    rows = [(*_at(axes, score), ON_AGENT) for score in scores]
    for line in lines:
        means = [_at(axes, mean) for mean in line.means]
        for mean in means:
            rows += disc(mean, look_of(line.variant).size / 2, ON_MEAN)
        if line.dial:
            rows += samples(means, ON_MEAN_LINE)
        if line.variant == "large-only":
            rows += samples([(window.x0, means[0][1]), (window.x1, means[0][1])], ON_BASELINE)
        for agent in agent_lines(scores, line.variant):
            rows += samples([_at(axes, score) for score in agent], ON_AGENT_LINE)
            for score in agent:
                rows += _bars(axes, score)
    return np.array(rows).reshape(-1, 3)


def _bars(axes: Axes, score: Score) -> list[tuple[float, float, float]]:
    window, (x, y) = axes.get_window_extent(), _at(axes, score)
    ends = axes.transData.transform(
        [(score.flops - score.flops_ci95, score.low), (score.flops + score.flops_ci95, score.high)]
    )
    (left, bottom), (right, top) = np.clip(ends, window.min, window.max)
    return samples([(left, y), (right, y)], ON_BAR) + samples([(x, bottom), (x, top)], ON_BAR)


def _write(axes: Axes, means: Sequence[Mean], look: Look, label: Label, box: Box) -> None:
    point = _middle(means)
    start, end = leader(label, box)
    tie = {
        "arrowstyle": "-",
        "lw": 0.6,
        "color": look.colour,
        "relpos": ((end[0] - box.left) / label.width, (end[1] - box.bottom) / label.height),
        "shrinkA": 0,
        "shrinkB": look.size / 2,
    }
    x, y = box.centre
    axes.annotate(
        _name(means),
        (point.flops, point.score),
        (x - label.x, y - label.y),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=POINTS_SIZE,
        color=[INK * part for part in to_rgb(look.colour)],
        zorder=3.5,
        bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.3},
        arrowprops=tie if math.dist(start, end) > LEADER_FROM else None,
    )
