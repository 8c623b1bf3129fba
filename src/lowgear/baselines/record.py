"""Plays teachers and keeps what they did: the paper's expert data.

The paper's are 25 trajectories of 50 consecutive pairs; its supplement has 25, 50 and 200 whole episodes. Actions are
the teacher's means. DAgger plays its students through the same loop and keeps what the teacher would have done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations, Origin, Trajectory, of_trajectories
from lowgear.config.tasks import find
from lowgear.envs.protocol import BatchEnv, FloatArray
from lowgear.evaluation.evaluate import ENVIRONMENTS_AT_MOST
from lowgear.policy.controller import Layers, act
from lowgear.policy.file import Policy

MakeEnv = Callable[[int], BatchEnv]
Progress = Callable[[int], None]
STARTS, CUTS = 20, 21  # streams of random numbers: none is one that evaluation draws from


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
    """Each teacher's demonstrations; `progress` is told of every episode played.

    An episode shorter than the amount's length is kept whole.
    """
    if amount.trajectories < 1 or (amount.length is not None and amount.length < 1):
        raise LowgearError(f"{amount.trajectories} trajectories of {amount.length} pairs: write 1 or more of each")
    found = []
    for number, teacher in enumerate(teachers):
        env = make_env(min(amount.trajectories, ENVIRONMENTS_AT_MOST))
        try:
            layers = gear_of(teacher)
            (episodes,) = play(layers, layers, env, amount.trajectories, [(seed, STARTS, number)], progress)
        finally:
            env.close()
        generator = np.random.default_rng((seed, CUTS, number))
        found.append(of_trajectories(origin_of(teacher, seed), [cut(e, amount.length, generator) for e in episodes]))
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
    slots = env.num_envs // population
    left = np.tile([len(range(slot, episodes, slots)) for slot in range(slots)], (population, 1))
    starts = [
        np.random.SeedSequence((*seed, slot)).generate_state(1)[0] >> 1 for seed in seeds for slot in range(slots)
    ]
    observation = env.reset([int(start) for start in starts]).reshape(population, slots, -1)
    began = np.zeros((population, slots), np.int64)
    seen: list[FloatArray] = []
    labels: list[FloatArray] = []
    rewards: list[FloatArray] = []
    found: list[list[list[Trajectory]]] = [[[] for _ in range(slots)] for _ in range(population)]
    while (left > 0).any():
        action = means(actors, observation)
        seen.append(observation)
        labels.append(action if teachers is actors else means(teachers, observation))
        step = env.step(action.reshape(env.num_envs, -1))
        rewards.append(step.reward.reshape(population, slots))
        ended = (step.terminated | step.truncated).reshape(population, slots)
        for at in map(tuple, np.argwhere(ended).tolist()):
            if left[at] > 0:
                rows = slice(int(began[at]), len(seen))
                i = at[0] * slots + at[1]
                parts = [np.array([array[at] for array in kind[rows]], np.float32) for kind in (seen, labels, rewards)]
                end = (step.last_observation[i].copy(), bool(step.terminated[i]), bool(step.truncated[i]))
                episode_return = float(parts[2].sum(dtype=np.float64))
                found[at[0]][at[1]].append(Trajectory(parts[0], parts[1], parts[2], *end, episode_return))
                left[at] -= 1
                if progress:
                    progress(1)
            began[at] = len(seen)
        observation = step.observation.reshape(population, slots, -1)
    return [[found[p][i % slots][i // slots] for i in range(episodes)] for p in range(population)]


def cut(episode: Trajectory, length: int | None, generator: np.random.Generator) -> Trajectory:
    """`length` consecutive pairs from a random place in an episode, or all of it where it is no longer."""
    total = len(episode.rewards)
    if length is None or total <= length:
        return episode
    start = int(generator.integers(0, total - length + 1))
    rest = episode._replace(
        observations=episode.observations[start:], actions=episode.actions[start:], rewards=episode.rewards[start:]
    )
    return rest if start + length == total else beginning(rest, length)


def beginning(trajectory: Trajectory, length: int) -> Trajectory:
    """The first `length` pairs of a longer trajectory, which goes on after them."""
    return trajectory._replace(
        observations=trajectory.observations[:length],
        actions=trajectory.actions[:length],
        rewards=trajectory.rewards[:length],
        last_observation=trajectory.observations[length],
        terminated=False,
        truncated=False,
    )


def means(layers: Layers, observation: FloatArray) -> FloatArray:
    """The deterministic actions (P, N, act) of P tanh networks for (P, N, obs)."""
    return act([layers], observation, np.zeros(observation.shape[:2], np.int32), "tanh")


def gear_of(teacher: Policy) -> Layers:
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


def origin_of(teacher: Policy, seed: int) -> Origin:
    """What demonstrations say of their teacher."""
    header = teacher.header
    assert header.forced_gear is not None
    return Origin(
        task=header.task,
        env_id=_env_id(header.task),
        recipe=header.recipe,
        variant=header.variant,
        seed=header.seed,
        steps=header.steps,
        units=header.gears[header.forced_gear],
        layout=header.layout,
        action_low=header.action_low,
        action_high=header.action_high,
        recorded_with_seed=seed,
    )


def _env_id(task: str) -> str:
    """The simulator's own name; a task that was passed in from Python has no other name than its own."""
    try:
        return find(task).env_id
    except LowgearError:
        return task


def stacked(parts: Sequence[Layers]) -> Layers:
    """Networks of P = 1 as one population; shapes that differ are an error."""
    shapes = {tuple(weight.shape[1:] for weight, _ in layers) for layers in parts}
    if len(shapes) != 1:
        raise LowgearError("teachers of different widths or tasks do not train students together")
    joined: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] = [
        (np.concatenate([w for w, _ in layer]), np.concatenate([b for _, b in layer]))
        for layer in zip(*parts, strict=True)
    ]
    return joined
