"""Which gears and periods are worth training on a task, from one short run.

Agents that have all candidate widths as gears, and all candidate periods, train for a while as one population. Then
each width is played alone, and controllers of fewer gears or periods are cut out of the agents and played along the
dial. Everything meets the same starts. A controller is judged by the share that it keeps of what the best width gains
over random actions, with an interval from drawing seeds and episodes anew. Settings of the dial, and the best width,
are chosen on one half of the episodes and reported on the other, so that a choice does not flatter itself.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import Played, flops_by_step, play_policies, starts
from lowgear.evaluation.statistics import SAMPLES
from lowgear.evaluation.tune import scores
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.file import Policy
from lowgear.studies.cut import alone, cut

RELATIVE = (0.1, 0.3, 1.0, 3.0)  # settings of the dial that controllers of several gears are played at
ALIKE = 0.02  # of the widest gear's FLOPs: controllers nearer than that cost the same
SLOTS = 8  # environments of each controller
MakeEnv = Callable[[int], BatchEnv]
Interval = tuple[float, float, float]  # mean, and the 95% interval around it


@dataclass(frozen=True)
class Option:
    """Gears and periods that a controller may have, by their numbers among the candidates; one gear has no master."""

    gears: tuple[int, ...]
    periods: tuple[int, ...] = ()

    def of(self, policy: Policy, setting: float | None, master_discount: float) -> Policy:
        """Cut out of an agent, at a relative coefficient."""
        if len(self.gears) == 1:
            return alone(policy, self.gears[0])
        left = cut(policy, self.gears, self.periods, master_discount)
        return left if setting is None else left.at(setting * (left.header.cost_unit or 1.0))


@dataclass(frozen=True)
class Measured:
    """An option at one setting: every seed's episodes, (seeds, episodes) each."""

    option: Option
    setting: float | None
    scores: DoubleArray
    flops: DoubleArray  # per step, of the widest gear's


@dataclass(frozen=True)
class Judged:
    """An option at the setting that was chosen for it."""

    option: Option
    setting: float | None
    score: Interval
    kept: Interval  # of what the best width gains over random actions
    flops: Interval  # of the widest gear's
    verdict: str  # keeps, loses, or unclear: whether enough is kept


def options(gears: int, periods: int) -> list[Option]:
    """Each width alone, then each pair, then all of them where they are more than two."""
    every = tuple(range(periods))
    groups = [*itertools.combinations(range(gears), 2), tuple(range(gears))]
    return [Option((gear,)) for gear in range(gears)] + [Option(group, every) for group in dict.fromkeys(groups)]


def period_options(chosen: Option) -> list[Option]:
    """The same gears with each period alone."""
    return [Option(chosen.gears, (period,)) for period in chosen.periods] if len(chosen.periods) > 1 else []


def play_options(
    asked: Sequence[Option],
    agents: Sequence[Policy],
    make_env: MakeEnv,
    episodes: int,
    master_discount: float,
    seed: int,
    progress: Callable[[int], None],
) -> list[Measured]:
    """Every option at every setting, by every agent, from the same starts."""
    found = []
    for option in asked:
        settings: Sequence[float | None] = (None,) if len(option.gears) == 1 else RELATIVE
        policies = [option.of(agent, setting, master_discount) for setting in settings for agent in agents]
        slots = min(SLOTS, episodes)
        played = play_policies(policies, make_env, episodes, "greedy", seed, progress, slots=slots)
        widest = agents[0].header.cost.gear_flops[-1]
        found += [
            _measured(option, setting, played, policies, range(i * len(agents), (i + 1) * len(agents)), widest)
            for i, setting in enumerate(settings)
        ]
    return found


def _measured(
    option: Option, setting: float | None, played: Played, policies: Sequence[Policy], own: range, widest: int
) -> Measured:
    flops = [flops_by_step(played, player, policies[player].header.cost) / widest for player in own]
    return Measured(option, setting, scores(played)[own.start : own.stop], np.array(flops))


def play_randomly(make_env: MakeEnv, episodes: int, seed: int) -> DoubleArray:
    """Scores of uniformly random actions, one for each episode."""
    env = make_env(episodes)
    try:
        generator = np.random.default_rng((seed, 2))
        env.reset(starts(seed, episodes))
        returns, success, playing = np.zeros(episodes), np.zeros(episodes), np.ones(episodes, bool)
        while playing.any():
            step = env.step(generator.uniform(-1, 1, (episodes, env.spec.act_dim)).astype(np.float32))
            returns += np.where(playing, step.reward, 0)
            ended = playing & (step.terminated | step.truncated)
            if step.success is not None:
                success[ended] = step.success[ended]
            playing &= ~ended
        return success if env.spec.has_success else returns
    finally:
        env.close()


class Judge:
    """Judges options against the best width and random actions: the half of the episodes that chose is not used."""

    def __init__(self, widths: Sequence[Measured], random: DoubleArray, keep: float, seed: int = 0) -> None:
        self.keep, self._random = keep, random
        seeds, episodes = widths[0].scores.shape
        self._half = episodes // 2
        self.best = max(widths, key=lambda one: float(one.scores[:, : self._half].mean()))
        draw = np.random.default_rng(seed)
        self._seeds = draw.integers(seeds, size=(SAMPLES, seeds, 1))
        self._episodes = draw.integers(self._half, episodes, size=(SAMPLES, 1, episodes - self._half))
        self._floors = random[draw.integers(len(random), size=(SAMPLES, len(random)))].mean(axis=1)

    @property
    def floor(self) -> float:
        """What random actions score."""
        return float(self._random.mean())

    @property
    def gain(self) -> Interval:
        """Of the best width over random actions."""
        return self._interval(self._draws(self.best.scores) - self._floors, self._mean(self.best.scores) - self.floor)

    @property
    def learned(self) -> bool:
        """Whether the best width certainly does better than random actions."""
        return self.gain[1] > 0

    def judge(self, measured: Sequence[Measured]) -> Judged:
        """One option, at the cheapest setting that keeps enough on the first half, or else the one that keeps most."""
        first = [(self._kept_at_first(one), float(one.flops[:, : self._half].mean()), one) for one in measured]
        enough = [entry for entry in first if entry[0] >= self.keep]
        chosen = min(enough, key=lambda e: e[1])[2] if enough else max(first, key=lambda e: e[0])[2]
        margin = self._draws(chosen.scores) - self._floors
        gain = self._draws(self.best.scores) - self._floors
        low, high = np.percentile(margin - self.keep * gain, [2.5, 97.5])
        verdict = "keeps" if low >= 0 else "loses" if high < 0 else "unclear"
        kept = (self._mean(chosen.scores) - self.floor) / self.gain[0] if self.gain[0] > 0 else np.nan
        return Judged(
            chosen.option,
            chosen.setting,
            self._interval(self._draws(chosen.scores), self._mean(chosen.scores)),
            self._interval(margin / np.where(gain > 0, gain, np.nan), kept),
            self._interval(self._draws(chosen.flops), self._mean(chosen.flops)),
            verdict if self.learned else "unclear",
        )

    def _kept_at_first(self, one: Measured) -> float:
        mine, best = (m.scores[:, : self._half].mean() - self.floor for m in (one, self.best))
        return float(mine / best) if best > 0 else -np.inf

    def _mean(self, values: DoubleArray) -> float:
        return float(values[:, self._half :].mean())

    def _draws(self, values: DoubleArray) -> DoubleArray:
        """Means of seeds and of episodes drawn anew, the same draws for all."""
        means: DoubleArray = values[self._seeds, self._episodes].mean(axis=(1, 2))
        return means

    @staticmethod
    def _interval(draws: DoubleArray, mean: float) -> Interval:
        known = draws[np.isfinite(draws)]
        low, high = np.percentile(known, [2.5, 97.5]) if len(known) else (np.nan, np.nan)
        return mean, float(low), float(high)


def choose(judged: Sequence[Judged]) -> Judged:
    """The cheapest that certainly keeps enough: the best width always does, so there is one where any has learned."""
    return _cheapest([one for one in judged if one.verdict == "keeps"])


def undecided(judged: Sequence[Judged], chosen: Judged) -> list[Judged]:
    """What is cheaper than what was chosen, and might keep enough."""
    return [one for one in judged if one.verdict == "unclear" and one.flops[0] < chosen.flops[0]]


def most_promising(unclear: Sequence[Judged], keep: float) -> Judged | None:
    """The cheapest that keeps enough on average, else what keeps most; None of nothing."""
    enough = [one for one in unclear if one.kept[0] >= keep]
    return _cheapest(enough) if enough else max(unclear, key=lambda one: one.kept[0], default=None)


def _cheapest(judged: Sequence[Judged]) -> Judged:
    """Among those that cost the same, the one with fewer gears, then the one that keeps more."""
    least = min(one.flops[0] for one in judged)
    near = [one for one in judged if one.flops[0] <= least + ALIKE]
    return min(near, key=lambda one: (len(one.option.gears), -one.kept[0]))


def to_json(judged: Judged, gears: Sequence[int], periods: Sequence[int]) -> dict[str, Any]:
    """As advice.json keeps it."""
    return {
        "gears": [gears[gear] for gear in judged.option.gears],
        "periods": [periods[period] for period in judged.option.periods],
        "relative_coefficient": judged.setting,
        "score": list(judged.score),
        "kept": [None if np.isnan(value) else value for value in judged.kept],
        "flops": list(judged.flops),
        "verdict": judged.verdict,
    }
