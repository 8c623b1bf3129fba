"""The dial's setting that meets a demand, found with few episodes.

A score is a return, or a success rate where the task has goals. Along the dial compute gets dearer, so score and
FLOPs fall: the settings that meet a demand lie on one side of some point. The search brackets that point and halves the
bracket.

A setting is played a batch at a time, until the interval of its margin over the demand is clear of zero or too narrow
to matter. The setting that is chosen plays all episodes before it is reported. All settings start from the same states,
so that margins against the agent's own best are paired differences, which need far fewer episodes than two means.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import Played, check_seed, flops_each, play_policies
from lowgear.evaluation.statistics import by_step, half_width
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.file import Policy

SETTINGS = 33  # along the dial: steps of 1.2 for a dial of 300
COARSE = 8  # every so many settings are played first
FINEST = 1 / 8  # of the step between settings, down to which the search goes on before a cliff
CLOSE = 0.01  # of the demand: a setting that certainly meets it by more may stand before one
BATCH = 8  # episodes of a setting at a time, at most
SURE = 1.3  # widens 95% intervals to 98 or 99% while searching, which looks at them again and again
FINE = 0.005  # of the demand: a difference too small to spend episodes on


class Demand(NamedTuple):
    """What a setting must do: keep a share of a score, or spend no more than a share of FLOPs, or than some time."""

    keep_return: float | None = None
    reference: float | None = None  # the score of which a share is kept; None: the agent's own best
    max_flops: float | None = None  # of the large gear's
    max_latency_us: float | None = None  # mean of a step
    surely: bool = False  # the 95% interval of a setting's margin is clear of zero, where its mean alone would do

    @property
    def caps(self) -> bool:
        """Whether it is a limit on what is spent."""
        return self.max_flops is not None or self.max_latency_us is not None


@dataclass(frozen=True)
class TuneResult:
    """How a search ended: the setting, or None and the nearest miss, with what was measured there."""

    meets: bool
    cost_coefficient: float
    demanded: float  # the score to reach, or the FLOPs or microseconds per step to stay within
    best_score: float  # the best mean along the dial, or the reference's
    score_mean: float
    score_ci95: float
    flops_per_step: float
    flops_reduction: float
    flops_reduction_ci95: float
    latency_us: float | None  # mean of a step, where it was demanded
    certain: bool  # the 95% interval of the margin is clear of zero
    episodes: int  # played at this setting
    episodes_in_all: int


class DialSearch:
    """One agent's search. Ask for the `next_batches`, `add` what was played, until there are none."""

    def __init__(
        self,
        policy: Policy,
        demand: Demand,
        episodes_at_most: int,
        beside: Sequence[DoubleArray] | None = None,  # scores of which a share is kept, batch by batch
    ) -> None:
        self.policy, self.demand, self._beside = policy, demand, beside
        dial = policy.header.dial
        assert dial is not None
        assert policy.turns, "an agent of one coefficient has nothing to tune"
        self._dial, settings = dial, dial.settings(SETTINGS)
        # From settings that are sure to meet the demand, if any does, to settings that are not.
        self.settings = settings[::-1] if demand.caps else settings
        self._along = [float(place) for place in range(SETTINGS)]  # where each stands; those added later lie between
        self.sizes = batch_sizes(episodes_at_most)
        self._scores: dict[int, list[DoubleArray]] = {}
        self._flops: dict[int, list[DoubleArray]] = {}
        self._lengths: dict[int, list[DoubleArray]] = {}
        self._latency: dict[int, list[DoubleArray]] = {}

    def next_batches(self) -> list[tuple[int, int]]:
        """Settings to play next, each with the number of the batch."""
        if not self._scores:
            return [(place, 0) for place in range(0, SETTINGS, COARSE)]
        kept, lost = self._bracket()
        near = self._scores if kept is None else [place for place in (kept, lost) if place is not None]
        doubtful = [place for place in near if not self._settled(place)]
        if self._against_best:
            doubtful += [place for place in self._scores if self._may_be_best(place)]
        if doubtful:
            return sorted({self._lagging(place) for place in doubtful})
        if kept is None:
            return []
        gap = 0.0 if lost is None else self._along[lost] - self._along[kept]
        if lost is not None and gap > 1:
            return [((kept + lost) // 2, 0)]
        if not self._played_out(kept):
            return [self._lagging(kept)]  # a controller that fails, or spends more, now and then may have been lucky
        return [(self._between(kept, lost), 0)] if lost is not None and gap > FINEST and self._ample(kept) else []

    def add(
        self,
        place: int,
        scores: DoubleArray,
        flops: DoubleArray,  # per step of each episode
        lengths: DoubleArray,
        latency_us: DoubleArray | None = None,  # per step of each episode
    ) -> None:
        """Take over one batch of a setting."""
        self._scores.setdefault(place, []).append(scores)
        self._flops.setdefault(place, []).append(flops)
        self._lengths.setdefault(place, []).append(lengths)
        if latency_us is not None:
            self._latency.setdefault(place, []).append(latency_us)

    def result(self) -> TuneResult:
        """What the search ended with."""
        kept, _ = self._bracket()
        place = kept if kept is not None else max(self._scores, key=lambda p: float(self._margin(p).mean()))
        scores, flops = np.concatenate(self._scores[place]), self._spent(self._flops, place)
        cost = self.policy.header.cost
        margin = self._margin(place)
        return TuneResult(
            meets=kept is not None,
            cost_coefficient=self.settings[place],
            demanded=self._demanded(),
            best_score=self._best_score(),
            score_mean=float(scores.mean()),
            score_ci95=half_width(scores),
            flops_per_step=float(flops.mean()),
            flops_reduction=cost.reduction(float(flops.mean())),
            flops_reduction_ci95=half_width(flops) / cost.gear_flops[-1],
            latency_us=float(self._spent(self._latency, place).mean()) if self._latency else None,
            certain=abs(float(margin.mean())) > half_width(margin),
            episodes=len(scores),
            episodes_in_all=sum(len(batch) for batches in self._scores.values() for batch in batches),
        )

    def _bracket(self) -> tuple[int | None, int | None]:
        """The last played setting that meets the demand, and the played one after it."""
        played = sorted(self._scores, key=self._along.__getitem__)
        meets = [place for place in played if self._meets(place)]
        if not meets:
            return None, None
        kept = meets[-1]
        return kept, next((place for place in played if self._along[place] > self._along[kept]), None)

    def _meets(self, place: int) -> bool:
        margin = self._margin(place)
        surely = self.demand.surely or self.demand.caps  # a limit that is met on average is passed every other time
        return bool(margin.mean() >= (half_width(margin) if surely else 0))

    def _between(self, kept: int, lost: int) -> int:
        """A new setting, midway between two."""
        self.settings.append(self._dial.between(self.settings[kept], self.settings[lost]))
        self._along.append((self._along[kept] + self._along[lost]) / 2)
        return len(self.settings) - 1

    def _ample(self, place: int) -> bool:
        """Whether a setting certainly does so much better than demanded that it may stand before a cliff."""
        margin = self._margin(place)
        return bool(margin.mean() - half_width(margin) > CLOSE * abs(self._demanded()))

    def _margin(self, place: int) -> DoubleArray:
        """By how much each episode of a setting does better than demanded."""
        demand = self.demand
        if demand.caps:
            limited = self._flops if demand.max_latency_us is None else self._latency
            return self._demanded() - self._spent(limited, place)
        if demand.reference is not None:
            return np.concatenate(self._scores[place]) - self._demanded()
        if self._beside is None:
            mine, best = self._beside_best(place)
        else:
            batches = self._scores[place]
            mine, best = np.concatenate(batches), np.concatenate(self._beside[: len(batches)])
        margin: DoubleArray = mine - best * share_of(demand.keep_return, float(best.mean()))
        return margin

    def _spent(self, what: dict[int, list[DoubleArray]], place: int) -> DoubleArray:
        """FLOPs or microseconds per step of a setting's episodes, each counted by its length."""
        return by_step(np.concatenate(what[place]), np.concatenate(self._lengths[place]))

    def _settled(self, place: int) -> bool:
        margin = self._margin(place)
        doubt = SURE * half_width(margin)
        clear = abs(float(margin.mean())) > doubt or doubt <= FINE * abs(self._demanded())
        return clear or self._played_out(place)

    def _played_out(self, place: int) -> bool:
        """Whether no more episodes are left to a setting."""
        return len(self._margin(place)) >= sum(self.sizes)

    @property
    def _against_best(self) -> bool:
        return not self.demand.caps and self.demand.reference is None and self._beside is None

    def _beside_best(self, place: int) -> tuple[DoubleArray, DoubleArray]:
        """Returns of a setting and of the best one, from the same starts."""
        best = self._best()
        common = min(len(self._scores[place]), len(self._scores[best]))
        mine, its = (np.concatenate(self._scores[p][:common]) for p in (place, best))
        return mine, its

    def _may_be_best(self, place: int) -> bool:
        """Whether more episodes may lift a setting so far above the best that the demand rises with it."""
        mine, best = self._beside_best(place)
        ahead = mine - best
        reach = float(ahead.mean()) + SURE * half_width(ahead)
        return reach > 2 * FINE * abs(float(best.mean())) and len(ahead) < sum(self.sizes)

    def _lagging(self, place: int) -> tuple[int, int]:
        """The batch that a margin lacks: of the setting itself, or of the best one it is paired with."""
        if self._against_best:
            place = min(place, self._best(), key=lambda p: len(self._scores[p]))
        return place, len(self._scores[place])

    def _best(self) -> int:
        return max(self._scores, key=lambda place: float(np.concatenate(self._scores[place]).mean()))

    def _best_score(self) -> float:
        if self.demand.reference is not None:
            return self.demand.reference
        if self._beside is not None:
            return float(np.concatenate(self._beside).mean())
        return float(np.concatenate(self._scores[self._best()]).mean())

    def _demanded(self) -> float:
        if self.demand.max_latency_us is not None:
            return self.demand.max_latency_us
        if self.demand.max_flops is not None:
            return self.demand.max_flops * self.policy.header.cost.gear_flops[-1]
        best = self._best_score()
        return best * share_of(self.demand.keep_return, best)


def batch_sizes(episodes: int) -> list[int]:
    """Episodes of a setting, a batch at a time; the last one may be smaller."""
    return [min(BATCH, episodes - first) for first in range(0, episodes, BATCH)]


def scores(played: Played) -> DoubleArray:
    """What episodes are judged by, (P, episodes): success where the task has goals, else the return."""
    return played.returns if played.success is None or played.scored_by == "return" else played.success


def share_of(keep: float | None, best: float) -> float:
    """The factor on a best return that leaves `keep` of it; where returns are negative, a loss makes them larger."""
    assert keep is not None
    return keep if best >= 0 else 2 - keep


def search(
    policies: Sequence[Policy],
    demand: Demand,
    make_env: Callable[[int], BatchEnv],
    master: str,
    *,
    seed: int,
    episodes_at_most: int,
    latency: Callable[[Played, int], DoubleArray] | None = None,
    beside: Policy | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[TuneResult]:
    """The setting of each policy, all searched side by side.

    `latency` gives the microseconds per step of each of one controller's episodes; a limit on them needs it. A share
    of the score is kept of the policy `beside` them, where one is given, from the same starts.
    """
    check_seed(seed)

    def play_batch(players: Sequence[Policy], number: int, size: int) -> Played:
        starts = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
        return play_policies(players, make_env, size, master, starts, progress, slots=size)

    sizes = batch_sizes(episodes_at_most)
    its = None if beside is None else [scores(play_batch([beside], *batch))[0] for batch in enumerate(sizes)]
    searches = [DialSearch(policy, demand, episodes_at_most, its) for policy in policies]
    while True:
        wanted = [(s, place, batch) for s in searches for place, batch in s.next_batches()]
        if not wanted:
            return [s.result() for s in searches]
        for batch in sorted({number for _, _, number in wanted}):
            now = [(s, place) for s, place, number in wanted if number == batch]
            at = [s.policy.at(s.settings[place]) for s, place in now]
            played = play_batch(at, batch, sizes[batch])
            for player, (s, place) in enumerate(now):
                flops = flops_each(played, player, s.policy.header.cost)
                took = latency(played, player) if latency else None
                s.add(place, scores(played)[player], flops, played.lengths[player], took)
