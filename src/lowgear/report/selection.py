"""Which agents and settings are played for the page.

The main agent is the one that stands for its run (`evaluation.main_agent`), at each of its evaluated settings and at
the one that it is deployed at, which comes first; beside it the best small-only and the best large-only agent.
"""

from dataclasses import dataclass

from lowgear.evaluation.main_agent import best_of
from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy
from lowgear.policy.setting import deployed, own_setting, same_setting
from lowgear.report.runs import RunData
from lowgear.report.text import short

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
        return f"{header.variant} λ {short(self.coefficient)}" if header.forced_gear is None else header.variant

    @property
    def file_name(self) -> str:
        """The same in plain letters."""
        header = self.policy.header
        return f"{header.variant}-{self.coefficient:.3g}" if header.forced_gear is None else header.variant


def select(run: RunData, setting: float | None = None, settings_at_most: int = SETTINGS_AT_MOST) -> list[Selected]:
    """The main agent's settings, lowest coefficient first, then the baselines; `setting` is the one to show first."""
    if not run.policies:
        return []
    main = run.main
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
            agent = best_of(agents, run.scored["agents"], run.metrics)
            found.append(Selected(agent, run.policies[agent], False, False))
    return found


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
