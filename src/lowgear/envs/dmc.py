"""dm_control's suite as a batch, the reference that EnvPool's tasks are checked against.

A last step with discount 0 is a real end; any other last step is a time limit. Environments are built anew
from their seeds on reset, because some tasks draw their model from the seed too.
"""

import difflib
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.envs.goals import GoalRule
from lowgear.envs.protocol import Step
from lowgear.envs.spaces import (
    action_bounds,
    all_finite,
    check_num_envs,
    check_seeds,
    check_shape,
    env_spec,
    field_size,
    not_finite,
    raised,
)
from lowgear.policy.arrays import BoolArray, FloatArray

try:
    with warnings.catch_warnings():
        # Its window toolkit complains where there is no display; nothing here opens a window.
        warnings.filterwarnings("ignore", message=".*DISPLAY environment variable.*")
        from dm_control import suite
except ImportError as error:
    raise LowgearError(f"dm_control cannot be imported ({error}): `pip install 'lowgear[dmc]'`") from error


class DmcEnv:
    """`num_envs` environments of dm_control's `domain-task`, stepped one after another."""

    def __init__(self, name: str, env_id: str, num_envs: int) -> None:
        self.num_envs = check_num_envs(num_envs)
        self._name = name
        self._domain, self._task = _known_task(name, env_id)
        first = self._load(seed=0)
        actions = first.action_spec()
        self._bounds = action_bounds(name, actions.minimum, actions.maximum, actions.shape, actions.dtype)
        fields = first.observation_spec()
        self.spec = env_spec(
            name=name,
            bounds=self._bounds,
            layout=[(key, field_size(name, key, field.shape, field.dtype)) for key, field in fields.items()],
            max_episode_steps=math.ceil(first._step_limit) if math.isfinite(first._step_limit) else None,
            has_success=False,
        )
        self.goal_rule: GoalRule | None = None
        self._envs: list[Any] = []
        self._steps = 0

    def reset(self, seeds: Sequence[int]) -> FloatArray:
        """Load every environment with its own seed and return the first observations."""
        self._envs = [self._load(seed) for seed in check_seeds(seeds, self.num_envs)]
        self._steps = 0
        observation: FloatArray = np.stack([self._first_observation(env) for env in self._envs])
        if not all_finite(observation):
            raise not_finite(self.spec, 0, observation, None, None)
        return observation

    def step(self, actions: FloatArray) -> Step:
        """Step all environments in turn."""
        if not self._envs:
            raise LowgearError(f"{self._name} was stepped before it was reset; call reset(seeds) first")
        check_shape(self.spec, actions, self.num_envs)
        self._steps += 1
        last_observation: FloatArray = np.empty((self.num_envs, self.spec.obs_dim), np.float32)
        reward: FloatArray = np.empty(self.num_envs, np.float32)
        terminated: BoolArray = np.zeros(self.num_envs, np.bool_)
        truncated: BoolArray = np.zeros(self.num_envs, np.bool_)
        for i, action in enumerate(self._bounds.scale(actions)):
            try:
                time_step = self._envs[i].step(action)
            except Exception as error:
                raise raised(self._name, f"at step {self._steps}", error) from error
            last_observation[i] = _flat(time_step.observation)
            reward[i] = time_step.reward
            if time_step.last():
                terminated[i] = time_step.discount == 0
                truncated[i] = not terminated[i]
        if not (all_finite(last_observation) and all_finite(reward)):
            raise not_finite(self.spec, self._steps, last_observation, reward, actions)
        observation = last_observation.copy()
        for i in np.flatnonzero(terminated | truncated).tolist():
            observation[i] = self._first_observation(self._envs[i])
        return Step(observation, reward, terminated, truncated, last_observation, None)

    def close(self) -> None:
        """Free the simulations."""
        for env in self._envs:
            env.close()
        self._envs = []

    def _load(self, seed: int) -> Any:
        try:
            return suite.load(self._domain, self._task, task_kwargs={"random": seed})
        except Exception as error:
            raise raised(self._name, "while it was made", error) from error

    def _first_observation(self, env: Any) -> FloatArray:
        try:
            return _flat(env.reset().observation)
        except Exception as error:
            raise raised(self._name, "on reset", error) from error


def _known_task(name: str, env_id: str) -> tuple[str, str]:
    known = {f"{domain}-{task}": (domain, task) for domain, task in suite.ALL_TASKS}
    if env_id in known:
        return known[env_id]
    near = difflib.get_close_matches(env_id, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"for example {next(iter(known))}"
    raise LowgearError(f"{name}: dm_control has no task {env_id!r}; {hint}")


def _flat(observation: dict[str, Any]) -> FloatArray:
    """The fields side by side, in dm_control's own order."""
    return np.concatenate([np.ravel(field) for field in observation.values()], dtype=np.float32)
