"""Collect, learn, log, checkpoint: the only impure loop.

While the learners work on the chunk before, the next one is collected with the weights they had before that: always
exactly one chunk behind, so a run is reproducible however fast either side is.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lowgear import checkpoint, evaluate
from lowgear.asymmetric import Knobs
from lowgear.blueprint import behaviour_of, header_of, knobs_of, method_of, prices_of, tariff_of, weights_of
from lowgear.checkpoint import Checkpoints, RunDirectory
from lowgear.collect import Behaviour, Collector, Episode
from lowgear.config import RunConfig
from lowgear.envs.protocol import BatchEnv
from lowgear.errors import LowgearError
from lowgear.learner import Learner
from lowgear.runtime import Policy, take

EVALUATION_SEED = 20_000
MakeEnv = Callable[[int], BatchEnv]
Line = dict[str, Any]


class Listener(Protocol):
    """Hears how a run goes: a progress display, a TensorBoard writer, a person's callback."""

    def on_log(self, lines: list[Line]) -> None:
        """One line for each agent: its training so far."""

    def on_evaluation(self, lines: list[Line]) -> None:
        """One line for each agent: how its controller scored."""

    def on_steps(self, steps: int) -> bool | None:
        """After each chunk; False ends the run early."""


@dataclass
class Interval:
    """What happened to one agent since the last log line."""

    episodes: list[Episode]
    last: Episode | None = None  # of earlier intervals, shown until a new one ends


class Training:
    """A population under training. `run` goes on until the configured steps, or until a listener says stop."""

    def __init__(
        self,
        config: RunConfig,
        env: BatchEnv,
        make_env: MakeEnv | None,
        directory: RunDirectory | None = None,
        knobs: Knobs | None = None,  # else what the configuration says, as for `behaviour`
        behaviour: Behaviour | None = None,
    ) -> None:
        self.config, self.spec = config, env.spec
        self.method = method_of(config, env.spec, env.goal_rule)
        self.tariff = tariff_of(config, env.spec)
        knobs = knobs or knobs_of(config, env.spec, self.tariff)
        self.learner = Learner(self.method, knobs, config.capacity, which=config.learners)
        behaviour = behaviour or behaviour_of(config, has_goals=env.spec.desired_goal is not None)
        self.collector = Collector(env, behaviour)
        self.weights = weights_of(self.learner, self.tariff)
        self.best = [-np.inf] * len(config.agents)
        self.last_evaluation: list[Line] = []
        self._make_env, self._directory = make_env, directory
        self._checkpoints: Checkpoints | None = None
        self._pending: npt.NDArray[np.float32] | None = None
        self._intervals = [Interval([]) for _ in config.agents]
        self._listeners: list[Listener] = []
        self._metrics: dict[str, npt.NDArray[np.float32]] = {}
        self._clock = (time.perf_counter(), 0)
        if directory is not None:
            mark = directory.read_mark()
            if mark is not None:
                self._resume(directory, mark)
            elif directory.metrics.exists():
                directory.metrics.unlink()  # a run killed before its first checkpoint starts over
            self._checkpoints = Checkpoints(directory, config, mark)

    def run(self, listeners: list[Listener] | None = None) -> None:
        """Train to the end, keeping the last policies whatever happens."""
        self._listeners = listeners or []
        self._clock = (time.perf_counter(), self.collector.steps)
        try:
            while self.collector.steps < self.config.steps:
                self._chunk()
                if any(listener.on_steps(self.collector.steps) is False for listener in self._listeners):
                    break
            self._learn_pending()
            self._finish_learning()
            if self.config.evaluate_every:
                self._evaluate()
            self.save_policies()  # last: policies that have seen every step mark a run as finished
        finally:
            if self._checkpoints is not None:
                self._checkpoints.close()

    def policy(self, agent: int) -> Policy:
        """An agent's controller as it stands."""
        return Policy(header_of(self.config, self.spec, agent, self.collector.steps), take(self.weights, agent))

    def save_policies(self) -> None:
        """Write every agent's last policy."""
        if self._directory is not None:
            for agent in range(len(self.config.agents)):
                self.policy(agent).save(self._directory.policy(agent))

    def close(self) -> None:
        """End the learner's threads and the environments."""
        self.learner.close()
        self.collector.env.close()

    def _chunk(self) -> None:
        """One round: learn from the chunk before, meanwhile collect the next."""
        config, size = self.config, self.config.recipe.chunk
        after = self.collector.steps + size
        at_checkpoint = self._checkpoints is not None and after % config.checkpoint_every == 0
        learning = self._learn_pending()
        chunk, episodes = self.collector.collect(self.weights, size, last=at_checkpoint)
        if learning:
            self._finish_learning()
        self._pending = chunk
        for episode in episodes:
            self._intervals[episode.agent].episodes.append(episode)
        if self._checkpoints is not None:
            self._checkpoints.append(chunk)
        if after % config.log_every == 0 or after == config.steps:
            self._log()
        if config.evaluate_every and after % config.evaluate_every == 0 and after < config.steps:
            self._evaluate()
        if at_checkpoint and after < config.steps:
            self._commit()

    def _learn_pending(self) -> bool:
        if self._pending is None:
            return False
        self.learner.insert(self._pending)
        self._pending = None
        if self.collector.steps < self.config.recipe.random_steps:
            return False
        self.learner.start(self.config.recipe.chunk)
        return True

    def _finish_learning(self) -> None:
        metrics = self.learner.wait()
        if not metrics:
            return
        self._metrics = metrics
        for name, value in metrics.items():
            if not np.isfinite(value).all():
                agent = int(np.flatnonzero(~np.isfinite(value))[0])
                raise LowgearError(
                    f"agent {agent} diverged at {self.collector.steps} steps ({name} is {value[agent]}): "
                    "lower its learning rate"
                )
        self.weights = weights_of(self.learner, self.tariff)

    def _log(self) -> None:
        now, (then, steps_then) = time.perf_counter(), self._clock
        rate = (self.collector.steps - steps_then) / max(now - then, 1e-9)
        self._clock = (now, self.collector.steps)
        lines = []
        for agent, interval in enumerate(self._intervals):
            ended = interval.episodes or ([interval.last] if interval.last else [])
            line = self._line("train", agent) | {
                "steps_per_second": rate,
                "episodes": len(interval.episodes),
                "return": float(np.mean([e.episode_return for e in ended])) if ended else None,
                "large_share": float(np.mean([e.large_share for e in ended])) if ended else None,
                "success": float(np.mean([e.success for e in ended]))
                if ended and ended[0].success is not None
                else None,
            }
            lines.append(line | {name: float(value[agent]) for name, value in self._metrics.items()})
            self._intervals[agent] = Interval([], ended[-1] if ended else None)
        self._write(lines)
        for listener in self._listeners:
            listener.on_log(lines)

    def _evaluate(self) -> None:
        """Score every controller; the best by return minus cost paid, as the master is paid, is kept."""
        if self._make_env is None:
            return
        config, count = self.config, len(self.config.agents)
        episodes = config.evaluate_episodes
        master = "boltzmann" if config.boltzmann else "greedy"
        policies = [self.policy(agent) for agent in range(count)]
        played = evaluate.play_policies(policies, self._make_env, episodes, master, EVALUATION_SEED)
        prices = prices_of(config, self.spec)
        lines = []
        for agent, settings in enumerate(config.agents):
            found = evaluate.summarise(played, agent, prices)
            score = found["return_mean"] - settings.cost_coefficient * self._cost(played, agent)
            if self._directory is not None and score > self.best[agent]:
                self.policy(agent).save(self._directory.policy(agent, best=True))
            self.best[agent] = max(score, self.best[agent])
            lines.append(self._line("evaluation", agent) | found)
        self._write(lines)
        self.last_evaluation = lines
        for listener in self._listeners:
            listener.on_evaluation(lines)

    def _cost(self, played: evaluate.Played, agent: int) -> float:
        """Mean cost of an episode, as the master pays it."""
        gears = played.gear_steps[agent] @ np.asarray(self.method.gear_costs)
        return float((gears + played.picks[agent] * self.method.pick_cost).mean())

    def _line(self, kind: str, agent: int) -> Line:
        settings = self.config.agents[agent]
        return {
            "kind": kind,
            "steps": self.collector.steps,
            "agent": agent,
            "variant": settings.variant,
            "seed": settings.seed,
            "cost_coefficient": settings.cost_coefficient,
        }

    def _write(self, lines: list[Line]) -> None:
        if self._directory is None:
            return
        text = "".join(json.dumps(line) + "\n" for line in lines)
        try:
            with self._directory.metrics.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise LowgearError(f"could not write {self._directory.metrics}: {error.strerror}") from None

    def _commit(self) -> None:
        """Checkpoint, and open new episodes: environments can't be saved, so an unbroken run starts afresh too."""
        assert self._checkpoints is not None
        assert self._directory is not None
        size = self._directory.metrics.stat().st_size if self._directory.metrics.exists() else 0
        self._checkpoints.commit(
            self.collector.steps, self.learner.time, size, [float(b) for b in self.best], self.learner.state()
        )
        self.save_policies()
        self._restart(self._checkpoints.number)

    def _restart(self, number: int) -> None:
        self.collector.restart(number)
        self._intervals = [Interval([]) for _ in self.config.agents]

    def _resume(self, directory: RunDirectory, mark: checkpoint.Mark) -> None:
        population, chunk = len(self.config.agents), self.config.recipe.chunk
        self.learner.restore(checkpoint.read_state(directory, mark, self.learner.state()), mark.updates)
        self.weights = weights_of(self.learner, self.tariff)
        for rows in checkpoint.read_rows(directory, mark, population, chunk, self.collector.columns.width):
            if self._pending is not None:
                self.learner.refill(self._pending)
            self._pending = rows
        self.collector.steps = mark.steps
        self._restart(mark.number)
        self.best = list(mark.best)
        if directory.metrics.exists():
            with directory.metrics.open("r+b") as file:
                file.truncate(mark.metrics_bytes)
