"""Performance profiles over tasks: what share of all agents scores at least so much (Agarwal et al. 2021).

Scores are scaled task by task, a random policy to 0 and the run's large-only agents, or else the paper's, to 1. Of a
variant with several settings the one with the best mean counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from lowgear.report.looks import look_of, place
from lowgear.report.pictures import explain, keep, name_figure, new_figure
from lowgear.report.runs import Run
from lowgear.report.settings import Setting, best, score_of

FloatArray = npt.NDArray[np.float64]
SIZE = (5.5, 3.6)  # inches
POINTS = 81
SAMPLES = 500
REACH = 1.3  # scaled scores beyond this are not told apart


@dataclass(frozen=True)
class Profile:
    """One variant over all tasks that have it."""

    variant: str
    at: tuple[float, ...]  # scaled scores
    share: tuple[float, ...]  # of agents that score at least that
    low: tuple[float, ...]  # of its 95% interval
    high: tuple[float, ...]
    tasks: int


def profiles(runs: Sequence[Run]) -> list[Profile]:
    """Every variant that was evaluated on two scaled tasks or more."""
    scores: dict[str, dict[str, FloatArray]] = {}
    for run in runs:
        scale = _scale(run)
        if scale is None:
            continue
        for variant in dict.fromkeys(s.variant for s in run.settings):
            chosen = best([s for s in run.settings if s.variant == variant])
            values = (_values(run, chosen) - scale[0]) / (scale[1] - scale[0])
            scores.setdefault(variant, {}).setdefault(run.task.name, values)
    several = {variant: list(by_task.values()) for variant, by_task in scores.items() if len(by_task) > 1}
    return [_profile(variant, several[variant]) for variant in sorted(several, key=place)]


def draw(found: Sequence[Profile], directory: Path) -> list[Path]:
    """Draw into `directory` as profiles.svg and profiles.png."""
    return keep(lambda: _figure(found), directory, "profiles")


def _scale(run: Run) -> tuple[float, float] | None:
    published = run.task.published
    if published is None:
        return None
    own = [s for s in run.settings if s.variant == "large-only"]
    large = own[0].score.mean if own else published.large_only[0]
    return (published.random, large) if large > published.random else None


def _values(run: Run, setting: Setting) -> FloatArray:
    """Each agent's score at a setting."""
    assert run.evaluation is not None
    rows = [
        row
        for row in run.evaluation["agents"]
        if row["agent"] in setting.agents and float(f"{row['cost_coefficient']:.9g}") == setting.coefficient
    ]
    found = np.array([score_of(row) for row in rows], np.float64)
    return found[np.isfinite(found)]


def _profile(variant: str, tasks: list[FloatArray]) -> Profile:
    at = np.linspace(0, REACH, POINTS)
    generator = np.random.default_rng(0)

    def share(scores: list[FloatArray]) -> FloatArray:
        """Every task counts alike, however many seeds it has."""
        found: FloatArray = np.mean([(values[:, None] >= at).mean(axis=0) for values in scores], axis=0)
        return found

    drawn = [share([generator.choice(values, len(values)) for values in tasks]) for _ in range(SAMPLES)]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return Profile(variant, _tuple(at), _tuple(share(tasks)), _tuple(low), _tuple(high), len(tasks))


def _tuple(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _figure(found: Sequence[Profile]) -> Figure:
    figure = new_figure(*SIZE)
    axes = figure.add_subplot()
    for profile in found:
        colour = look_of(profile.variant).colour
        axes.fill_between(profile.at, profile.low, profile.high, color=colour, alpha=0.13, lw=0, step="post")
        axes.step(profile.at, profile.share, color=colour, lw=1.6, where="post", label=profile.variant)
    axes.set(
        xlabel="scaled score τ", ylabel="share of agents that score τ or more", xlim=(0, REACH), ylim=(-0.02, 1.02)
    )
    axes.spines["top"].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3, frameon=False)
    name_figure(figure, "Performance profiles", f"{max(profile.tasks for profile in found)} tasks")
    explain(figure, "0: a random policy. 1: large-only. Bands: 95% bootstrap intervals, seeds drawn task by task.")
    return figure
