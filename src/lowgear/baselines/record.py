"""Plays teachers and keeps what they did: the paper's expert data.

The paper's are 25 trajectories of 50 consecutive pairs; its supplement has 25, 50 and 200 whole episodes. Actions are
the teacher's means. DAgger plays its students through the same loop and keeps what the teacher would have done.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations, Origin, Trajectory, of_trajectories
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import ENVIRONMENTS_AT_MOST
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy

MakeEnv = Callable[[int], BatchEnv]
Progress = Callable[[int, int], None]  # how much is done, of how much
STARTS, SEGMENTS = 20, 21  # streams of random numbers: none is one that evaluation draws from


@dataclass(frozen=True)
class Amount:
    """How much of the teacher is recorded; by default what the paper's main comparison uses."""

    trajectories: int = 25  # each of an episode of its own
    length: int | None = 50  # consecutive pairs from a random place in the episode; None: the whole episode


def record(
    teachers: Sequence[Policy],
    make_env: MakeEnv,
    amount: Amount = Amount(),  # noqa: B008
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Demonstrations]:
    """Each teacher's demonstrations; `progress` counts episodes.

    An episode shorter than the amount's length is kept whole.
    """
    if amount.trajectories < 1 or (amount.length is not None and amount.length < 1):
        raise LowgearError(f"{amount.trajectories} trajectories of {amount.length} pairs: write 1 or more of each")
    found = []
    for number, teacher in enumerate(teachers):
        with closing(make_env(min(amount.trajectories, ENVIRONMENTS_AT_MOST))) as env:
            starts = [(seed, STARTS, number)]
            (episodes,) = play([teacher], [teacher], env, amount.trajectories, starts, progress)
        generator = np.random.default_rng((seed, SEGMENTS, number))
        segments = [segment(episode, amount.length, generator) for episode in episodes]
        found.append(of_trajectories(Origin.of(teacher, seed), segments))
    return found


def play(
    actors: Sequence[Policy],
    teachers: Sequence[Policy],
    env: BatchEnv,
    episodes: int,
    seeds: Sequence[tuple[int, ...]],
    progress: Progress | None = None,
) -> list[list[Trajectory]]:
    """`episodes` whole episodes of each of P actors, with the actions that each actor's teacher would have taken.

    Actor p's environments start from seeds that depend on `seeds[p]` alone.
    Each environment plays a number of episodes fixed beforehand, so short episodes count no more than long ones.
    """
    for teacher in teachers:
        _check_teacher(teacher)
    population, slots = shape = len(actors), env.num_envs // len(actors)
    acting, labelling = (Controller.from_policies(policies, slots) for policies in (actors, teachers))
    starts = [
        int(np.random.SeedSequence((*seed, slot)).generate_state(1)[0] >> 1) for seed in seeds for slot in range(slots)
    ]
    left = np.tile([len(range(slot, episodes, slots)) for slot in range(slots)], (population, 1))
    observation = env.reset(starts).reshape(*shape, -1)
    steps: list[tuple[FloatArray, FloatArray, FloatArray]] = []  # observations, labels and rewards, (P, slots, ...)
    began = np.zeros(shape, np.int64)  # the step that each running episode began with
    found: list[list[list[Trajectory]]] = [[[] for _ in range(slots)] for _ in range(population)]
    while (left > 0).any():
        action, label = (_mean_actions(controller, observation) for controller in (acting, labelling))
        step = env.step(action.reshape(env.num_envs, -1))
        steps.append((observation, label, step.reward.reshape(shape)))
        for p, slot in np.argwhere((step.terminated | step.truncated).reshape(shape)).tolist():
            if left[p, slot] > 0:
                rows = steps[began[p, slot] :]
                observations, labels, rewards = (
                    np.array([row[kind][p, slot] for row in rows], np.float32) for kind in range(3)
                )
                e = p * slots + slot
                found[p][slot].append(
                    Trajectory(
                        observations,
                        labels,
                        rewards,
                        last_observation=step.last_observation[e].copy(),
                        terminated=bool(step.terminated[e]),
                        truncated=bool(step.truncated[e]),
                        episode_return=float(rewards.sum(dtype=np.float64)),
                    )
                )
                left[p, slot] -= 1
                if progress:
                    progress(population * episodes - int(left.sum()), population * episodes)
            began[p, slot] = len(steps)
        observation = step.observation.reshape(*shape, -1)
    return [[found[p][i % slots][i // slots] for i in range(episodes)] for p in range(population)]


def segment(episode: Trajectory, length: int | None, generator: np.random.Generator) -> Trajectory:
    """`length` consecutive pairs from a random place in an episode, or all of it where it is no longer."""
    total = len(episode.rewards)
    if length is None or total <= length:
        return episode
    return cut(episode, int(generator.integers(0, total - length + 1)), length)


def cut(trajectory: Trajectory, start: int, length: int) -> Trajectory:
    """`length` consecutive pairs from `start` on, or as many as there are."""
    end = start + length
    observations, actions, rewards = (part[start:end] for part in trajectory[:3])
    found = trajectory._replace(observations=observations, actions=actions, rewards=rewards)
    if end >= len(trajectory.rewards):
        return found
    return found._replace(last_observation=trajectory.observations[end], terminated=False, truncated=False)


def _mean_actions(controller: Controller, observation: FloatArray) -> FloatArray:
    """(P, N, act) for (P, N, obs), of controllers that never shift."""
    controller.pick(observation)
    return controller.act(observation)


def _check_teacher(teacher: Policy) -> None:
    if teacher.header.forced_gear is None:
        raise LowgearError(
            f"a {teacher.header.variant} policy is no teacher, because its master picks: take a large-only one, "
            "or set its header's forced_gear to the gear that is to teach"
        )
