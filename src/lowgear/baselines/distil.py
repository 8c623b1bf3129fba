"""Small policies that do what a large one does: DAgger students of several widths, for `lowgear slim`.

A policy that is there already can be asked for as many labels as one likes, so students get far more of them than the
paper's imitators.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowgear import LowgearError
from lowgear.baselines import clone, dagger
from lowgear.baselines.clone import CloneSettings
from lowgear.baselines.dagger import DaggerSettings
from lowgear.baselines.record import MakeEnv
from lowgear.config.gears import freeze
from lowgear.policy.cost import policy_flops
from lowgear.policy.file import Policy

NARROWEST = 8  # of the widths that are tried unless told
DEAREST = 0.1  # share of the large policy's FLOPs that the widest of them costs at most
LEAST_EPISODES = 4  # of a round: one of ten trajectories is held out


@dataclass(frozen=True)
class DistilSettings:
    """How students are taught."""

    labels: int = 40_000  # steps that the large policy labels for each student
    rounds: int = 4  # of DAgger; the large policy acts in the first
    clone: CloneSettings = clone.DISTIL


def widths_for(large: Policy) -> tuple[int, ...]:
    """Powers of two, from the narrowest on, that cost a small share of the large policy; the narrowest at least."""
    header = large.header
    most = DEAREST * header.cost.gear_flops[-1]
    ladder = (NARROWEST * 2**power for power in itertools.count())
    found = tuple(itertools.takewhile(lambda units: flops_of(large, units) <= most, ladder)) or (NARROWEST,)
    if flops_of(large, found[0]) >= header.cost.gear_flops[-1]:
        raise LowgearError(
            f"a policy of {header.gears[0]} units is as cheap as a policy can be: nothing is left to slim"
        )
    return found


def flops_of(large: Policy, units: int) -> int:
    """What an action of a student costs."""
    return policy_flops(large.header.obs_dim, large.header.act_dim, units)


def distil(
    large: Policy,
    units: int,
    seeds: Sequence[int],
    make_env: MakeEnv,
    episode_steps: float,
    settings: DistilSettings = DistilSettings(),  # noqa: B008
    progress: Callable[[int, int], None] | None = None,
) -> list[Policy]:
    """Students of one width, one for each seed, each as a policy of one frozen gear; `progress` counts rounds.

    `episode_steps` is how long an episode is, about: rounds play as many as their labels need.
    """
    episodes = max(LEAST_EPISODES, math.ceil(settings.labels / settings.rounds / episode_steps))
    plan = DaggerSettings(settings.labels, settings.rounds, episodes, None, settings.clone)
    students, _ = dagger.fit([large] * len(seeds), make_env, units, seeds, plan, progress)
    return [freeze(student).read for student in students.policies]
