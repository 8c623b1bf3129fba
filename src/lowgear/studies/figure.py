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
        own = [row for row in rows if row.task == task and row.x is not None]
        if not own:
            continue
        across = f"relative {x_label}" if own[0].label.startswith("relative") else x_label
        points = tuple(sorted(map(_point, own)))
        sweep = Sweep(task.name, "asymmetric", "success rate" if task.hindsight else "return", points)
        written += draw_sweep(sweep, across, "sweep", directory, f"{own[0].steps:,} steps, {len(own[0].seeds)} seeds")
    return written


def _point(row: TableRow) -> Point:
    interval = statistics.bootstrap([seed.score for seed in row.seeds], lambda scores: float(np.mean(scores)))
    return Point(row.x or 0.0, row.score.mean, *interval, row.mean("large_share"))
