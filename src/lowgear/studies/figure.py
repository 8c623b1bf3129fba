"""The figures of the studies that sweep: score and share of the large gear along it, one picture for each task."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lowgear.evaluation import statistics
from lowgear.report.sweeps import Point, Sweep, draw_sweep
from lowgear.studies.rows import TableRow


def draw(rows: Sequence[TableRow], x_label: str, directory: Path) -> list[Path]:
    """Into `directory` as sweep-TASK.svg and sweep-TASK.png."""
    written = []
    for task in dict.fromkeys(row.task for row in rows):
        own = [row for row in rows if row.task == task]
        points = sorted(_point(row) for row in own if row.x is not None)
        sweep = Sweep(task.name, "asymmetric", "success rate" if task.hindsight else "return", tuple(points))
        written += draw_sweep(sweep, x_label, "sweep", directory, f"{own[0].steps:,} steps, {len(own[0].seeds)} seeds")
    return written


def _point(row: TableRow) -> Point:
    interval = statistics.bootstrap([seed.score for seed in row.seeds], lambda scores: float(np.mean(scores)))
    return Point(row.x or 0.0, row.score.mean, *interval, row.mean("large_share"))
