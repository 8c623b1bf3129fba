"""An evaluation as the report shows it: what each agent scored, and what the seeds of a setting say together.

Comes in: the object that `lowgear evaluate --json` prints. Goes out: an `Evaluation`, each of whose settings is a
variant at one cost coefficient, and the settings that a summary names.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lowgear.evaluation.evaluate import NORMAL_95, scored_by_success
from lowgear.evaluation.statistics import Spread, bootstrap, spread
from lowgear.report.style import variant_rank
from lowgear.report.text import short

KEEP = 0.95  # of the best return: what "cheapest" must keep


@dataclass(frozen=True)
class AgentScore:
    """What one agent scored and cost at one coefficient."""

    agent: int
    coefficient: float
    score: float  # return, or success rate where the task has goals
    low: float  # of the score's 95% interval over episodes
    high: float
    flops: float  # per step
    flops_ci95: float  # half width


@dataclass(frozen=True)
class Setting:
    """Several agents that differ by their seed alone."""

    variant: str
    coefficient: float  # in the task's rewards; of relative ones the mean over agents
    dial: bool  # its agents were evaluated at several coefficients
    score: Spread
    mean_low: float  # of the mean's 95% bootstrap interval over seeds
    mean_high: float
    large_share: float
    flops: float  # per step
    saved: float  # fraction of the large gear's FLOPs
    period: float | None  # mean steps between picks; None where the master is never asked
    agents: tuple[AgentScore, ...]
    relative: float | None = None  # the coefficient measured against the task's rewards, where the agents went by that

    @property
    def price(self) -> str:
        """Its coefficient, in both measures where it has both."""
        relative = "" if self.relative is None else f" (relative {short(self.relative)})"
        return f"λ {short(self.coefficient)}{relative}"

    def is_of(self, agent: int, coefficient: float) -> bool:
        """Whether an agent was evaluated here with this coefficient."""
        return any(
            score.agent == agent and math.isclose(score.coefficient, coefficient, rel_tol=1e-6) for score in self.agents
        )

    @property
    def label(self) -> str:
        """Its variant in a legend."""
        return f"{self.variant} (dial)" if self.dial else self.variant

    @property
    def key(self) -> str:
        """What tells it from the others of its run."""
        return f"{self.variant} {self.coefficient} {self.dial}"


@dataclass(frozen=True)
class Evaluation:
    """One run, evaluated."""

    task: str
    recipe: str
    steps: int
    episodes: int  # of each agent at each setting
    kind: str  # of the scores: "return" or "success rate"
    seeds: int
    scores: int  # those left out among them
    settings: tuple[Setting, ...]  # lowest coefficient first within a variant
    left_out: tuple[int, ...]  # the agent of each score that is not finite
    large_flops: float | None  # of the large gear

    def lines(self) -> list[list[Setting]]:
        """The settings that belong together: of one variant, dial agents apart from the others."""
        groups: defaultdict[str, list[Setting]] = defaultdict(list)
        for setting in self.settings:
            groups[setting.label].append(setting)
        return list(groups.values())


def aggregate(report: dict[str, Any]) -> Evaluation:
    """The evaluation of `report`; scores that are not finite are left out."""
    rows = report["agents"]
    counts = Counter(row["agent"] for row in rows)
    groups: defaultdict[tuple[str, bool, float], list[dict[str, Any]]] = defaultdict(list)
    left_out = []
    for row in rows:
        numbers = score_of(row), row["flops_per_step"], row["flops_reduction"], row["large_share"]
        if all(math.isfinite(number) for number in numbers) and row["flops_per_step"] > 0:
            relative = row.get("relative_coefficient")
            coefficient = row["cost_coefficient"] if relative is None else relative
            groups[row["variant"], counts[row["agent"]] > 1, float(f"{coefficient:.9g}")].append(row)
        else:
            left_out.append(row["agent"])
    return Evaluation(
        task=report["task"],
        recipe=report["recipe"],
        steps=report["steps"],
        episodes=report["episodes"],
        kind="success rate" if any(map(scored_by_success, rows)) else "return",
        seeds=len({row["seed"] for row in rows}),
        scores=len(rows),
        settings=tuple(
            _setting(key, groups[key], report["episodes"])
            for key in sorted(groups, key=lambda key: (variant_rank(key[0]), key))
        ),
        left_out=tuple(left_out),
        large_flops=_large_flops(rows),
    )


def agent_lines(settings: Iterable[Setting]) -> list[list[AgentScore]]:
    """The scores of each agent along the settings of a dial."""
    lines: defaultdict[int, list[AgentScore]] = defaultdict(list)
    for setting in settings:
        for score in setting.agents:
            lines[score.agent].append(score)
    return list(lines.values())


def score_of(row: dict[str, Any]) -> float:
    """Success rate where the task has goals, else return."""
    return float(row["success_rate"] if scored_by_success(row) else row["return_mean"])


def best(settings: Sequence[Setting]) -> Setting:
    """The setting with the highest mean score."""
    return max(settings, key=lambda setting: setting.score.mean)


def cheapest(settings: Sequence[Setting]) -> Setting:
    """The setting with the fewest FLOPs that keeps KEEP of the best mean score."""
    top = best(settings).score.mean
    enough = top - (1 - KEEP) * abs(top)
    return min((s for s in settings if s.score.mean >= enough), key=lambda setting: setting.flops)


def named(settings: Sequence[Setting]) -> list[tuple[str, Setting]]:
    """The settings a summary shows, with what is said of them: of each variant the best, and the cheapest near it."""
    found: list[tuple[str, Setting]] = []
    for variant in sorted({setting.variant for setting in settings}, key=_order):
        own = [setting for setting in settings if setting.variant == variant]
        if len(own) == 1:
            found.append(("", own[0]))
        elif best(own) is cheapest(own):
            found.append(("best score, and cheapest near it", best(own)))
        else:
            found += [("best score", best(own)), (f"cheapest that keeps {KEEP:.0%} of the best", cheapest(own))]
    return found


def wilson(rate: float, episodes: int) -> tuple[float, float]:
    """The 95% interval of a success rate (Wilson, 1927), which has a width at 0 and 1 too."""
    z2 = NORMAL_95**2
    middle = (rate + z2 / (2 * episodes)) / (1 + z2 / episodes)
    half = NORMAL_95 * math.sqrt(rate * (1 - rate) / episodes + z2 / (4 * episodes**2)) / (1 + z2 / episodes)
    return min(rate, middle - half), max(rate, middle + half)


def _order(variant: str) -> tuple[int, int]:
    """Baselines first, then the method, then the rest."""
    first = {"small-only": 0, "large-only": 1, "asymmetric": 2}
    return first.get(variant, 3), variant_rank(variant)


def _setting(key: tuple[str, bool, float], rows: list[dict[str, Any]], episodes: int) -> Setting:
    variant, dial, _ = key
    relative = rows[0].get("relative_coefficient")
    scores = [score_of(row) for row in rows]
    periods = [float(row["period_mean"]) for row in rows if row["period_mean"] is not None]
    return Setting(
        variant,
        key[2] if relative is None else fmean(float(row["cost_coefficient"]) for row in rows),
        dial,
        spread(scores),
        *bootstrap(scores, lambda drawn: float(drawn.mean())),
        fmean(float(row["large_share"]) for row in rows),
        fmean(float(row["flops_per_step"]) for row in rows),
        fmean(float(row["flops_reduction"]) for row in rows),
        fmean(periods) if periods else None,
        tuple(_agent_score(row, episodes) for row in sorted(rows, key=lambda row: int(row["agent"]))),
        relative,
    )


def _agent_score(row: dict[str, Any], episodes: int) -> AgentScore:
    score, half = score_of(row), _finite(row["return_ci95"])
    low, high = (score - half, score + half) if not scored_by_success(row) else wilson(score, episodes)
    flops_ci95 = _finite(row.get("flops_reduction_ci95", 0.0)) * (_large_flops([row]) or 0.0)
    about = int(row["agent"]), float(row["cost_coefficient"])
    return AgentScore(*about, score, low, high, float(row["flops_per_step"]), flops_ci95)


def _large_flops(rows: Iterable[dict[str, Any]]) -> float | None:
    """FLOPs of the large gear, from any agent's FLOPs and what they save against it."""
    for row in rows:
        flops, share = row["flops_per_step"], 1 - row["flops_reduction"]
        if math.isfinite(flops) and flops > 0 and share > 0:
            return float(flops / share)
    return None


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0
