"""The figures of the studies that sweep: score and share of the large gear along it, one picture for each task."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lowgear.evaluation import statistics
from lowgear.report.settings import Setting
from lowgear.report.sweeps import Sweep, draw_sweep
from lowgear.studies.rows import TableRow


def draw(rows: Sequence[TableRow], x_label: str, directory: Path) -> list[Path]:
    """Into `directory` as sweep-TASK.svg and sweep-TASK.png."""
    written = []
    for task in dict.fromkeys(row.task for row in rows):
        swept = [row for row in rows if row.task == task and row.x is not None]
        # A dial may begin at 0 or below, where a log scale has no room.
        own = sorted((row for row in swept if (row.x or 0) > 0), key=lambda row: row.x or 0)
        if not own:
            continue
        across = f"relative {x_label}" if own[0].label.startswith("relative") else x_label
        score = "success rate" if task.hindsight else "return"
        sweep = Sweep(task.name, "asymmetric", score, tuple(row.x or 0.0 for row in own), tuple(map(_setting, own)))
        written += draw_sweep(sweep, across, "sweep", directory, f"{own[0].steps:,} steps, {len(own[0].seeds)} seeds")
    return written


def _setting(row: TableRow) -> Setting:
    low, high = statistics.bootstrap([seed.score for seed in row.seeds], lambda scores: float(np.mean(scores)))
    return Setting(
        variant="asymmetric",
        coefficient=row.x or 0.0,
        dial=False,
        score=row.score,
        mean_low=low,
        mean_high=high,
        large_share=row.mean("large_share"),
        flops=row.mean("flops_per_step"),
        saved=row.mean("flops_reduction"),
        period=None,
        agents=(),
    )
