"""Learning curves: from metrics.jsonl to the middle of each variant's seeds with its bootstrap interval."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lowgear.evaluation.statistics import bootstrap, interquartile_mean
from lowgear.report.looks import place
from lowgear.report.runs import Line, Run

SAMPLES = 500
POINTS_AT_MOST = 60


@dataclass(frozen=True)
class Curve:
    """One variant, or one coefficient of it where agents of several train side by side."""

    label: str
    variant: str
    steps: tuple[int, ...]
    middle: tuple[float, ...]  # interquartile mean over seeds
    low: tuple[float, ...]  # of its 95% interval; equal to the middle for one seed
    high: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class Curves:
    """Of one run."""

    curves: tuple[Curve, ...]
    source: str  # where the numbers come from, for the reader
    score: str  # what they are


def curves(run: Run) -> Curves:
    """From the evaluations while training; from the training episodes where fewer than two were made."""
    kind, keys, source = "evaluation", ("success_rate", "return_mean"), "evaluations while training"
    lines = _lines(run, kind)
    if len({line["steps"] for line in lines}) < 2:
        kind, keys, source = "train", ("success", "return"), "training episodes, with exploration"
        lines = _lines(run, kind)
    rate, total = keys
    key = rate if any(line.get(rate) is not None for line in lines) else total
    groups: defaultdict[tuple[str, float], defaultdict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        value = line.get(key)
        if isinstance(value, int | float) and math.isfinite(value):
            groups[line["variant"], _coefficient(line)][line["steps"]][line["agent"]] = float(value)
    several = {variant for variant, _ in groups if sum(other == variant for other, _ in groups) > 1}
    found = [
        _curve(f"{variant} λ {coefficient:.3g}" if variant in several else variant, variant, at)
        for (variant, coefficient), at in sorted(groups.items(), key=lambda item: (place(item[0][0]), item[0]))
    ]
    return Curves(tuple(found), source, "success rate" if key == rate else "return")


def _lines(run: Run, kind: str) -> list[Line]:
    return [line for line in run.metrics if line["kind"] == kind]


def _coefficient(line: Line) -> float:
    value = line.get("cost_coefficient")
    return float(value) if isinstance(value, int | float) else 0.0


def _curve(label: str, variant: str, at: dict[int, dict[int, float]]) -> Curve:
    seeds = max(len(values) for values in at.values())
    # A step that only some seeds have reached would bend the curve towards them.
    whole = [step for step in sorted(at) if len(at[step]) == seeds]
    steps = _thinned(whole)
    scores = [list(at[step].values()) for step in steps]
    middle = [interquartile_mean(values) for values in scores]
    if seeds > 1:
        bands = [bootstrap(values, samples=SAMPLES) for values in scores]
    else:
        bands = [(value, value) for value in middle]
    low, high = zip(*bands, strict=True) if bands else ((), ())
    return Curve(label, variant, tuple(steps), tuple(middle), tuple(low), tuple(high), seeds)


def _thinned(steps: Sequence[int]) -> list[int]:
    """Not more than can be told apart, the last among them."""
    stride = max(1, -(-len(steps) // POINTS_AT_MOST))
    return list(steps[::-1][::stride][::-1])
