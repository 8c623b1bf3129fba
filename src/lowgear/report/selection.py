"""Which agents and settings are played for the page.

The main agent is the asymmetric one that scored best in the evaluation, at each of its evaluated settings and at the
one that it is deployed at, which comes first; beside it the best small-only and the best large-only agent.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy
from lowgear.policy.setting import deployed, own_setting, same_setting
from lowgear.report.runs import RunData
from lowgear.report.settings import score_of

SETTINGS_AT_MOST = 7
UNEVALUATED = 3  # settings along the dial of a run without an evaluation


@dataclass(frozen=True)
class Selected:
    """One policy to play."""

    agent: int
    policy: Policy
    main: bool  # of the main agent
    first: bool  # shown first, and drawn as the timeline
    deployed_at: float | None = None  # its own setting, where it has a dial

    @property
    def coefficient(self) -> float:
        """Where its dial stands."""
        return self.policy.header.cost_coefficient

    @property
    def own(self) -> bool:
        """Whether it is as it is deployed, and could be otherwise."""
        return self.deployed_at is not None and same_setting(self.coefficient, self.deployed_at)

    @property
    def label(self) -> str:
        """Short and unique within a run."""
        header = self.policy.header
        return f"{header.variant} λ {self.coefficient:.3g}" if header.forced_gear is None else header.variant


def select(run: RunData, setting: float | None = None, settings_at_most: int = SETTINGS_AT_MOST) -> list[Selected]:
    """The main agent's settings, lowest coefficient first, then the baselines; `setting` is the one to show first."""
    if not run.policies:
        return []
    scores = _scores(run)
    main = _main_agent(run, scores)
    policy = run.policies[main]
    wanted = setting if setting is not None else own_setting(policy)
    dial = policy.header.dial
    chosen = _thinned(_settings(run, main, setting), settings_at_most, wanted, dial)
    nearest = _nearest(chosen, wanted, dial)
    found = [
        Selected(main, deployed(policy, value), True, value == nearest, own_setting(policy))
        if policy.turns
        else Selected(main, policy, True, True)
        for value in chosen
    ]
    for variant in ("small-only", "large-only"):
        agents = [agent for agent, other in run.policies.items() if other.header.variant == variant]
        if agents and main not in agents:
            agent = max(agents, key=lambda a: scores.get(a, -math.inf))
            found.append(Selected(agent, run.policies[agent], False, False))
    return found


def _main_agent(run: RunData, scores: dict[int, float]) -> int:
    for wanted in ("asymmetric", None):
        agents = [
            agent
            for agent, policy in run.policies.items()
            if policy.header.variant == wanted or (wanted is None and policy.header.forced_gear is None)
        ]
        if agents:
            return max(agents, key=lambda agent: scores.get(agent, -math.inf))
    return max(run.policies, key=lambda agent: scores.get(agent, -math.inf))


def _scores(run: RunData) -> dict[int, float]:
    """Each agent's mean score over its settings, from the evaluation or else the last one while training."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for setting in run.settings:
        for score in setting.agents:
            found[score.agent].append(score.score)
    if not found:
        lines = [line | {"success_rate": line.get("success_rate")} for line in run.metrics if "return_mean" in line]
        last = max((line["steps"] for line in lines), default=0)
        for line in lines:
            if line["steps"] == last and math.isfinite(score_of(line)):
                found[line["agent"]].append(score_of(line))
    return {agent: fmean(values) for agent, values in found.items()}


def _settings(run: RunData, agent: int, setting: float | None) -> list[float]:
    """Where the agent's dial was evaluated, what it is deployed at, and the setting that was asked for."""
    header, own = run.policies[agent].header, own_setting(run.policies[agent])
    if header.dial is None or not run.policies[agent].turns:
        return [own]
    known = [score.coefficient for s in run.settings for score in s.agents if score.agent == agent]
    found = [value for value in known if header.dial.holds(value)] or header.dial.settings(UNEVALUATED)
    wanted = [own]
    if setting is not None:
        header.dial.position(setting)  # one it was not trained for is an error
        wanted.append(setting)
    return sorted({*wanted, *(value for value in found if not any(same_setting(value, one) for one in wanted))})


def _thinned(settings: list[float], at_most: int, wanted: float, dial: Dial | None) -> list[float]:
    """So many of them, spread evenly, the one nearest to what is wanted among them."""
    if len(settings) <= at_most:
        return settings
    kept = [settings[round(i * (len(settings) - 1) / max(at_most - 1, 1))] for i in range(at_most)]
    nearest = _nearest(settings, wanted, dial)
    if nearest not in kept:
        kept[kept.index(_nearest(kept, wanted, dial))] = nearest
    return sorted(kept)


def _nearest(settings: list[float], wanted: float, dial: Dial | None) -> float:
    """Along the dial."""

    def place(value: float) -> float:
        return dial.position(min(max(value, dial.low), dial.high)) if dial is not None else value

    return min(settings, key=lambda value: abs(place(value) - place(wanted)))
