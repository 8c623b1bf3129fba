"""Gymnasium as a batch: any registered environment, and whatever a person passes in.

Environments are stepped one after another by gymnasium.vector in SAME_STEP mode, which resets within the step
that ends an episode and hands over the true last observation. A dict observation is laid out in its space's
own order; a goal environment's is observation, achieved_goal, desired_goal, as EnvPool's is.

Environments that are made here answer one by one (`Answering`), so that one that raises or hangs fails alone. A vector
that a person passes in fails as one.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from lowgear import LowgearError
from lowgear.envs import lines
from lowgear.envs.answering import Answering
from lowgear.envs.checked import CheckedEnv, blamed_on, check_num_envs
from lowgear.envs.goals import Asked
from lowgear.envs.protocol import Step
from lowgear.envs.spaces import (
    ANY_LIMIT,
    GOAL_KEYS,
    SUCCESS_KEYS,
    action_bounds,
    env_spec,
    field_size,
    goals_last,
    not_box,
)
from lowgear.policy.arrays import BoolArray, FloatArray
from lowgear.policy.controller import ActionBounds

Factory = Callable[[], Any]


class GymEnv(CheckedEnv):
    """A VectorEnv in SAME_STEP mode, behind the protocol."""

    def __init__(self, name: str, vector: VectorEnv[Any, Any, Any]) -> None:
        mode = vector.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise LowgearError(
                f"{name} is a vector with autoreset mode {getattr(mode, 'name', mode)}, whose reset steps "
                "are no transitions: make it with autoreset_mode=AutoresetMode.SAME_STEP, or pass a factory"
            )
        self._vector = vector
        bounds = _bounds(name, vector.single_action_space)
        self._fields = _fields(name, vector.single_observation_space)
        layout = [(".".join(path), size) for path, size in self._fields]
        has_success = has_goals(vector.single_observation_space)  # infos have no space of their own
        spec = env_spec(name, bounds, layout, _time_limit(vector), has_success)
        super().__init__(spec, bounds, vector.num_envs)
        self.goal_rule = _goal_rule(name, vector) if spec.desired_goal is not None else None
        for number, env in enumerate(getattr(vector, "envs", ())):
            if isinstance(env, Answering):
                env.ask = partial(self._ask, number)
                self._own_file = lines.file_of(env.unwrapped)

    def _begin(self, seeds: Any) -> FloatArray:  # VectorEnv's annotation forgets the list
        return self._flat(self._vector.reset(seed=seeds)[0], self.num_envs)

    def _advance(self, actions: FloatArray) -> Step:
        raw, rewards, terminated, truncated, infos = self._vector.step(actions)
        observation = last_observation = self._flat(raw, self.num_envs)
        ended = np.flatnonzero(terminated | truncated)
        if len(ended):
            last_observation = observation.copy()
            for i in ended.tolist():
                last_observation[i] = self._flat(infos["final_obs"][i], 1)[0]
        reward = np.asarray(rewards).astype(np.float32)
        success = self._success(infos, ended) if self.spec.has_success else None
        return Step(observation, reward, terminated.copy(), truncated & ~terminated, last_observation, success)

    def close(self) -> None:
        """Close the environments."""
        self._vector.close()

    def _flat(self, raw: Any, rows: int) -> FloatArray:
        """The fields side by side."""
        fields = []
        for path, size in self._fields:
            value = reduce(lambda inside, key: inside[key] if key else inside, path, raw)
            fields.append(np.asarray(value).reshape(rows, size))
        return np.concatenate(fields, axis=1, dtype=np.float32)

    def _success(self, infos: dict[str, Any], ended: npt.NDArray[np.intp]) -> BoolArray:
        """Success of the step just taken: after an end it is in the info of the episode that ended."""
        success: BoolArray = np.zeros(self.num_envs, np.bool_)
        final = infos.get("final_info", {})
        key = next((key for key in SUCCESS_KEYS if key in infos or key in final), None)
        if key is None and len(self.retired) == self.num_envs:
            return success
        if key is None:
            raise LowgearError(f"{self.spec.name} has goals but its info has no 'is_success': add it in step()")
        if key in infos:
            success[:] = np.asarray(infos[key], np.bool_)
        if key in final:
            success[ended] = np.asarray(final[key], np.bool_)[ended]
        return success


def wrap(env: Any, num_envs: int, end_on_success: bool) -> GymEnv:
    """What a person passed in, named after what it is."""
    if isinstance(env, VectorEnv):
        if end_on_success and has_goals(env.single_observation_space):
            raise LowgearError("a vector of environments ends its own episodes: pass a function that makes one")
        if num_envs not in (1, env.num_envs):
            raise LowgearError(f"a vector of {env.num_envs} environments cannot be {num_envs}; leave num_envs out")
        return GymEnv(_name(env), env)
    if isinstance(env, gymnasium.Env):
        if num_envs != 1:
            raise LowgearError(f"one environment cannot be {num_envs}; pass a function that makes a new one each time")
        return _batch(_name(env), [lambda: env], end_on_success)
    if not callable(env):
        raise LowgearError(
            f"{type(env).__name__} is no environment: pass a gymnasium.Env, a function that makes one, "
            "or a gymnasium.vector.VectorEnv"
        )
    check_num_envs(num_envs)
    with blamed_on("the environment's factory", "when called"):
        first = env()
    if not isinstance(first, gymnasium.Env):
        raise LowgearError(f"the factory made a {type(first).__name__}; it must make a gymnasium.Env")
    return _batch(_name(first), [lambda: first, *[env] * (num_envs - 1)], end_on_success)


def registered(
    name: str, env_id: str, num_envs: int, end_on_success: bool, max_episode_steps: int | None = None
) -> GymEnv:
    """`num_envs` of the registered environment `env_id`."""

    def limited() -> gymnasium.Env[Any, Any]:
        env = _make(name, env_id, max_episode_steps)
        has_limit = env.has_wrapper_attr("_max_episode_steps")
        return env if has_limit else gymnasium.wrappers.TimeLimit(env, max_episode_steps or ANY_LIMIT)

    return _batch(name, [limited] * check_num_envs(num_envs), end_on_success)


def has_goals(space: gymnasium.Space[Any]) -> bool:
    """Whether observations of `space` are a goal environment's, the only ones known to say when they succeeded."""
    return isinstance(space, gymnasium.spaces.Dict) and goals_last(list(space.spaces)) == list(GOAL_KEYS)


class EndOnSuccess(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends an episode for real once its info says that it succeeded."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        success = any(bool(info.get(key, False)) for key in SUCCESS_KEYS)
        return observation, reward, terminated or success, truncated and not success, info


def _batch(name: str, factories: Sequence[Factory], end_on_success: bool) -> GymEnv:
    """One environment from each factory; their episodes end on success if so wanted and if they have goals."""

    def answering(factory: Factory) -> gymnasium.Env[Any, Any]:
        env = factory()
        _bounds(name, env.action_space)  # which Gymnasium would refuse in other words
        return Answering(EndOnSuccess(env) if end_on_success and has_goals(env.observation_space) else env)

    with blamed_on(name, "while it was made"):
        made = [partial(answering, factory) for factory in factories]
        vector = SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
    return GymEnv(name, vector)


def _bounds(name: str, actions: gymnasium.Space[Any]) -> ActionBounds:
    if not isinstance(actions, gymnasium.spaces.Box):
        raise not_box(name, "action", actions)
    return action_bounds(name, actions.low, actions.high, actions.shape, actions.dtype)


def _make(name: str, env_id: str, limit: int | None) -> gymnasium.Env[Any, Any]:
    """One registered environment; gymnasium_robotics is loaded only for an id that nothing else knows."""
    try:
        try:
            return gymnasium.make(env_id, limit, disable_env_checker=True)
        except gymnasium.error.UnregisteredEnv:
            if importlib.util.find_spec("gymnasium_robotics") is None:
                raise
            import gymnasium_robotics

            gymnasium.register_envs(gymnasium_robotics)
            return gymnasium.make(env_id, limit, disable_env_checker=True)
    except gymnasium.error.UnregisteredEnv as error:
        raise LowgearError(
            f"{name}: Gymnasium knows no {env_id!r} ({error}): check the spelling, or install its package"
        ) from error
    except Exception as error:
        with blamed_on(name, "while it was made", _remedy(error)):
            raise


def _remedy(error: Exception) -> str:
    """For an environment that could not be made."""
    if isinstance(error, gymnasium.error.DependencyNotInstalled | ImportError):
        return "; `pip install 'lowgear[gym]'` brings MuJoCo, Box2D and gymnasium-robotics"
    if isinstance(error, AssertionError) and "gymnasium_robotics" in sys.modules:
        # gymnasium-robotics 1.4.2 compares MuJoCo's enums in a way that mujoco 3.12 and later deny.
        return "; Fetch and Hand need `pip install 'mujoco<3.12'`, or take EnvPool's: envpool:FetchReach-v1"
    return ""


def _fields(name: str, space: gymnasium.Space[Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], int]]:
    """(path of keys, size) of every Box within `space`; a lone Box has the empty key."""
    if isinstance(space, gymnasium.spaces.Dict):
        keys = goals_last(list(space.spaces))
        return [field for key in keys for field in _fields(name, space.spaces[key], (*path, key))]
    if not isinstance(space, gymnasium.spaces.Box):
        raise not_box(name, "observation", space)
    path = path or ("",)
    return [(path, field_size(name, ".".join(path), space.shape, space.dtype))]


def _goal_rule(name: str, vector: Any) -> Asked | None:
    """The rule of a goal environment, asked of the first one in the vector."""
    first = next(iter(getattr(vector, "envs", ())), None)
    if first is None or not hasattr(first.unwrapped, "compute_reward"):
        return None
    return Asked(name, first.unwrapped)


def _name(env: Any) -> str:
    if hasattr(env.spec, "id"):  # a pool of EnvPool has a spec of another kind
        return f"gym:{env.spec.id}"
    inner = env.envs[0] if getattr(env, "envs", None) else env
    return type(inner.unwrapped).__name__


def _time_limit(vector: Any) -> int | None:
    """The time limit of the registered id, or of a TimeLimit wrapper put on by hand."""
    for env in (vector, *getattr(vector, "envs", ())[:1]):
        if env.spec is not None and env.spec.max_episode_steps is not None:
            return int(env.spec.max_episode_steps)
        if isinstance(env, gymnasium.Env) and env.has_wrapper_attr("_max_episode_steps"):
            return int(env.get_wrapper_attr("_max_episode_steps"))
    return None
