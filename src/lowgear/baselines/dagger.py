"""DAgger: the student acts, the teacher says what it would have done there, and the student learns from all of it.

Ross et al., "A reduction of imitation learning and structured prediction to no-regret online learning" (AISTATS 2011).
The paper has no such baseline. Cloning never shows a student the states that its own mistakes lead to; this does, for
the same number of labelled steps. The teacher acts in the first round only (β of 1, then 0).

The last student is fitted anew, by `clone` and with its settings, to all that was labelled, so that it differs from
behaviour cloning in its data alone.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from lowgear import LowgearError
from lowgear.baselines import clone
from lowgear.baselines.clone import CloneSettings
from lowgear.baselines.demonstrations import Demonstrations, Origin, Trajectory, of_trajectories
from lowgear.baselines.record import SEGMENTS, MakeEnv, Progress, cut, play, segment
from lowgear.baselines.student import Students
from lowgear.evaluation.evaluate import slots_for
from lowgear.policy.file import Policy

STARTS = 40  # stream of random numbers


@dataclass(frozen=True)
class DaggerSettings:
    """How the labelled steps are spread."""

    labels: int = 1250  # steps that the teacher labels for each student: the paper's 25 × 50 pairs
    rounds: int = 5
    episodes: int = 5  # that each student plays in a round, with an equal share of its labels for each
    length: int | None = 50  # labels so many consecutive steps from a random place; None: from the episode's start
    clone: CloneSettings = clone.PAPER  # of every fit


def at_equal_data(
    demonstrations: Demonstrations, settings: CloneSettings = clone.PAPER, rounds: int = 5
) -> DaggerSettings:
    """As many labels as demonstrations hold pairs, from about as many episodes, whole ones or parts as theirs are."""
    # Two episodes at least: one of them may be held out.
    episodes = max(2, demonstrations.trajectories // rounds)
    whole = bool((demonstrations.terminated | demonstrations.truncated).all())
    length = None if whole else int(np.diff(demonstrations.bounds).max())
    return DaggerSettings(len(demonstrations), rounds, episodes, length, settings)


def fit(
    teachers: Sequence[Policy],
    make_env: MakeEnv,
    units: int,
    seeds: Sequence[int],
    settings: DaggerSettings = DaggerSettings(),  # noqa: B008
    progress: Progress | None = None,
) -> tuple[Students, list[Demonstrations]]:
    """Student p of width `units` is taught by `teachers[p]` with `seeds[p]`; also all that was labelled for each.

    Labels are never more than the settings allow; fewer where the episodes are too short to hold them. `progress`
    counts rounds. The history is that of the last fit, and `round_return`, (rounds, P), of whoever acted.
    """
    _check(teachers, seeds, settings)
    labelled: list[list[Trajectory]] = [[] for _ in seeds]
    actors, returns, fitted = teachers, [], None
    for number in range(settings.rounds):
        with closing(make_env(len(seeds) * slots_for(len(seeds), settings.episodes))) as env:
            starts = [(seed, STARTS, number) for seed in seeds]
            played = play(actors, teachers, env, settings.episodes, starts)
        for seed, own, episodes in zip(seeds, labelled, played, strict=True):
            generator = np.random.default_rng((seed, SEGMENTS, number))
            left = settings.labels - sum(len(trajectory.rewards) for trajectory in own)
            own += _labels_of(episodes, -(-left // (settings.rounds - number)), settings.length, generator)
        returns.append([np.mean([episode.episode_return for episode in episodes]) for episodes in played])
        data = [
            of_trajectories(Origin.of(teacher, seed), own)
            for teacher, seed, own in zip(teachers, seeds, labelled, strict=True)
        ]
        fitted = clone.fit(data, units, seeds, settings.clone, capacity=settings.labels)
        actors = fitted.policies
        if progress:
            progress(number + 1, settings.rounds)
    assert fitted is not None
    policies = tuple(replace(p, header=replace(p.header, variant="dagger")) for p in fitted.policies)
    return Students(policies, fitted.history | {"round_return": np.array(returns, np.float32)}), data


def _labels_of(
    episodes: Sequence[Trajectory], labels: int, length: int | None, generator: np.random.Generator
) -> list[Trajectory]:
    """A round's labelled steps, spread evenly over its episodes."""
    found: list[Trajectory] = []
    # The shortest come first, so that what they cannot fill goes to the longer ones.
    for i, episode in enumerate(sorted(episodes, key=lambda episode: len(episode.rewards))):
        part = segment(episode, length, generator)
        share = -(-labels // (len(episodes) - i))
        if share:
            found.append(cut(part, 0, share))
            labels -= len(found[-1].rewards)
    return found


def _check(teachers: Sequence[Policy], seeds: Sequence[int], settings: DaggerSettings) -> None:
    if not teachers or len(teachers) != len(seeds):
        raise LowgearError(f"{len(teachers)} teachers for {len(seeds)} seeds: every student needs one of each")
    if settings.rounds < 1 or settings.episodes < 1:
        raise LowgearError(f"{settings.rounds} rounds of {settings.episodes} episodes: write 1 or more of each")
    if settings.episodes < 2 and settings.clone.held_out:
        raise LowgearError("one episode a round cannot be held out and learned from: play two, or set held_out to 0")
    if settings.labels < settings.rounds * settings.episodes:
        raise LowgearError(
            f"{settings.labels} labels are not one for each of {settings.rounds} × {settings.episodes} episodes: "
            "give more labels or fewer rounds"
        )
