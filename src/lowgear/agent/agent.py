"""`Agent` learns, predicts, saves and loads, with the signatures of Stable-Baselines3."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.agent.given import GivenEnv
from lowgear.agent.observations import as_rows
from lowgear.agent.recorder import Recorder
from lowgear.agent.trainable import Trainable
from lowgear.agent.wording import python_words
from lowgear.config.gears import GivenGear
from lowgear.config.policy_file import open_run
from lowgear.config.run import RunConfig, resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.controller import Controller, chooser, readable
from lowgear.policy.fields import shown
from lowgear.policy.file import Policy

if TYPE_CHECKING:
    from lowgear.training.open_ended import OpenEnded

Array = npt.NDArray[Any]
State = tuple[Array, ...]
MakeEnv = Callable[[int], BatchEnv]


class Agent:
    """One master with its gears.

    `env` is a task's name (`walker-stand`, `gym:Pendulum-v1`), a Gymnasium environment, or a function that makes one.
    `gears` are widths of two hidden layers (8), of several ("64x64x64"), "hold" (the last action again) or policy files
    ("large.safetensors", frozen): `gears=("hold", 8, 64)`, in any order. `cost_coefficient` is one price of compute in
    the task's rewards, or the two ends of a dial; without it the modern recipe has a dial measured against the rewards,
    whose scale is found while training. Further keywords are settings of the recipe: `Agent(env, batch=128)`.
    """

    @python_words()
    def __init__(
        self,
        env: Any,
        *,
        seed: int = 0,
        gears: Sequence[GivenGear] | None = None,
        cost_coefficient: float | Sequence[float] | None = None,
        variant: str = "asymmetric",
        recipe: str = "modern",
        **settings: Any,
    ) -> None:
        given = GivenEnv(env, recipe, settings)
        config = resolve(  # a bad option is an error here, not after the first hours
            given.sized(gears),
            recipe,
            steps=1,
            seeds=(seed,),
            variants=(variant,),
            cost_coefficients=_listed(cost_coefficient),
            gears=gears,
            overrides=settings,
            evaluate_every=0,
        )
        self._begin(Trainable(config, given), seed)

    def _begin(self, trainable: Trainable | None, seed: int) -> None:
        self._trainable = trainable  # None: a controller alone
        self._policy: Policy | None = None
        self._setting: float | None = None  # of the dial, by hand
        self._generator = np.random.default_rng(seed)
        self._counted_from = 0
        self._make_env: MakeEnv | None = None  # of a controller alone
        self.total_steps = 0  # since it began to learn
        self.history: list[dict[str, Any]] = []  # log lines, of training and evaluation
        self.logger = Recorder()  # takes `record(key, value)`, which joins the next line of `history`

    @property
    def policy(self) -> Policy:
        """The controller as it stands."""
        if self._policy is None:
            raise LowgearError("this agent has not learned yet: call learn(total_timesteps) or lowgear.load(path)")
        return self._policy

    @property
    def is_trained(self) -> bool:
        """Whether it has a controller."""
        return self._policy is not None

    @property
    def can_learn(self) -> bool:
        """Whether it has what learning needs: a controller from a policy file has not."""
        return self._trainable is not None

    @property
    def num_timesteps(self) -> int:
        """Steps that were taken since `learn` last began to count; `total_steps` counts all."""
        return self.total_steps - self._counted_from

    @property
    def n_envs(self) -> int:
        """Environments that it trains in."""
        return 1 if self._trainable is None else self._trainable.config.recipe.environments

    @python_words()
    def learn(
        self,
        total_timesteps: float,
        callback: Any = None,
        log_interval: int | None = None,
        *,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> "Agent":
        """Train for `total_timesteps` steps more: networks, replay buffer and open episodes go on where they were.

        `reset_num_timesteps` starts the count anew, `num_timesteps`, and nothing else. `callback` is a function of a
        log line, a `lowgear.Callback`, one of Stable-Baselines3, or a list of them; False ends the training there.
        A line is logged after `log_interval` episodes, or every thousand steps or so without it.

        Ctrl-C ends it after the chunk under way and raises KeyboardInterrupt; a second one does at once. Whatever ends
        it, what was learned is kept: the agent predicts, saves and learns on.
        """
        from lowgear.agent.callbacks import as_callbacks, together
        from lowgear.training.signals import stops

        steps = _steps(total_timesteps)
        if log_interval is not None and (type(log_interval) is not int or log_interval < 1):
            raise LowgearError(f"log_interval={shown(log_interval)}: write a number of episodes, 1 or more")
        callbacks = as_callbacks(callback)
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        training: OpenEnded | None = None

        def stop() -> None:
            if training is not None:
                training.stop()

        # Also while JAX is imported and networks are made, where what Ctrl-C raises could be lost.
        with stops(stop, numbers=(signal.SIGINT,) if usual else ()) as heard:
            training = self._may_learn.open(steps, self.total_steps)
            self.total_steps = training.collector.steps
            if reset_num_timesteps:
                self._counted_from = self.total_steps
            try:
                with together(self, callbacks, steps if progress_bar else None) as listeners:
                    if heard.number is None:
                        training.go_on(steps, listeners, log_interval)
                        self.take_policy()
            except BaseException:
                self._may_learn.rescue()
                if training.collector.steps:
                    self._take(training)
                raise
            finally:
                self.total_steps = training.collector.steps
        if heard.number is not None:
            raise KeyboardInterrupt
        return self

    def take_policy(self) -> None:
        """Act as the training stands."""
        if self._trainable is not None and self._trainable.training is not None:
            self._take(self._trainable.training)

    def _take(self, training: "OpenEnded") -> None:
        """The dial stays where it was set by hand, if it still reaches there."""
        policy = training.policy(0)
        dial = policy.header.dial
        if self._setting is not None and dial is not None and policy.turns and dial.holds(self._setting):
            policy = policy.at(self._setting)
        self._policy = policy

    @property
    def cost_coefficient(self) -> float:
        """The price of compute that the master goes by; on a dial agent it can be set at any time."""
        return self.policy.header.cost_coefficient

    @cost_coefficient.setter
    def cost_coefficient(self, value: float) -> None:
        self._policy = self.policy.at(value)
        self._setting = float(value)

    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Array | None = None,
        deterministic: bool = True,
        master: str | None = None,
    ) -> tuple[Array, State]:
        """Actions in the environment's own bounds, and the state to pass on at the next step.

        `state` carries each environment's pick, how many steps it has held and, where a gear holds the last action,
        that action; `episode_start` says which environments begin an episode. With `deterministic=False` the gear's
        action is sampled. The master is greedy unless the task is one where the paper samples it; `master` ("greedy",
        "boltzmann") settles it.
        """
        policy = self.policy
        choose = chooser(master or policy.header.master, self._generator)
        flat, single = as_rows(observation, policy.header)
        flat = readable(flat)
        controller = Controller.from_policies([policy], len(flat))
        if state is not None:
            controller.choice, controller.age = (np.array(part, np.int32)[None] for part in state[:2])
            if controller.fresh is not None:
                controller.last_action, controller.fresh = _before(state, policy)
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
        return (action[0] if single else action), _after(controller)

    @python_words()
    def save(self, path: str | Path) -> None:
        """Write the controller to a safetensors file: all that predicting needs, and nothing that runs code."""
        if Path(path).is_dir():
            raise LowgearError(f"{path} is a directory: name a file, or write a run to learn on from with save_run")
        self.policy.save(path)

    @python_words()
    def save_run(self, directory: str | Path) -> None:
        """Write a run directory: the controller, the log, and all that `lowgear.load(directory)` learns on from."""
        from lowgear.agent.saving import save_run

        latest = self._may_learn.latest()
        if latest is None:
            raise LowgearError("nothing was learned since this agent was loaded: copy the directory it came from")
        save_run(Path(directory), self.policy, self.config, latest, self.history)

    @classmethod
    @python_words()
    def load(cls, path: str | Path, env: Any = None, *, agent: int = 0, trust: bool = False) -> "Agent":
        """A controller from a policy file or a run directory: it predicts at once and needs no environment.

        From a run directory, that of `save_run` or of `lowgear train`, agent number `agent` can learn on, in `env` or
        in the environment that the run names. `trust`: its task may import a Python module.
        """
        found, run = cls.__new__(cls), open_run(path, trust)
        config = run.read_config(environment=False)
        if not 0 <= agent < len(config.agents):
            raise LowgearError(f"agent={agent}: {path} has agents 0 to {len(config.agents) - 1}")
        policy = run.load_policy(config, agent)
        own, is_file = replace(config, agents=(config.agents[agent],), evaluate_every=0), run.path.is_file()
        found._begin(None if is_file else Trainable(own, run=(run, config, agent)), policy.header.seed)
        found._policy, found.total_steps = policy, policy.header.steps
        found._make_env = partial(_made, run) if is_file else None
        if env is not None:
            found.set_env(env)
        return found

    @python_words()
    def set_env(self, env: Any) -> None:
        """Learn on in another environment, of the same sizes: open episodes end."""
        if self._trainable is None:
            self._make_env = GivenEnv(env, self.policy.header.recipe, {}).make
        else:
            self._trainable.move(env, None if self._policy is None else self._policy.header)

    def get_env(self) -> Any:
        """The environment that was given."""
        return self._trainable.given.env if self._trainable is not None and self._trainable.has_env else None

    def get_vec_normalize_env(self) -> None:
        """None, for callbacks of Stable-Baselines3: observations are normalised by the agent itself."""

    def make_envs(self, env: Any = None) -> MakeEnv:
        """Makes new environments to evaluate in: like the agent's own, or as `env` says, a name or a function."""
        if env is not None:
            return GivenEnv(env, self.policy.header.recipe, {}).make
        if self._trainable is not None:
            return self._trainable.given.make
        assert self._make_env is not None
        return self._make_env

    @property
    def config(self) -> RunConfig:
        """What defines its training."""
        config = self._may_learn.config
        return replace(config, steps=max(config.recipe.chunk, self.total_steps))

    @property
    def _may_learn(self) -> Trainable:
        if self._trainable is None:
            raise LowgearError(
                "a policy file holds what acts, not the critics and the replay buffer that learning needs: "
                "lowgear.load a run directory, of save_run or `lowgear train`, or make a new Agent"
            )
        return self._trainable

    def __repr__(self) -> str:
        if self._policy is None:
            return f"Agent({self.config.task!r}, not trained yet)"
        header = self._policy.header
        return f"Agent({header.task!r}, gears={header.gears}, {header.steps:,} steps)"

    def _repr_html_(self) -> str:
        from lowgear.agent.notebook import as_html

        return as_html(self)


def _before(state: State, policy: Policy) -> tuple[Array, Array]:
    """The last actions, and where there are none yet, of a state that `predict` gave."""
    if len(state) != 4 or np.shape(state[2]) != (len(state[0]), policy.header.act_dim):
        raise LowgearError("state is of another policy: this one has a gear that holds the last action")
    return np.array(state[2], np.float32)[None], np.array(state[3], np.bool_)[None]


def _after(controller: Controller) -> State:
    """What the next step of one agent needs."""
    found: State = controller.choice[0], controller.age[0]
    if controller.last_action is None or controller.fresh is None:
        return found
    return *found, controller.last_action[0], controller.fresh[0]


def _listed(coefficient: float | Sequence[float] | None) -> Sequence[float] | None:
    return coefficient if coefficient is None or isinstance(coefficient, Sequence) else (coefficient,)


def _steps(total_timesteps: float) -> int:
    """A whole number, also as 1e5."""
    try:
        steps = int(total_timesteps)
    except (TypeError, ValueError, OverflowError):
        steps = 0
    if steps < 1 or isinstance(total_timesteps, bool | str) or steps != total_timesteps:
        raise LowgearError(f"total_timesteps={shown(total_timesteps)}: write a whole number, 1 or more: 1e5")
    return steps


def _made(run: RunDirectory, count: int) -> BatchEnv:
    """Environments of a policy file's task."""
    from lowgear.envs import make_env

    return make_env(run.read_config(), count)
