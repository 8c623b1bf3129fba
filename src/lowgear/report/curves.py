"""Learning curves: from metrics.jsonl to the middle of each variant's seeds with its bootstrap interval."""

import math
from collections import defaultdict
from collections.abc import Sequence

from lowgear.evaluation.results import MetricsLine
from lowgear.evaluation.statistics import bootstrap, interquartile_mean
from lowgear.report.figure import Axis, Chart, Figure, Series, heights, score_axis
from lowgear.report.runs import RunData
from lowgear.report.style import variant_rank, variant_style
from lowgear.report.text import count, short

SAMPLES = 500
POINTS_AT_MOST = 60
CURVES_AT_MOST = 64
MARKED = 12  # points of a curve that are few enough to be marked
LINES = ("solid", "dashed", "dotted", "dashdot")  # of a variant's coefficients, in turn

Scores = dict[int, dict[int, float]]  # by step and agent


def describe(run: RunData) -> Figure | None:
    """The curves of a run."""
    return describe_lines(run.metrics, run.task.name, run.config.recipe.name)


def describe_lines(metrics: Sequence[MetricsLine], task: str, recipe: str) -> Figure | None:
    """From the evaluations while training; from the training episodes where fewer than two were made.

    A curve is a variant, or one coefficient of it where agents of several train side by side. None without any.
    """
    rate, total, source = "success_rate", "return_mean", "evaluations while training"
    lines = [line for line in metrics if line["kind"] == "evaluation"]
    if len({line["steps"] for line in lines}) < 2:
        rate, total, source = "success", "return", "training episodes, with exploration"
        lines = [line for line in metrics if line["kind"] == "train"]
    key = rate if any(line.get(rate) is not None and line["scored_by"] == "success" for line in lines) else total
    groups = _group(lines, key)
    order = sorted(groups, key=lambda group: (variant_rank(group[0]), group))[:CURVES_AT_MOST]
    series = [_curve(groups, *group) for group in order]
    drawn = tuple(one for one in series if len(one.x) > 1)
    if not drawn:
        return None
    seeds = [_seeds(scores) for scores in groups.values()]
    fewest, most = min(seeds), max(seeds)
    steps = Axis("environment steps of each agent", 0, max(s.x[-1] for s in drawn), format="steps", name="{} steps")
    said = count(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    bands = " Bands: 95% bootstrap intervals of it." if most > 1 else ""
    return Figure(
        name="curves",
        heading=task,
        facts=f"{recipe} recipe, {said}",
        note=f"Interquartile mean over seeds, from {source}.{bands}",
        charts=(Chart(steps, score_axis("success rate" if key == rate else "return", heights(drawn)), drawn),),
        size=(6.5, 3.8),
        title="Learning curves",
    )


def _group(lines: Sequence[MetricsLine], key: str) -> dict[tuple[str, float], Scores]:
    """Finite scores by variant and coefficient."""
    groups: defaultdict[tuple[str, float], Scores] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        value, relative = line.get(key), line.get("relative_coefficient")
        coefficient = line.get("cost_coefficient") if relative is None else relative
        if isinstance(value, int | float) and math.isfinite(value):
            known = float(coefficient) if isinstance(coefficient, int | float) else 0.0
            groups[line["variant"], known][line["steps"]][line["agent"]] = float(value)
    return groups


def _seeds(scores: Scores) -> int:
    return max(map(len, scores.values()))


def _curve(groups: dict[tuple[str, float], Scores], variant: str, coefficient: float) -> Series:
    scores = groups[variant, coefficient]
    siblings = sorted(other for name, other in groups if name == variant)
    # A step that only some seeds have reached would bend the curve towards them.
    steps = _thinned([step for step in sorted(scores) if len(scores[step]) == _seeds(scores)])
    at = [list(scores[step].values()) for step in steps]
    bands = [bootstrap(values, samples=SAMPLES) for values in at] if _seeds(scores) > 1 else []
    return Series(
        tuple(map(float, steps)),
        tuple(map(interquartile_mean, at)),
        variant_style(variant)._replace(marker="o" if len(steps) <= MARKED else "", size=4.0),
        label=variant if len(siblings) == 1 else f"{variant} λ {short(coefficient)}",
        line=LINES[siblings.index(coefficient) % len(LINES)],
        interval=(tuple(low for low, _ in bands), tuple(high for _, high in bands)) if bands else None,
    )


def _thinned(steps: Sequence[int]) -> list[int]:
    """Not more than can be told apart, the last among them."""
    stride = max(1, -(-len(steps) // POINTS_AT_MOST))
    return list(steps[::-1][::stride][::-1])
