"""The figures of the studies that sweep: score and share of the large gear along it, one picture for each task."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lowgear.evaluation import statistics
from lowgear.report.settings import Setting
from lowgear.report.sweeps import Sweep, draw_sweep
from lowgear.studies.lines import Line


def draw(lines: Sequence[Line], across: str, directory: Path) -> list[Path]:
    """Into `directory` as sweep-TASK.svg and sweep-TASK.png."""
    written = []
    for task in dict.fromkeys(line.task for line in lines):
        own = sorted((line for line in lines if line.task == task and line.x is not None), key=lambda line: line.x or 0)
        score = "success rate" if task.hindsight else "return"
        sweep = Sweep(task.name, "asymmetric", score, tuple(line.x or 0.0 for line in own), tuple(map(_setting, own)))
        written += draw_sweep(sweep, across, "sweep", directory, f"{own[0].steps:,} steps, {len(own[0].seeds)} seeds")
    return written


def _setting(line: Line) -> Setting:
    low, high = statistics.bootstrap([seed.score for seed in line.seeds], lambda scores: float(np.mean(scores)))
    return Setting(
        variant="asymmetric",
        coefficient=line.x or 0.0,
        dial=False,
        score=line.score,
        mean_low=low,
        mean_high=high,
        large_share=line.mean("large_share"),
        flops=line.mean("flops_per_step"),
        saved=line.mean("flops_reduction"),
        period=None,
        agents=(),
    )
