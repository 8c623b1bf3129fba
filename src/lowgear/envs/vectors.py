"""Vectors of Gymnasium environments as they are, whatever their autoreset mode.

In SAME_STEP mode a vector resets within the step that ends an episode. In NEXT_STEP and DISABLED mode the environments
whose episode ended are reset at once by `reset(options={"reset_mask": ...})`, Gymnasium's way to reset some of them, so
that no reset step is ever seen. A vector that raises or hangs fails as one.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from lowgear import LowgearError
from lowgear.envs import watchdog
from lowgear.envs.checked import CheckedEnv
from lowgear.envs.gym import GymEnv
from lowgear.envs.protocol import Step
from lowgear.policy.arrays import BoolArray, FloatArray

Vector = VectorEnv[Any, Any, Any]


class AnyVectorEnv(GymEnv):
    """One vector in any autoreset mode; with a `limit`, episodes are cut there."""

    def __init__(self, name: str, vector: Vector, limit: int | None = None) -> None:
        self._mode, self._limit = vector.metadata.get("autoreset_mode"), limit
        if not isinstance(self._mode, AutoresetMode):
            raise LowgearError(
                f"{name} is a vector whose metadata say no autoreset mode: set metadata['autoreset_mode'] to "
                "gymnasium.vector.AutoresetMode.SAME_STEP, NEXT_STEP or DISABLED, whichever it is"
            )
        if hasattr(vector, "all_env_ids"):
            raise LowgearError(f"{name} is a pool of EnvPool, which takes no seeds: name it by envpool:ID instead")
        if self._mode is AutoresetMode.NEXT_STEP and getattr(vector, "shared_memory", True) is False:
            # Gymnasium's AsyncVectorEnv then forgets that an environment was reset, and resets it once more.
            raise LowgearError(f"{name} is a vector that resets twice: make it with shared_memory=True")
        super().__init__(name, vector)
        self._ages = np.zeros(self.num_envs, np.int64)
        self._all_hang = partial(self._hangs, None)

    def _begin(self, seeds: Any) -> FloatArray:
        self._ages[:] = 0
        return watchdog.call(self.limit_s, self._all_hang, super()._begin, seeds)

    def _advance(self, actions: FloatArray) -> Step:
        raw, rewards, terminated, truncated, infos = watchdog.call(
            self.limit_s, self._all_hang, self._vector.step, actions
        )
        self._ages += 1
        last = self._flat(raw, self.num_envs)
        by_itself = np.asarray(terminated | truncated, np.bool_)
        over = np.zeros_like(by_itself) if self._limit is None else (self._ages >= self._limit) & ~by_itself
        ended = by_itself | over
        success = self._success(infos, np.flatnonzero(by_itself))
        observation = last
        if self._mode is AutoresetMode.SAME_STEP and by_itself.any():
            last = observation.copy()
            for i in np.flatnonzero(by_itself).tolist():
                last[i] = self._flat(infos["final_obs"][i], 1)[0]
        due = over if self._mode is AutoresetMode.SAME_STEP else ended
        if due.any():
            observation = self._reset_some(due, observation)
        self._ages[ended] = 0
        reward = np.asarray(rewards).astype(np.float32)
        terminated = np.array(terminated, np.bool_)
        return Step(observation, reward, terminated, ended & ~terminated, last, success)

    def _reset_some(self, due: BoolArray, before: FloatArray) -> FloatArray:
        """The observations once those that are `due` began anew; the others must be as they were."""
        raw, _ = self._vector.reset(options={"reset_mask": due.copy()})
        observation = self._flat(raw, self.num_envs)
        if not np.array_equal(observation[~due], before[~due], equal_nan=True):
            raise LowgearError(
                f"{self.spec.name} is a vector whose reset takes no options['reset_mask'], so that episodes cannot "
                "begin one by one: make it with autoreset_mode=AutoresetMode.SAME_STEP"
            )
        return observation


class SideBySide(CheckedEnv):
    """Several vectors as a batch of `num_envs`; the last one's spare environments take the middle of their actions."""

    def __init__(self, vectors: Sequence[AnyVectorEnv], num_envs: int) -> None:
        first = vectors[0]
        super().__init__(first.spec, first._bounds, num_envs)
        self._vectors, self.goal_rule = vectors, first.goal_rule
        self._spare = sum(vector.num_envs for vector in vectors) - num_envs

    def close(self) -> None:
        """Close the vectors."""
        for vector in self._vectors:
            vector.close()

    def _begin(self, seeds: list[int]) -> FloatArray:
        padded = seeds + [0] * self._spare
        parts = [vector._begin(padded[rows]) for vector, rows in self._rows()]
        return np.concatenate(parts)[: self.num_envs]

    def _advance(self, actions: FloatArray) -> Step:
        middle = self._bounds.scale(np.zeros((self._spare, self.spec.act_dim), np.float32))
        padded = np.concatenate([actions, middle]).astype(actions.dtype)
        steps = [vector._advance(padded[rows]) for vector, rows in self._rows()]
        told = any(step.success is not None for step in steps)
        success = [np.zeros(len(step.reward), np.bool_) if step.success is None else step.success for step in steps]

        def joined(parts: Iterable[Any]) -> Any:
            return np.concatenate(list(parts))[: self.num_envs]

        columns = [joined(parts) for parts in zip(*(step[:5] for step in steps), strict=True)]
        return Step._make([*columns, joined(success) if told else None])

    def _rows(self) -> list[tuple[AnyVectorEnv, slice]]:
        """The vectors with their rows, told of what is done and how long it may take."""
        for vector in self._vectors:
            vector.limit_s, vector._doing = self.limit_s, self._doing
        stops = np.cumsum([vector.num_envs for vector in self._vectors]).tolist()
        return [
            (vector, slice(stop - vector.num_envs, stop)) for vector, stop in zip(self._vectors, stops, strict=True)
        ]
