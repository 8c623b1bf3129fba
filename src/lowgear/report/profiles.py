"""Performance profiles over tasks: what share of all agents scores at least so much (Agarwal et al. 2021).

Scores are scaled task by task, a random policy to 0 and the run's large-only agents, or else the paper's, to 1. Of a
variant with several settings the one with the best mean counts.
"""

from collections.abc import Sequence

import numpy as np

from lowgear.policy.arrays import DoubleArray
from lowgear.report.figure import Axis, Chart, Figure, Series
from lowgear.report.paper import scaling
from lowgear.report.runs import RunData
from lowgear.report.settings import best
from lowgear.report.style import variant_rank, variant_style

POINTS = 261
SAMPLES = 500
REACH = 1.3  # scaled scores beyond this are not told apart


def describe(runs: Sequence[RunData]) -> Figure | None:
    """Every variant that was evaluated on two scaled tasks or more; None where there is none."""
    scores: dict[str, dict[str, DoubleArray]] = {}
    for run in runs:
        large = [s.score.mean for s in run.settings if s.variant == "large-only"]
        scale = scaling(run.task, large[0] if large else None)
        if scale is None:
            continue
        for variant in {s.variant for s in run.settings}:
            chosen = best([s for s in run.settings if s.variant == variant])
            values = scale.apply(np.array([agent.score for agent in chosen.agents]))
            scores.setdefault(variant, {}).setdefault(run.task.name, values)
    several = {variant: list(by_task.values()) for variant, by_task in scores.items() if len(by_task) > 1}
    if not several:
        return None
    across = Axis("scaled score τ", 0, REACH, name="τ {}")
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    up = Axis("share of agents that score τ or more", -0.02, 1.02, format="percent", ticks=quarters)
    profiles = [_profile(variant, several[variant]) for variant in sorted(several, key=variant_rank)]
    tasks = max(map(len, several.values()))
    return Figure(
        name="profiles",
        heading="Performance profiles",
        facts=f"{tasks} tasks",
        note="0: a random policy. 1: large-only. Bands: 95% bootstrap intervals, seeds drawn task by task.",
        charts=(Chart(across, up, tuple(profiles)),),
        size=(5.5, 3.6),
        title="Performance profiles",
        hint=f"Over {tasks} tasks, each counting alike; of a variant with several settings the one with the best mean.",
    )


def _profile(variant: str, tasks: list[DoubleArray]) -> Series:
    at = np.linspace(0, REACH, POINTS)
    generator = np.random.default_rng(0)

    def share(scores: list[DoubleArray]) -> DoubleArray:
        """Every task counts alike, however many seeds it has."""
        found: DoubleArray = np.mean([(values[:, None] >= at).mean(axis=0) for values in scores], axis=0)
        return found

    drawn = [share([generator.choice(values, len(values)) for values in tasks]) for _ in range(SAMPLES)]
    x, y, low, high = (tuple(row.tolist()) for row in (at, share(tasks), *np.percentile(drawn, [2.5, 97.5], axis=0)))
    plain = variant_style(variant)._replace(marker="")
    return Series(x, y, plain, label=variant, line="solid", interval=(low, high))
