"""An evaluation as the report shows it: what each agent scored, and what the seeds of a setting say together.

Comes in: the object that `lowgear evaluate --json` prints. Goes out: an `Evaluation`, each of whose settings is a
variant at one cost coefficient, and the settings that a summary names.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from lowgear.evaluation.evaluate import score_of, scored_by_success
from lowgear.evaluation.statistics import NORMAL_95, Spread, bootstrap, spread
from lowgear.policy.file import Policy
from lowgear.policy.setting import own_setting, same_setting
from lowgear.report.style import variant_rank
from lowgear.report.text import short

KEEP = 0.95  # of the best return: what "cheapest" must keep
CHEAPEST_NOTE = f"cheapest that keeps {KEEP:.0%} of the best"
OWN_NOTE = "own setting, which export ships"
GroupKey = tuple[str, bool, float]  # variant, whether its agents have a dial, coefficient


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
    mean_low: float  # of the mean's 95% bootstrap interval over seeds, or over the episodes of a single one
    mean_high: float
    large_share: float
    flops: float  # per step
    saved: float  # fraction of the large gear's FLOPs
    period: float | None  # mean steps between picks; None where the master is never asked
    agents: tuple[AgentScore, ...]
    relative: float | None = None  # the coefficient measured against the task's rewards, where the agents went by that
    gear_share: tuple[float, ...] | None = None  # None: an evaluation that does not tell
    success: float | None = None  # rate, where it is told and is not the score
    own: bool = False  # the one that its agents are deployed at
    mixed: bool = False  # each agent at a coefficient of its own

    @property
    def price(self) -> str:
        """Its coefficient, in both measures where it has both."""
        if self.mixed:
            each = [score.coefficient for score in self.agents]
            return f"λ {short(min(each))} to {short(max(each))}"
        relative = "" if self.relative is None else f" (relative {short(self.relative)})"
        return f"λ {short(self.coefficient)}{relative}"

    def is_of(self, agent: int, coefficient: float) -> bool:
        """Whether an agent was evaluated here with this coefficient."""
        return any(score.agent == agent and same_setting(score.coefficient, coefficient) for score in self.agents)

    @property
    def label(self) -> str:
        """Its variant in a legend."""
        return f"{self.variant} (dial)" if self.dial else self.variant

    @property
    def key(self) -> str:
        """What tells it from the others of its run."""
        return f"{self.variant} own" if self.mixed else f"{self.variant} {self.coefficient} {self.dial}"


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
        """The settings that belong together: of one variant, dial agents apart from the others.

        One that has each agent at a coefficient of its own stands on no line.
        """
        groups: defaultdict[str, list[Setting]] = defaultdict(list)
        for setting in self.settings:
            if not setting.mixed:
                groups[setting.label].append(setting)
        return list(groups.values())


def aggregate(report: dict[str, Any], own: Mapping[int, float] | None = None) -> Evaluation:
    """The evaluation of `report`; scores that are not finite are left out.

    `own` has the coefficient that each agent with a dial is deployed at.
    """
    rows = report["agents"]
    counts = Counter(row["agent"] for row in rows)
    groups: defaultdict[GroupKey, list[dict[str, Any]]] = defaultdict(list)
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
        settings=tuple(_settings(groups, report["episodes"], own or {})),
        left_out=tuple(left_out),
        large_flops=_large_flops(rows),
    )


def own_settings(policies: Mapping[int, Policy]) -> dict[int, float]:
    """What the dial of each agent that has one stands at where it is deployed."""
    return {agent: own_setting(policy) for agent, policy in policies.items() if policy.turns}


def agent_lines(settings: Iterable[Setting]) -> list[list[AgentScore]]:
    """The scores of each agent along the settings of a dial."""
    lines: defaultdict[int, list[AgentScore]] = defaultdict(list)
    for setting in settings:
        for score in setting.agents:
            lines[score.agent].append(score)
    return list(lines.values())


def best(settings: Sequence[Setting]) -> Setting:
    """The setting with the highest mean score."""
    return max(settings, key=lambda setting: setting.score.mean)


def cheapest(settings: Sequence[Setting]) -> Setting:
    """The setting with the fewest FLOPs that keeps KEEP of the best mean score."""
    top = best(settings).score.mean
    enough = top - (1 - KEEP) * abs(top)
    return min((s for s in settings if s.score.mean >= enough), key=lambda setting: setting.flops)


def headline(settings: Sequence[Setting]) -> Setting:
    """Of one variant's settings the one to speak of: that which is deployed, else the cheapest near the best."""
    return next((setting for setting in settings if setting.own), None) or cheapest(settings)


def named(settings: Sequence[Setting]) -> list[tuple[str, Setting]]:
    """The settings a summary shows, with what is said of them.

    Of each variant the best, the cheapest near it, and the one that is deployed.
    """
    found: list[tuple[str, Setting]] = []
    for variant in sorted({setting.variant for setting in settings}, key=_order):
        of_variant = [setting for setting in settings if setting.variant == variant]
        if len(of_variant) == 1:
            found.append((OWN_NOTE if of_variant[0].own else "", of_variant[0]))
            continue
        said = {"best score": best(of_variant), CHEAPEST_NOTE: cheapest(of_variant)}
        said |= {OWN_NOTE: headline(of_variant)} if headline(of_variant).own else {}
        notes: dict[str, list[str]] = {}
        for note, setting in said.items():
            notes.setdefault(setting.key, []).append(note)
        found += [(", ".join(notes[key]), next(s for s in of_variant if s.key == key)) for key in notes]
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


def _settings(
    groups: Mapping[GroupKey, list[dict[str, Any]]], episodes: int, own: Mapping[int, float]
) -> Iterator[Setting]:
    """One for each group of rows, in order; what is deployed is marked, or made where agents differ in it."""
    mine = {key: [row for row in rows if _is_own(row, own)] for key, rows in groups.items()}
    for key in sorted(groups, key=lambda key: (variant_rank(key[0]), key)):
        variant, dial, _ = key
        deployed = [other for other in mine if other[:2] == (variant, dial) and mine[other]]
        if len(deployed) > 1 and key == min(deployed):
            yield replace(
                _setting(key, [row for other in deployed for row in mine[other]], episodes), own=True, mixed=True
            )
        if len(deployed) <= 1 or len(mine[key]) < len(groups[key]):
            yield replace(_setting(key, groups[key], episodes), own=deployed == [key])


def _is_own(row: dict[str, Any], own: Mapping[int, float]) -> bool:
    return row["agent"] in own and same_setting(row["cost_coefficient"], own[row["agent"]])


def _setting(key: GroupKey, rows: list[dict[str, Any]], episodes: int) -> Setting:
    variant, dial, coefficient = key
    relative = rows[0].get("relative_coefficient")
    scores = [score_of(row) for row in rows]
    periods = [float(row["period_mean"]) for row in rows if row["period_mean"] is not None]
    shares = [row["gear_share"] for row in rows if row.get("gear_share") is not None]
    rates = [row["success_rate"] for row in rows if not scored_by_success(row)]
    same = len(shares) == len(rows) and len(set(map(len, shares))) == 1
    agents = tuple(_agent_score(row, episodes) for row in sorted(rows, key=lambda row: int(row["agent"])))
    over_seeds = bootstrap(scores, lambda drawn: float(drawn.mean()))
    return Setting(
        variant,
        coefficient if relative is None else fmean(float(row["cost_coefficient"]) for row in rows),
        dial,
        spread(scores),
        *(over_seeds if len(agents) > 1 else (agents[0].low, agents[0].high)),
        fmean(float(row["large_share"]) for row in rows),
        fmean(float(row["flops_per_step"]) for row in rows),
        fmean(float(row["flops_reduction"]) for row in rows),
        fmean(periods) if periods else None,
        agents,
        relative,
        tuple(map(fmean, zip(*shares, strict=True))) if same else None,
        fmean(rates) if rates and all(rate is not None and math.isfinite(rate) for rate in rates) else None,
    )


def _agent_score(row: dict[str, Any], episodes: int) -> AgentScore:
    score, half = score_of(row), _finite(row["return_ci95"])
    low, high = row.get("return_interval") or (score - half, score + half)
    if scored_by_success(row):
        low, high = wilson(score, episodes)
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
