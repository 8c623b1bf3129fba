"""The environment that a person gives an agent: a task's name, a Gymnasium environment, a function that makes one."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lowgear import LowgearError
from lowgear.config import gears, recipes, tasks
from lowgear.config.tasks import Task
from lowgear.envs.protocol import BatchEnv


class GivenEnv:
    """What was given, to train in and to evaluate in."""

    def __init__(self, env: Any, recipe: str, settings: dict[str, Any]) -> None:
        self.env, self._recipe, self._settings = env, recipe, settings
        self._batch: BatchEnv | None = None
        self.task = tasks.find(env) if isinstance(env, str) else self._named(self.batch)

    @property
    def batch(self) -> BatchEnv:
        """The environments to train in: those that were given, or new ones by name."""
        if self._batch is None:
            count = self._settings.get("environments", 1)
            self._batch = self.make(count) if isinstance(self.env, str) else self._wrap(self.env, count)
            if self._batch.num_envs != count:
                raise LowgearError(
                    f"a vector of {self._batch.num_envs} environments: say environments={self._batch.num_envs}"
                )
        return self._batch

    def sized(self, given: Sequence[gears.GivenGear] | None) -> Task:
        """The task with its sizes, where these gears need them to be put in order."""
        if self.task.obs_dim is not None or not gears.need_sizes(given):
            return self.task
        return replace(self.task, obs_dim=self.batch.spec.obs_dim, act_dim=self.batch.spec.act_dim)

    def make(self, count: int) -> BatchEnv:
        """New environments, which nobody else steps."""
        if isinstance(self.env, str):
            from lowgear import envs

            limit = self._settings.get("max_episode_steps")
            return envs.make(self.task, count, end_on_success=self._end_on_success, max_episode_steps=limit)
        return self._wrap(self._factory(), count)

    def travels(self) -> bool:
        """Whether a copy in another process can have it: names, classes and functions of modules."""
        if isinstance(self.env, str):
            return True
        if not callable(self.env):
            return False
        from lowgear.evaluation.apart import can_travel

        return can_travel(self.env)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_batch": None}

    @property
    def _end_on_success(self) -> bool:
        chosen = self._settings.get("end_on_success")
        name = self.env if isinstance(self.env, str) else ""
        return recipes.find(self._recipe, name).end_on_success if chosen is None else bool(chosen)

    def _wrap(self, env: Any, count: int) -> BatchEnv:
        from lowgear import envs

        return envs.wrap(env, count, end_on_success=self._end_on_success)

    def _factory(self) -> Callable[[], Any]:
        """Makes another environment like the one that was given."""
        import gymnasium

        env = self.env
        if isinstance(env, gymnasium.Env):
            if env.spec is not None:
                spec = env.spec
                return lambda: gymnasium.make(spec)
            try:
                copy.deepcopy(env)
            except Exception as error:  # whatever its own code raises
                raise LowgearError(
                    f"{type(env.unwrapped).__name__} cannot be copied ({error}), and the agent trains in it: pass "
                    "env=, a function that makes another"
                ) from error
            return lambda: copy.deepcopy(env)
        if callable(env):
            return lambda: env()
        raise LowgearError("the agent trains in a vector of environments: pass env=, a function that makes another")

    @staticmethod
    def _named(batch: BatchEnv) -> Task:
        return Task(name=batch.spec.name, source="gym", env_id=batch.spec.name)
