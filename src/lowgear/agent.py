"""The Python face: `Agent` learns, predicts, saves and loads, with the signatures of Stable-Baselines3."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.config import tasks
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import Task
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.controller import Controller, chooser, readable
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.file import load as load_policy
from lowgear.training.progress import Listener

Array = npt.NDArray[Any]
State = tuple[Array, ...]
Callback = Callable[[dict[str, Any]], bool | None]


class Agent:
    """One master with its gears.

    `env` is a task's name (`walker-stand`, `gym:Pendulum-v1`) or a Gymnasium environment. `gears` are widths, cheapest
    first. `cost_coefficient` is one price of compute in the task's rewards, or the two ends of a dial; without it the
    modern recipe has a dial measured against the rewards, whose scale is found while training. Further keywords are
    settings of the recipe: `Agent(env, batch=128)`.
    """

    def __init__(
        self,
        env: Any,
        *,
        seed: int = 0,
        gears: Sequence[int] | None = None,
        cost_coefficient: float | Sequence[float] | None = None,
        variant: str = "asymmetric",
        recipe: str = "modern",
        **settings: Any,
    ) -> None:
        self._task: Task | None
        self._env: BatchEnv | None
        count = settings.get("environments", 1)
        self._task, self._env = _environment(env, count, recipe, settings.get("end_on_success"))
        self._options: dict[str, Any] = {
            "recipe": recipe,
            "seeds": (seed,),
            "gears": gears,
            "cost_coefficients": _listed(cost_coefficient),
            "variants": (variant,),
            "overrides": settings,
        }
        self._policy: Policy | None = None
        self._generator = np.random.default_rng(seed)
        self._config(1)  # a bad option is an error here, not after the first hours

    @property
    def policy(self) -> Policy:
        """The controller as it stands."""
        if self._policy is None:
            raise LowgearError("this agent has not learned yet: call learn(total_timesteps) or lowgear.load(path)")
        return self._policy

    def learn(self, total_timesteps: int, callback: Callback | None = None, progress_bar: bool = False) -> "Agent":
        """Train for `total_timesteps` steps from scratch.

        `callback` is called with a dict at each log interval; if it returns False, training ends there.
        """
        from lowgear.training.loop import Training
        from lowgear.training.progress import Display

        config = self._config(total_timesteps)
        assert self._env is not None
        training = Training(config, self._env, None)
        listeners: list[Any] = [_Calls(callback)] if callback else []
        display = Display(config.steps) if progress_bar else None
        try:
            training.run([*listeners, display] if display else listeners)
            self._policy = training.policy(0)
        finally:
            if display:
                display.close()
            training.learner.close()
        return self

    @property
    def cost_coefficient(self) -> float:
        """The price of compute that the master goes by; on a dial agent it can be set at any time."""
        return self.policy.header.cost_coefficient

    @cost_coefficient.setter
    def cost_coefficient(self, value: float) -> None:
        self._policy = self.policy.at(value)

    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Array | None = None,
        deterministic: bool = True,
        master: str | None = None,
    ) -> tuple[Array, State]:
        """Actions in the environment's own bounds, and the state to pass on at the next step.

        `state` carries each environment's pick and how many steps it has held; `episode_start` says which
        environments begin an episode. With `deterministic=False` the gear's action is sampled. The master is greedy
        unless the task is one where the paper samples it; `master` ("greedy", "boltzmann") settles it.
        """
        policy = self.policy
        choose = chooser(master or policy.header.master, self._generator)
        flat, single = _flat(observation, policy.header)
        flat = readable(flat)
        controller = Controller.from_policies([policy], len(flat))
        if state is not None:
            controller.choice, controller.age = (np.array(part, np.int32)[None] for part in state)
        if controller.choice.shape != (1, len(flat)):
            raise LowgearError(
                f"state is for {controller.choice.shape[1]} environments but the observation for {len(flat)}"
            )
        if episode_start is not None:
            controller.begin(np.asarray(episode_start, bool).reshape(1, -1))
        controller.pick(flat[None], choose)
        noise = None
        if not deterministic:
            noise = self._generator.standard_normal((1, len(flat), policy.header.act_dim), np.float32)
        action = policy.bounds.scale(controller.act(flat[None], noise)[0])
        controller.advance(np.zeros((1, len(flat)), bool))
        return (action[0] if single else action), (controller.choice[0], controller.age[0])

    def save(self, path: str | Path) -> None:
        """Write the controller to a safetensors file."""
        self.policy.save(path)

    @classmethod
    def load(cls, path: str | Path) -> "Agent":
        """A controller from a file: it predicts at once and needs no environment."""
        agent = cls.__new__(cls)
        agent._policy = load_policy(path)
        agent._task, agent._env, agent._options = None, None, {}
        agent._generator = np.random.default_rng(agent.policy.header.seed)
        return agent

    def _config(self, steps: int) -> RunConfig:
        if self._task is None:
            raise LowgearError("a loaded controller cannot learn on: make a new Agent with the environment's name")
        config = resolve(self._task, steps=steps, evaluate_every=0, **self._options)
        return replace(config, log_every=min(config.log_every, config.steps))


class _Calls(Listener):
    """Turns a function into a listener."""

    def __init__(self, callback: Callback) -> None:
        self._callback, self._go_on = callback, True

    def on_log(self, lines: list[dict[str, Any]]) -> None:
        self._go_on = self._callback(lines[0]) is not False

    def on_steps(self, steps: int) -> bool:  # noqa: ARG002
        return self._go_on


def _listed(coefficient: float | Sequence[float] | None) -> Sequence[float] | None:
    if coefficient is None or isinstance(coefficient, Sequence):
        return coefficient
    return (coefficient,)


def _environment(env: Any, count: int, recipe: str, end_on_success: bool | None) -> tuple[Task, BatchEnv]:
    from lowgear import envs
    from lowgear.config import recipes

    if isinstance(env, str):
        task = tasks.find(env)
        ends = recipes.find(recipe, task.name).end_on_success if end_on_success is None else end_on_success
        return task, envs.make(task, count, end_on_success=ends)
    ends = recipes.find(recipe, "").end_on_success if end_on_success is None else end_on_success
    batch = envs.wrap(env, count, end_on_success=ends)
    if batch.num_envs != count:
        raise LowgearError(f"a vector of {batch.num_envs} environments: say environments={batch.num_envs}")
    return Task(name=batch.spec.name, source="gym", env_id=batch.spec.name), batch


def _flat(observation: Any, header: PolicyHeader) -> tuple[npt.NDArray[np.float32], bool]:
    """The observation as (N, obs) rows, and whether it was a single one."""
    if isinstance(observation, Mapping):
        missing = [key for key, _ in header.layout if key not in observation]
        if missing:
            raise LowgearError(f"the observation has no {missing[0]!r}; the policy was trained on {header.layout}")
        parts = [np.asarray(observation[key], np.float32) for key, _ in header.layout]
        single = parts[0].ndim == 1
        rows = np.concatenate(
            [
                part.reshape(1 if single else len(parts[0]), size)
                for part, (_, size) in zip(parts, header.layout, strict=True)
            ],
            axis=1,
        )
    else:
        rows = np.asarray(observation, np.float32)
        single = rows.ndim == 1
        rows = rows[None] if single else rows
    if rows.shape[1:] != (header.obs_dim,):
        raise LowgearError(f"an observation of shape {rows.shape[1:]}; this policy was trained on ({header.obs_dim},)")
    return rows, single
