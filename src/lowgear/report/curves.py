"""Learning curves: from metrics.jsonl to the middle of each variant's seeds with its bootstrap interval."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lowgear.evaluation.statistics import bootstrap, interquartile_mean
from lowgear.report.figure import Axis, Chart, Figure, Series, score_axis
from lowgear.report.runs import MetricsLine, RunData
from lowgear.report.style import variant_rank, variant_style
from lowgear.report.text import count

SAMPLES = 500
POINTS_AT_MOST = 60
MARKED = 12  # points of a curve that are few enough to be marked
LINES = ("solid", "dashed", "dotted", "dashdot")  # of a variant's coefficients, in turn


@dataclass(frozen=True)
class LearningCurves:
    """One series for each variant, or each coefficient of it where agents of several train side by side.

    Heights are interquartile means over seeds, with their 95% intervals where there are several.
    """

    series: tuple[Series, ...]
    seeds: tuple[int, ...]  # of each series
    source: str  # where the numbers come from, for the reader
    kind: str  # of the scores


def learning_curves(run: RunData) -> LearningCurves:
    """From the evaluations while training; from the training episodes where fewer than two were made."""
    keys, source = ("success_rate", "return_mean"), "evaluations while training"
    lines = [line for line in run.metrics if line["kind"] == "evaluation"]
    if len({line["steps"] for line in lines}) < 2:
        keys, source = ("success", "return"), "training episodes, with exploration"
        lines = [line for line in run.metrics if line["kind"] == "train"]
    rate, total = keys
    key = rate if any(line.get(rate) is not None for line in lines) else total
    groups: defaultdict[tuple[str, float], defaultdict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        value = line.get(key)
        if isinstance(value, int | float) and math.isfinite(value):
            groups[line["variant"], _coefficient(line)][line["steps"]][line["agent"]] = float(value)
    series, seeds = [], []
    for variant, coefficient in sorted(groups, key=lambda group: (variant_rank(group[0]), group)):
        siblings = sorted(other for name, other in groups if name == variant)
        label = variant if len(siblings) == 1 else f"{variant} λ {coefficient:.3g}"
        stroke = LINES[siblings.index(coefficient) % len(LINES)]
        at = groups[variant, coefficient]
        seeds.append(max(map(len, at.values())))
        series.append(_curve(variant, label, stroke, at))
    return LearningCurves(tuple(series), tuple(seeds), source, "success rate" if key == rate else "return")


def describe(run: RunData) -> Figure | None:
    """The run's curves; None where none has two points."""
    found = learning_curves(run)
    drawn = tuple(series for series in found.series if len(series.x) > 1)
    if not drawn:
        return None
    fewest, most = min(found.seeds), max(found.seeds)
    seeds = count(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    bands = " Bands: 95% bootstrap intervals of it." if most > 1 else ""
    longest = max(series.x[-1] for series in drawn)
    steps = Axis("environment steps of each agent", 0, longest, format="steps", name="{} steps")
    ends = [value for series in drawn for end in (series.y, *(series.interval or ())) for value in end]
    return Figure(
        name="curves",
        heading=run.task.name,
        facts=f"{run.config.recipe.name} recipe, {seeds}",
        note=f"Interquartile mean over seeds, from {found.source}.{bands}",
        charts=(Chart(steps, score_axis(found.kind, ends), drawn),),
        size=(6.5, 3.8),
        title="Learning curves",
    )


def _coefficient(line: MetricsLine) -> float:
    value = line.get("cost_coefficient")
    return float(value) if isinstance(value, int | float) else 0.0


def _curve(variant: str, label: str, line: str, at: dict[int, dict[int, float]]) -> Series:
    seeds = max(map(len, at.values()))
    # A step that only some seeds have reached would bend the curve towards them.
    steps = _thinned([step for step in sorted(at) if len(at[step]) == seeds])
    scores = [list(at[step].values()) for step in steps]
    bands = [bootstrap(values, samples=SAMPLES) for values in scores] if seeds > 1 else []
    return Series(
        tuple(map(float, steps)),
        tuple(map(interquartile_mean, scores)),
        variant_style(variant)._replace(marker="o" if len(steps) <= MARKED else "", size=4.0),
        label=label,
        line=line,
        interval=(tuple(low for low, _ in bands), tuple(high for _, high in bands)) if bands else None,
    )


def _thinned(steps: Sequence[int]) -> list[int]:
    """Not more than can be told apart, the last among them."""
    stride = max(1, -(-len(steps) // POINTS_AT_MOST))
    return list(steps[::-1][::stride][::-1])
