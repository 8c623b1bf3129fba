"""What a comparison of rivals shows: which are dominated, where switching pays, and what a gear that holds changes.

The rule, for one kind of cost. B dominates A where
- B costs no more on average, and scores more: the 95% interval of the difference of scores is above 0; or
- B costs less: the 95% interval of the difference of costs is below 0, and its mean is 2% of A's cost at least; and
  scores as much: the interval of the difference of scores begins above -3% of what large-only scores.
Intervals are Student's t over seeds, which are paired: what has the same seed shares its teacher, or its start. Each
is that of one comparison, not of all at once. Where neither holds, these seeds do not tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lowgear.evaluation.statistics import t_interval
from lowgear.studies.rows import TableRow

COSTS = {"flops_per_step": "FLOPs", "weight_bytes": "bytes", "step_ns": "time"}
LESS = 0.02  # of a cost: below it two cost the same, as far as they can be measured
AS_MUCH = 0.03  # of the large-only agents' score
SWITCHES = ("asymmetric", "with hold", "int8 asymmetric")  # how labels of controllers that switch begin


@dataclass(frozen=True)
class Verdict:
    """One kind of cost: who dominates whom."""

    cost: str  # a field of SeedResult
    dominators: dict[str, list[str]]  # of each row by its label, the highest score first; none: not dominated

    def switching(self) -> tuple[list[str], list[str], list[str]]:
        """Settings that no single network dominates, those that one does, and single networks that only settings do."""
        mine = [label for label in self.dominators if switches(label)]
        beaten = [label for label in mine if not all(map(switches, self.dominators[label]))]
        beats = [
            label for label, by in self.dominators.items() if not switches(label) and by and all(map(switches, by))
        ]
        return [label for label in mine if label not in beaten], beaten, beats


def switches(label: str) -> bool:
    """Whether a row is of controllers that switch."""
    return label.startswith(SWITCHES)


def judge(rows: Sequence[TableRow], cost: str) -> Verdict:
    """By one kind of cost."""
    scale = abs(next(row for row in rows if row.label == "large-only").score.mean)
    ordered = sorted(rows, key=lambda row: -row.score.mean)
    return Verdict(
        cost, {row.label: [other.label for other in ordered if _dominates(other, row, cost, scale)] for row in rows}
    )


def remarks(rows: Sequence[TableRow]) -> list[str]:
    """In words, for one task."""
    if min(len(row.seeds) for row in rows) < 2:
        return ["One seed has no interval: which rivals are dominated takes two or more."]
    told = [cost for cost in COSTS if all(row.told(cost) is not None for row in rows)]
    found = [words for cost in told for words in _words(judge(rows, cost))]
    if "step_ns" not in told:
        found.append("Time was not measured: no C compiler was found.")
    return [*found, *_holding(rows)]


def _dominates(one: TableRow, other: TableRow, cost: str, scale: float) -> bool:
    if one is other:
        return False
    low, _ = t_interval(_paired(one, other, "score"))
    _, dearest = t_interval(_paired(one, other, cost))
    cheap, dear = one.mean(cost), other.mean(cost)
    cheaper = dearest < 0 and cheap <= (1 - LESS) * dear
    return (cheap <= dear and low > 0) or (cheaper and low > -AS_MUCH * scale)


def _paired(one: TableRow, other: TableRow, name: str) -> list[float]:
    """Differences of a field, seed by seed."""
    theirs = {seed.seed: getattr(seed, name) for seed in other.seeds}
    return [getattr(seed, name) - theirs[seed.seed] for seed in one.seeds if seed.seed in theirs]


def _words(verdict: Verdict) -> list[str]:
    name = COSTS[verdict.cost]
    free = [label for label, by in verdict.dominators.items() if not by]
    dominated = [f"{label} (by {by[0]})" for label, by in verdict.dominators.items() if by]
    pays, beaten, beats = verdict.switching()
    words = [
        f"By {name}, not dominated: {'; '.join(free)}.",
        f"By {name}, dominated: {'; '.join(dominated) or 'none'}.",
    ]
    if not pays:
        by = verdict.dominators
        best = dict.fromkeys(next(one for one in by[label] if not switches(one)) for label in beaten)
        return [
            *words,
            f"By {name}, switching does not pay: a single network dominates every setting ({'; '.join(best)}).",
        ]
    if beats:
        shown = f"{'; '.join(beats)}: a setting dominates each, and no single network does"
        return [*words, f"By {name}, switching pays against {shown}."]
    missing = "no setting dominates a single network that others do not"
    return [*words, f"By {name}, these seeds do not show that switching pays: {missing}."]


def _holding(rows: Sequence[TableRow]) -> list[str]:
    """What a gear that holds changes, setting by setting."""
    by_label = {row.label: row for row in rows}
    found = []
    for label, row in by_label.items():
        plain = by_label.get(label.replace("with hold", "asymmetric"))
        if plain is not None and plain is not row:
            score, flops = (_difference(row, plain, name) for name in ("score", "flops_per_step"))
            found.append(f"{label}, against the same without: score {score}, FLOPs {flops}.")
    return found


def _difference(one: TableRow, other: TableRow, name: str) -> str:
    low, high = t_interval(_paired(one, other, name))
    return f"{one.mean(name) - other.mean(name):+.4g} [{low:+.4g}, {high:+.4g}]"
