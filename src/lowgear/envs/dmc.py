"""dm_control's suite as a batch, the reference that EnvPool's tasks are checked against.

A last step with discount 0 is a real end; any other last step is a time limit. Environments are built anew
from their seeds on reset, because some tasks draw their model from the seed too.
"""

import math
import warnings
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.envs.checked import CheckedEnv, blamed_on, check_num_envs
from lowgear.envs.protocol import Step
from lowgear.envs.spaces import ANY_LIMIT, action_bounds, env_spec, field_size, nearest
from lowgear.policy.arrays import FloatArray

try:
    with warnings.catch_warnings():
        # Its window toolkit complains where there is no display; nothing here opens a window.
        warnings.filterwarnings("ignore", message=".*DISPLAY environment variable.*")
        from dm_control import suite
except ImportError as error:
    raise LowgearError(f"dm_control cannot be imported ({error}): `pip install 'lowgear[dmc]'`") from error


class DmcEnv(CheckedEnv):
    """`num_envs` environments of dm_control's `domain-task`, stepped one after another."""

    def __init__(self, name: str, env_id: str, num_envs: int, max_episode_steps: int | None = None) -> None:
        check_num_envs(num_envs)
        self._name = name
        self._domain, self._task = _known_task(name, env_id)
        first = self._load(seed=0)
        actions = first.action_spec()
        bounds = action_bounds(name, actions.minimum, actions.maximum, actions.shape, actions.dtype)
        fields = first.observation_spec()
        layout = [(key, field_size(name, key, field.shape, field.dtype)) for key, field in fields.items()]
        own = math.ceil(first._step_limit) if math.isfinite(first._step_limit) else ANY_LIMIT
        self._limit = limit = max_episode_steps or own
        super().__init__(env_spec(name, bounds, layout, limit, has_success=False), bounds, num_envs)
        self._envs: list[Any] = []

    def _begin(self, seeds: list[int]) -> FloatArray:
        self._envs = [self._ask(number, self._load, seed) for number, seed in enumerate(seeds)]
        self._taken = np.zeros(self.num_envs, np.int64)  # steps of each episode
        return np.stack([self._first(number) for number in range(self.num_envs)])

    def _advance(self, actions: FloatArray) -> Step:
        observation: FloatArray = np.zeros((self.num_envs, self.spec.obs_dim), np.float32)
        reward: FloatArray = np.zeros(self.num_envs, np.float32)
        terminated, ended = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        self._taken += 1
        for number, (env, action) in enumerate(zip(self._envs, actions, strict=True)):
            step = self._ask(number, env.step, action) if env is not None else None
            if step is not None:
                observation[number], reward[number] = _flat(step), step.reward
                ended[number] = step.last() or self._taken[number] >= self._limit
                terminated[number] = ended[number] and step.discount == 0
        self._taken[ended] = 0
        last_observation = observation
        if ended.any():
            observation = last_observation.copy()
            for number in np.flatnonzero(ended).tolist():
                observation[number] = self._first(number)
        return Step(observation, reward, terminated, ended & ~terminated, last_observation, None)

    def _first(self, number: int) -> FloatArray:
        """The first observation of an episode."""
        env = self._envs[number]
        step = None if env is None else self._ask(number, env.reset)
        return np.zeros(self.spec.obs_dim, np.float32) if step is None else _flat(step)

    def close(self) -> None:
        """Free the simulations."""
        for env in self._envs:
            if env is not None:
                env.close()
        self._envs, self._steps = [], None

    def _load(self, seed: int) -> Any:
        with blamed_on(self._name, "while it was made"):
            return suite.load(self._domain, self._task, task_kwargs={"random": seed})


def _known_task(name: str, env_id: str) -> tuple[str, str]:
    known = {f"{domain}-{task}": (domain, task) for domain, task in suite.ALL_TASKS}
    if env_id not in known:
        hint = nearest(env_id, known) or f"for example {next(iter(known))}"
        raise LowgearError(f"{name}: dm_control has no task {env_id!r}; {hint}")
    return known[env_id]


def _flat(time_step: Any) -> FloatArray:
    """The fields of an observation side by side, in dm_control's own order."""
    return np.concatenate([np.ravel(field) for field in time_step.observation.values()], dtype=np.float32)
