"""Episodes as the network itself plays them: what every export is held against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.envs.protocol import BatchEnv
from lowgear.envs.spaces import ActionBounds
from lowgear.policy import controller
from lowgear.policy.controller import BoolArray, FloatArray, IntArray, Shifter
from lowgear.policy.file import Policy, PolicyHeader

TOLERANCE = 1e-5  # of an action, in halves of its range; and of the master's values, relative, below which they tie
STEPS_AT_MOST = 10_000  # of an environment that never ends an episode
RANDOM_STEPS = 1000


@dataclass(frozen=True)
class Episode:
    """One episode, or its beginning, step by step."""

    observation: FloatArray  # (T, obs)
    due: BoolArray  # (T,): the master picked before this step
    choice: IntArray  # (T,)
    gear: IntArray  # (T,)
    left: IntArray  # (T,): steps that the pick still held before this one, 0 where it was due
    action: FloatArray  # (T, act), in the environment's units
    margin: npt.NDArray[np.float64]  # (T,): of the best value over the next, relative; infinite between picks
    total: float  # return
    from_environment: bool = True


def bounds(policy: Policy) -> ActionBounds:
    """The policy's action bounds."""
    return policy.bounds


def starts(seed: int, slots: int) -> list[int]:
    """Seeds of the environments, the same that `lowgear.evaluation.evaluate.play` gives them."""
    return [int(np.random.SeedSequence((seed, slot)).generate_state(1)[0] >> 1) for slot in range(slots)]


def record(policy: Policy, make_env: Callable[[int], BatchEnv], episodes: int, seed: int) -> list[Episode]:
    """The first episode of each of `episodes` environments, played greedily by the NumPy network."""
    env = make_env(episodes)
    try:
        observation = env.reset(starts(seed, episodes))
        shifter = Shifter((1, episodes), len(policy.header.gears), policy.header.periods)
        rows: list[list[tuple[FloatArray, bool, int, int, FloatArray, float, float]]] = [[] for _ in range(episodes)]
        running = np.ones(episodes, bool)
        for _ in range(STEPS_AT_MOST):
            due, left = shifter.due[0].copy(), _left(shifter)
            margin = pick(policy, shifter, observation)
            action = controller.act(policy.weights.gears, observation[None], shifter.gear, policy.header.activation)[0]
            step = env.step(action)
            scaled = bounds(policy).scale(action)
            for e in np.flatnonzero(running):
                choice = int(shifter.choice[0, e])
                kept = (observation[e], bool(due[e]), choice, int(left[e]), scaled[e], margin[e], float(step.reward[e]))
                rows[e].append(kept)
            ended = step.terminated | step.truncated
            shifter.release(shifter.advance(ended[None]))
            running &= ~ended
            observation = step.observation
            if not running.any():
                break
    finally:
        env.close()
    return [_episode(row, len(policy.header.gears)) for row in rows]


def imagine(policy: Policy, episodes: int, seed: int, steps: int = RANDOM_STEPS) -> list[Episode]:
    """Standard normal observations instead, where the environment cannot be made."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        observations = generator.standard_normal((steps, policy.header.obs_dim), np.float32)
        shifter = Shifter((1, 1), len(policy.header.gears), policy.header.periods)
        rows = []
        for observation in observations:
            due, left = bool(shifter.due[0, 0]), int(_left(shifter)[0])
            margin = pick(policy, shifter, observation[None])
            at = observation[None, None]
            action = controller.act(policy.weights.gears, at, shifter.gear, policy.header.activation)[0]
            scaled = bounds(policy).scale(action)[0]
            rows.append((observation, due, int(shifter.choice[0, 0]), left, scaled, float(margin[0]), 0.0))
            shifter.release(shifter.advance(np.zeros((1, 1), bool)))
        found.append(_episode(rows, len(policy.header.gears), False))
    return found


def pick(policy: Policy, shifter: Shifter, observation: FloatArray) -> npt.NDArray[np.float64]:
    """Shift (1, N) environments where it is due; returns by how much the best value leads, infinite where not due."""
    header, due = policy.header, shifter.due
    margin = np.full(len(observation), np.inf)
    if header.forced_gear is not None:
        shifter.pick(np.full(due.shape, header.forced_gear))
    elif due.any():
        at = None if header.dial is None else np.full(due.shape, position(header), np.float32)
        found = controller.values(policy.weights, observation[None], at, header.activation)
        shifter.pick(found.argmax(axis=-1))
        top = np.sort(found[0].astype(np.float64), axis=-1)
        lead = (top[:, -1] - top[:, -2]) / np.maximum(1.0, np.abs(top[:, -1]))
        margin = np.where(due[0], lead, np.inf)
    return margin


def clearest(episodes: Sequence[Episode]) -> Episode:
    """The episode whose closest pick is the least close, up to a tie if there is one: no rounding turns its picks."""
    found = max(episodes, key=lambda episode: float(episode.margin.min()))
    ties = np.flatnonzero(found.margin <= TOLERANCE)
    if not ties.size or ties[0] == 0:
        return found
    parts = {field.name: getattr(found, field.name) for field in fields(found)}
    cut: dict[str, Any] = {name: part[: ties[0]] for name, part in parts.items() if isinstance(part, np.ndarray)}
    return replace(found, **cut)


def position(header: PolicyHeader) -> float:
    """Where the dial stands."""
    return 0.0 if header.dial is None else header.dial.position(header.cost_coefficient)


def _left(shifter: Shifter) -> IntArray:
    """Steps that the picks still hold, 0 where one is due."""
    held = shifter.periods[shifter.choice // shifter.gears] - shifter.age
    left: IntArray = np.where(shifter.due, 0, held)[0].astype(np.int32)
    return left


def _episode(
    rows: Sequence[tuple[FloatArray, bool, int, int, FloatArray, float, float]],
    gears: int,
    from_environment: bool = True,
) -> Episode:
    observation, due, choice, left, action, margin, reward = zip(*rows, strict=True)
    chosen = np.array(choice, np.int32)
    return Episode(
        observation=np.array(observation, np.float32),
        due=np.array(due),
        choice=chosen,
        gear=(chosen % gears).astype(np.int32),
        left=np.array(left, np.int32),
        action=np.array(action, np.float32),
        margin=np.array(margin),
        total=float(np.sum(reward)),
        from_environment=from_environment,
    )
