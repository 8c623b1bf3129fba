"""EnvPool as a batch: C++ threads step all environments, and this file adds as little as it can.

The arrays of `_recv` are read as they come, because EnvPool's own Python layer costs more than the checks
made here. A pool cannot be seeded again, so `reset` builds a new one; its environments depend on their own
seeds only. Environments that ended are reset within the same step, so EnvPool's auto-reset steps, which
ignore their actions, never happen.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.config.cores import cores
from lowgear.envs import watchdog
from lowgear.envs.assets import corrected
from lowgear.envs.checked import CheckedEnv, blamed_on, check_num_envs
from lowgear.envs.goals import Distance
from lowgear.envs.protocol import Step
from lowgear.envs.spaces import SUCCESS_KEYS, action_bounds, env_spec, field_size, goals_last, nearest, not_box
from lowgear.policy.arrays import FloatArray

try:
    import envpool
except ImportError as error:
    raise LowgearError(f"EnvPool cannot be imported ({error}): `pip install envpool==1.2.5`, or use gym:ID") from error

# dm_control's layout, which is the paper's, where EnvPool adds keys or orders them otherwise.
DM_CONTROL_KEYS = {
    "FingerSpin-v1": ["position", "velocity", "touch"],  # without target_position and dist_to_target
    "FishSwim-v1": ["joint_angles", "upright", "target", "velocity"],
}
THREADS_OF_CORE = 2  # of several pools on one machine


class PoolEnv(CheckedEnv):
    """`num_envs` environments of EnvPool's `env_id`, stepped by `threads` threads (default: one per core).

    With `end_on_success` an episode ends for real once it succeeds.
    """

    def __init__(
        self,
        name: str,
        env_id: str,
        num_envs: int,
        threads: int | None = None,
        end_on_success: bool = False,
        max_episode_steps: int | None = None,
    ) -> None:
        check_num_envs(num_envs)
        self._env_id = env_id
        self._threads = threads or 0  # EnvPool reads 0 as one for each core
        self._limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
        pool_spec = _pool_spec(name, env_id, self._limit)
        self._base_path = str(pool_spec.config.base_path)
        bounds = _bounds(name, pool_spec)
        fields = _observation_fields(name, env_id, pool_spec)
        keys = list(pool_spec._state_keys)
        success = [f"info:{key}" for key in SUCCESS_KEYS if f"info:{key}" in keys]
        layout, limit = [(key, size) for _, key, size in fields], int(pool_spec.config.max_episode_steps)
        super().__init__(env_spec(name, bounds, layout, limit, bool(success)), bounds, num_envs)
        self._columns = _columns(fields)
        self._reward, self._done, self._trunc = (keys.index(key) for key in ("reward", "done", "trunc"))
        self._success = keys.index(success[0]) if success else None
        self._end_on_success = end_on_success and bool(success)
        self.goal_rule = _goal_rule(pool_spec) if self.spec.desired_goal is not None else None
        self._ids: npt.NDArray[np.int32] = np.arange(num_envs, dtype=np.int32)
        self._pool: Any = None
        self._all_hang = partial(self._hangs, None)

    def step_bare(self, actions: FloatArray) -> None:
        """A step of EnvPool alone, for measurements: nothing is read, and episodes that ended begin anew."""
        self._pool._send([self._ids, self._ids, self._bounds.scale(actions)])
        self._pool._recv()

    def split(self, sizes: Sequence[int]) -> "Sequence[PoolEnv]":
        """Pools of these sizes, with threads enough that cores stay busy while some of the pools wait for actions."""
        threads = THREADS_OF_CORE * (self._threads or cores())
        pools = [PoolEnv(*self._arguments(size, max(1, threads * size // self.num_envs))) for size in sizes]
        for pool, first in zip(pools, itertools.accumulate(sizes, initial=self.first), strict=False):
            pool.limit_s, pool.first = self.limit_s, first
        return pools

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what makes it: a pool's environments stay where they are."""
        return PoolEnv, self._arguments(self.num_envs, self._threads), {"limit_s": self.limit_s, "first": self.first}

    def _arguments(self, num_envs: int, threads: int) -> tuple[Any, ...]:
        limit = self._limit.get("max_episode_steps")
        return self.spec.name, self._env_id, num_envs, threads, self._end_on_success, limit

    def _begin(self, seeds: list[int]) -> FloatArray:
        self.close()
        sizes = {"num_envs": self.num_envs, "num_threads": self._threads}
        with (
            blamed_on(self.spec.name, "while it was made"),
            corrected(self._env_id, self._base_path) as base_path,
        ):
            self._pool = envpool.make_gymnasium(self._env_id, **sizes, **self._limit, seed=seeds, base_path=base_path)
        return self._first_observations(self._ids)

    def _advance(self, actions: FloatArray) -> Step:
        self._pool._send([self._ids, self._ids, actions])
        state = self._received()
        last_observation = self._flat(state, self.num_envs)
        reward = state[self._reward].astype(np.float32)
        truncated = state[self._trunc].copy()
        terminated = state[self._done] & ~truncated
        success = None if self._success is None else state[self._success] > 0.5
        if self._end_on_success:
            terminated |= success
            truncated &= ~terminated
        observation = last_observation
        if np.count_nonzero(terminated | truncated):
            ended = np.flatnonzero(terminated | truncated).astype(np.int32)
            observation = last_observation.copy()
            observation[ended] = self._first_observations(ended)
        return Step(observation, reward, terminated, truncated, last_observation, success)

    def close(self) -> None:
        """Let go of the pool; its threads end with it."""
        self._pool = self._steps = None

    def _first_observations(self, ids: npt.NDArray[np.int32]) -> FloatArray:
        self._pool._reset(ids)
        return self._flat(self._received(), len(ids))

    def _received(self) -> list[npt.NDArray[Any]]:
        """The raw state that was asked for; a pool can't say which of its environments hangs."""
        state: list[npt.NDArray[Any]] = watchdog.call(self.limit_s, self._all_hang, self._pool._recv)
        return state

    def _flat(self, state: list[npt.NDArray[Any]], rows: int) -> FloatArray:
        """The fields of a raw state side by side, in an array of our own."""
        if len(self._columns) == 1 and state[self._columns[0][0]].ndim == 2:
            return state[self._columns[0][0]].astype(np.float32)
        flat: FloatArray = np.empty((rows, self.spec.obs_dim), np.float32)
        for index, start, stop in self._columns:
            flat[:, start:stop] = state[index].reshape(rows, stop - start)
        return flat


def _pool_spec(name: str, env_id: str, limit: dict[str, int]) -> Any:
    known = envpool.list_all_envs()
    if env_id not in known:
        hint = nearest(env_id, known) or "envpool.list_all_envs() names them all"
        raise LowgearError(f"{name}: EnvPool has no environment {env_id!r}; {hint}")
    with blamed_on(name, "while it was made"):
        return envpool.make_spec(env_id, **limit)


def _goal_rule(pool_spec: Any) -> Distance | None:
    """The rule of environments that judge by distance alone: Fetch and the reaching hand, not hands that turn."""
    config = pool_spec.config
    kind = getattr(config, "reward_type", None)
    by_distance = hasattr(config, "distance_threshold") and getattr(config, "hand_task", "reach") == "reach"
    if kind not in ("sparse", "dense") or not by_distance:
        return None
    return Distance(float(config.distance_threshold), kind == "sparse")


def _bounds(name: str, pool_spec: Any) -> Any:
    actions = dict(pool_spec.action_array_spec)
    actions.pop("env_id")
    actions.pop("players.env_id")
    if len(actions) != 1 or pool_spec.config.max_num_players != 1:
        raise not_box(name, "action", sorted(actions))
    (action,) = actions.values()
    if action.is_discrete or not np.issubdtype(action.dtype, np.floating):
        raise not_box(name, "action", f"Discrete({int(np.max(action.maximum)) + 1})")
    shape = [size for size in action.shape if size != -1]  # -1 is the axis of players: one
    return action_bounds(name, action.minimum, action.maximum, shape, action.dtype)


def _observation_fields(name: str, env_id: str, pool_spec: Any) -> list[tuple[int, str, int]]:
    """(index in the raw state, key, size) of every field of the observation, in the order of the layout."""
    arrays = pool_spec.state_array_spec
    by_key = {}
    for index, raw_key in enumerate(pool_spec._state_keys):
        kind, _, key = raw_key.partition(":")
        if kind == "obs":
            shape = [size for size in arrays[raw_key].shape if size != -1]
            by_key[key] = (index, key, field_size(name, key, shape, arrays[raw_key].dtype))
    return [by_key[key] for key in DM_CONTROL_KEYS.get(env_id) or goals_last(list(by_key))]


def _columns(fields: Sequence[tuple[int, str, int]]) -> list[tuple[int, int, int]]:
    """(index in the raw state, first column, column after the last) of every field."""
    stops = np.cumsum([size for _, _, size in fields]).tolist()
    return [(index, stop - size, stop) for (index, _, size), stop in zip(fields, stops, strict=True)]
