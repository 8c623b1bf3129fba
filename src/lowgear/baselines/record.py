"""Plays teachers and keeps what they did: the paper's expert data.

The paper's are 25 trajectories of 50 consecutive pairs; its supplement has 25, 50 and 200 whole episodes. Actions are
the teacher's means. DAgger plays its students through the same loop and keeps what the teacher would have done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations, Origin, Trajectory, of_trajectories
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import ENVIRONMENTS_AT_MOST
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Layers, mlp, squash
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
        env = make_env(min(amount.trajectories, ENVIRONMENTS_AT_MOST))
        try:
            network = network_of(teacher)
            (episodes,) = play(network, network, env, amount.trajectories, [(seed, STARTS, number)], progress)
        finally:
            env.close()
        generator = np.random.default_rng((seed, SEGMENTS, number))
        segments = [segment(episode, amount.length, generator) for episode in episodes]
        found.append(of_trajectories(Origin.of(teacher, seed), segments))
    return found


def play(
    actors: Layers,
    teachers: Layers,
    env: BatchEnv,
    episodes: int,
    seeds: Sequence[tuple[int, ...]],
    progress: Progress | None = None,
) -> list[list[Trajectory]]:
    """`episodes` whole episodes of each of P actors, with the actions that each actor's teacher would have taken.

    Actor p's environments start from seeds that depend on `seeds[p]` alone.
    Each environment plays a number of episodes fixed beforehand, so short episodes count no more than long ones.
    """
    population = len(actors[0][0])
    shape = population, env.num_envs // population
    slots = shape[1]
    starts = [
        int(np.random.SeedSequence((*seed, slot)).generate_state(1)[0] >> 1) for seed in seeds for slot in range(slots)
    ]
    left = np.tile([len(range(slot, episodes, slots)) for slot in range(slots)], (population, 1))
    observation = env.reset(starts).reshape(*shape, -1)
    steps: list[tuple[FloatArray, FloatArray, FloatArray]] = []  # observations, labels and rewards, (P, slots, ...)
    began = np.zeros(shape, np.int64)  # the step that each running episode began with
    found: list[list[list[Trajectory]]] = [[[] for _ in range(slots)] for _ in range(population)]
    while (left > 0).any():
        action = mean_actions(actors, observation)
        label = action if teachers is actors else mean_actions(teachers, observation)
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
    start = int(generator.integers(0, total - length + 1))
    rest = episode._replace(
        observations=episode.observations[start:], actions=episode.actions[start:], rewards=episode.rewards[start:]
    )
    return beginning(rest, length)


def beginning(trajectory: Trajectory, length: int) -> Trajectory:
    """The first `length` pairs of a trajectory, or all of it where it is no longer."""
    if len(trajectory.rewards) <= length:
        return trajectory
    return trajectory._replace(
        observations=trajectory.observations[:length],
        actions=trajectory.actions[:length],
        rewards=trajectory.rewards[:length],
        last_observation=trajectory.observations[length],
        terminated=False,
        truncated=False,
    )


def mean_actions(networks: Layers, observation: FloatArray) -> FloatArray:
    """The deterministic actions (P, N, act) of P tanh networks for (P, N, obs)."""
    return squash(mlp(networks, observation, "tanh"))


def network_of(teacher: Policy) -> Layers:
    """The one network that a large-only policy acts with."""
    header = teacher.header
    if header.forced_gear is None:
        raise LowgearError(
            f"a {header.variant} policy is no teacher, because its master picks: take a large-only one, "
            "or set its header's forced_gear to the gear that is to teach"
        )
    if header.activation != "tanh":
        raise LowgearError(f"a teacher with {header.activation} units cannot be recorded: only tanh is supported")
    return teacher.weights.gears[header.forced_gear]


def stack_networks(networks: Sequence[Layers]) -> Layers:
    """Networks of P = 1 as one population; shapes that differ are an error."""
    if len({tuple(weight.shape[1:] for weight, _ in network) for network in networks}) != 1:
        raise LowgearError("teachers of different widths or tasks do not train students together")
    return [
        (np.concatenate([weight for weight, _ in layer]), np.concatenate([bias for _, bias in layer]))
        for layer in zip(*networks, strict=True)
    ]
