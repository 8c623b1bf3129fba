"""The figure of `lowgear slim`: what each controller scores against what it costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lowgear.report.figure import Chart, Figure, Series, TopAxis, axis, heights
from lowgear.report.matplotlib_figure import save
from lowgear.report.style import variant_style
from lowgear.studies.slimmed import ITSELF

SIZE = (7.0, 4.6)  # inches
NOTE = "Up is better, left is cheaper. Bars: 95% intervals over episodes. Dashed: the policy itself."


def draw(report: Mapping[str, Any], directory: Path) -> list[Path]:
    """As slim.svg and slim.png."""
    return save(describe(report), directory)


def describe(report: Mapping[str, Any]) -> Figure:
    """Of what `lowgear slim` found."""
    rows = report["controllers"]
    large, others = rows[0], rows[1:]
    alone = [row for row in others if row["large_share"] is None]
    switching = [row for row in others if row["large_share"] is not None]
    series = (
        _series([large], "large-only", ITSELF),
        _series(alone, "small-only", "distilled into a small one", line="solid"),
        _series(switching, "asymmetric", "switching"),
    )
    across = axis("FLOPs per step, log scale", [row["flops_per_step"] for row in rows], log=True)
    chart = Chart(
        across,
        axis("score", heights(series)),
        series,
        top=TopAxis("share of the policy's FLOPs", 1 / large["flops_per_step"]),
    )
    seeds = len(report["confirmed_with_seeds"])
    return Figure("slim", report["task"], f"{report['source']}; {seeds} seeds of starts", NOTE, (chart,), SIZE)


def _series(rows: Sequence[Mapping[str, Any]], variant: str, label: str, line: str = "") -> Series:
    low, high = zip(*(row["score_interval"] for row in rows), strict=True)
    return Series(
        tuple(row["flops_per_step"] for row in rows),
        tuple(row["score_mean"] for row in rows),
        variant_style(variant),
        label=label,
        line=line,
        interval=(low, high),
        bars=True,
        level=variant == "large-only",
        point_labels=tuple("" if row["name"] == ITSELF else row["name"].split(",")[0] for row in rows),
    )
