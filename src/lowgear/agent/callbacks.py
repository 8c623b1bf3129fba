"""Callbacks of `Agent.learn`, in the manner of Stable-Baselines3: evaluate, checkpoint, track, stop, or one's own."""

import inspect
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.evaluation.evaluate import play_policies, summarise
from lowgear.policy.fields import shown
from lowgear.training.progress import Display, Listener, LogLine
from lowgear.training.provenance import provenance
from lowgear.training.trackers import choice, tracking
from lowgear.training.trackers.protocol import TrackedRun

if TYPE_CHECKING:
    from lowgear.agent.agent import Agent

EVALUATION_SEED = 20_000  # that of `lowgear train`


class Callback(Listener):
    """Hears how `agent` learns: override what you want to know; `on_steps` ends the training by returning False."""

    agent: "Agent"
    tell: Callable[[list[LogLine]], None]  # every callback of an evaluation

    def on_start(self) -> None:
        """Before the first step."""

    def on_end(self) -> None:
        """After the last, however it ended."""


class Evaluation(Callback):
    """Every so many steps, play episodes with the controller as it stands.

    They are played in new environments like the agent's own, or in `env`. `best` is a file for the controller that
    scored best, by return minus what its master paid.
    """

    def __init__(
        self, every: int = 10_000, episodes: int = 10, env: Any = None, best: str | Path | None = None
    ) -> None:
        self._every, self._episodes, self._env, self._best = _positive("every", every), episodes, env, best
        _positive("episodes", episodes)
        self.best_score, self._next = -math.inf, 0

    def on_start(self) -> None:
        """The first is due after so many steps from here."""
        self._next = self.agent.total_steps + self._every

    def on_steps(self, steps: int) -> None:
        """Evaluate where it is due."""
        if steps < self._next:
            return
        self._next = steps + self._every
        policy = self.agent.policy
        make_env = self.agent.make_envs(self._env)
        played = play_policies([policy], make_env, self._episodes, policy.header.master, EVALUATION_SEED)
        cost, coefficient = policy.header.cost, policy.header.cost_coefficient
        score = float(cost.score(played.returns[0], coefficient, played.gear_steps[0], played.picks[0]).mean())
        if score > self.best_score:
            self.best_score = score
            if self._best is not None:
                policy.save(self._best)
        line = {"kind": "evaluation", "steps": steps, "agent": 0, "variant": policy.header.variant}
        line |= {"cost_coefficient": coefficient, "relative_coefficient": policy.header.relative_coefficient}
        self.tell([line | summarise(played, 0, cost)])


class Checkpoint(Callback):
    """Every so many steps, save the controller as DIRECTORY/NAME_STEPS_steps.safetensors.

    With `whole`, save all that learning needs, as the directory NAME_STEPS_steps: `lowgear.load` it to learn on.
    """

    def __init__(self, every: int, directory: str | Path, name: str = "agent", whole: bool = False) -> None:
        self._every, self._directory, self._name, self._whole = _positive("every", every), Path(directory), name, whole
        self._next = 0

    def on_start(self) -> None:
        """The first is due after so many steps from here."""
        self._next = self.agent.total_steps + self._every

    def on_steps(self, steps: int) -> None:
        """Save where it is due."""
        if steps < self._next:
            return
        self._next = steps + self._every
        path = self._directory / f"{self._name}_{steps}_steps"
        if self._whole:
            self.agent.save_run(path)
        else:
            self._directory.mkdir(parents=True, exist_ok=True)
            self.agent.save(path.with_name(path.name + ".safetensors"))


class StopOnReturn(Callback):
    """Ends the training once the mean return of an evaluation is high enough, or with `training`, of a log interval."""

    def __init__(self, value: float, training: bool = False) -> None:
        self._wanted, self.training, self._reached = value, training, False

    def on_start(self) -> None:
        """Look again."""
        self._reached = False

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Of the controller."""
        self._reached = self._reached or (not self.training and lines[0]["return_mean"] >= self._wanted)

    def on_log(self, lines: list[LogLine]) -> None:
        """Of the episodes while training, with exploration."""
        found = lines[0]["return"]
        self._reached = self._reached or (self.training and found is not None and found >= self._wanted)

    def on_steps(self, steps: int) -> bool:  # noqa: ARG002
        """False once it is reached."""
        return not self._reached


class Tracking(Callback):
    """Shows the training in other tools as well: `Tracking("wandb", "mlflow", directory="runs/pendulum")`.

    They are "tensorboard", "wandb" and "mlflow", each an extra of that name. The runs there are named after the
    directory, and learning on with the same directory goes on in them. At the end they are given the controller.
    """

    def __init__(self, *trackers: str, directory: str | Path) -> None:
        self._names = choice.parse(",".join(trackers), "Tracking")
        self._directory = RunDirectory(directory)

    def on_start(self) -> None:
        """Begin there, or go on."""
        self._directory.policies.mkdir(parents=True, exist_ok=True)
        chosen = choice.ChosenTrackers.of(self._directory)
        chosen.settle(self._names)
        run = TrackedRun(self._directory.path, self.agent.config, provenance())
        self._told = tracking.Tracking(run, chosen, logging.getLogger("lowgear").warning)

    def on_log(self, lines: list[LogLine]) -> None:
        """Training figures."""
        self._told.on_log(lines)

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Those of `Evaluation`."""
        self._told.on_evaluation(lines)

    def on_steps(self, steps: int) -> None:
        """Say what the trackers have to say."""
        self._told.on_steps(steps)

    def on_end(self) -> None:
        """The controller, and the end."""
        if self.agent.is_trained:
            self.agent.save(self._directory.policy(0))
            self._told.policy(0, self._directory.policy(0))
        self._told.status = "finished"
        self._told.close()


class OnLog(Callback):
    """A function of a log line, which may end the training by returning False."""

    def __init__(self, function: Callable[[LogLine], Any]) -> None:
        self._function, self._goes_on = function, True

    def on_log(self, lines: list[LogLine]) -> None:
        """Call it."""
        self._goes_on = self._function(lines[0]) is not False

    def on_steps(self, steps: int) -> bool:  # noqa: ARG002
        """False once it has said so."""
        return self._goes_on


class _Locals(dict[str, Any]):
    """The `locals` of a Stable-Baselines3 callback; what its own loop would have there is an error with its remedy."""

    def __missing__(self, name: str) -> Any:
        raise LowgearError(
            f"locals[{shown(name)}]: Lowgear's locals hold {' and '.join(self)} alone, for steps are taken in chunks; "
            "read episodes from lines in a lowgear.Callback's on_log, or from agent.history"
        )


class Sb3(Callback):
    """A callback of Stable-Baselines3, an object or a function of (locals, globals).

    It is called for every step, but a chunk's steps are taken first.
    """

    def __init__(self, callback: Any) -> None:
        self._callback = callback
        self._is_object = hasattr(callback, "init_callback")
        self._locals = _Locals()
        self._done = 0

    def on_start(self) -> None:
        """Tell it of the agent."""
        self._locals = _Locals({"self": self.agent, "callback": self._callback})
        self._done = self.agent.total_steps
        if self._is_object:
            self._callback.init_callback(self.agent)
            self._callback.on_training_start(self._locals, {})
            self._callback.on_rollout_start()

    def on_steps(self, steps: int) -> bool:
        """Once for each step of the chunk."""
        each, first = self.agent.n_envs, self._done + self.agent.n_envs
        self._done = steps
        for self.agent.total_steps in range(first, steps + 1, each):
            goes_on = self._callback.on_step() if self._is_object else self._callback(self._locals, {})
            if goes_on is False:
                return False
        if self._is_object:
            self._callback.on_rollout_end()
            self._callback.on_rollout_start()
        return True

    def on_end(self) -> None:
        """Tell it."""
        if self._is_object:
            self._callback.on_training_end()


class Keeper(Listener):
    """Keeps the agent as its training stands, before its callbacks hear of it."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def on_steps(self, steps: int) -> None:
        """Act with what was learned."""
        self._agent.take_policy()
        self._agent.total_steps = steps

    def on_log(self, lines: list[LogLine]) -> None:
        """Keep it, with what was recorded since."""
        lines[0] |= self._agent.logger.take()
        self._agent.history += lines

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Keep it."""
        self._agent.history += lines


@contextmanager
def together(agent: "Agent", callbacks: Sequence[Listener], shown_steps: int | None) -> Iterator[list[Listener]]:
    """The listeners of one `learn`, a display of its steps among them if that is wanted."""
    own = [callback for callback in callbacks if isinstance(callback, Callback)]
    evaluated = any(isinstance(callback, Evaluation) for callback in own)
    if any(isinstance(callback, StopOnReturn) and not callback.training for callback in own) and not evaluated:
        raise LowgearError(
            "StopOnReturn goes by evaluations: pass [Evaluation(...), StopOnReturn(...)], or "
            "StopOnReturn(..., training=True) to go by the training's own episodes"
        )
    done = agent.total_steps
    displays = [] if shown_steps is None else [Display(done + shown_steps, done)]
    listeners = [Keeper(agent), *callbacks, *displays]

    def tell(lines: list[LogLine]) -> None:
        for listener in listeners:
            listener.on_evaluation(lines)

    with ExitStack() as begun:  # whatever goes wrong, each that has begun is ended
        for display in displays:
            begun.callback(display.close)
        for callback in own:
            callback.agent, callback.tell = agent, tell
            callback.on_start()
            begun.callback(callback.on_end)
        yield listeners


def as_callbacks(callback: Any) -> list[Listener]:
    """What a person passed as callback: nothing, one, or several."""
    if callback is None:
        return []
    if isinstance(callback, list | tuple):
        return [one for each in callback for one in as_callbacks(each)]
    if isinstance(callback, Listener):
        return [callback]
    if hasattr(callback, "init_callback") and hasattr(callback, "on_step"):
        return [Sb3(callback)]
    if not callable(callback) or isinstance(callback, type):
        raise LowgearError(
            f"callback {shown(callback)}: pass a function, a lowgear.Callback, one of Stable-Baselines3, or a list"
        )
    return [Sb3(callback) if _takes_two(callback) else OnLog(callback)]


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether it is a function of (locals, globals), as Stable-Baselines3's are."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is one.empty for one in parameters) == 2


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise LowgearError(f"{name}={shown(value)}: write 1 or more")
    return int(value)
