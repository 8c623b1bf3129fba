"""Evaluation of a run while it trains: what it found goes to the metrics, and each agent's best policy is kept."""

from collections.abc import Callable

import numpy as np

from lowgear.config.run import RunConfig
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import evaluate
from lowgear.evaluation.beside import Beside
from lowgear.policy.cost import CostModel
from lowgear.policy.file import Policy
from lowgear.training.progress import Listener, LogLine
from lowgear.training.run_files import RunFiles

SEED = 20_000  # of the episodes


class Scoring:
    """Plays a population's controllers beside its training, where there are environments for it."""

    def __init__(self, config: RunConfig, cost: CostModel, files: RunFiles, listener: Listener) -> None:
        self.best = [-np.inf] * len(config.agents)  # score of each agent's best policy so far
        self.last: list[LogLine] = []
        self._config, self._cost, self._files, self._listener = config, cost, files, listener
        self._beside: Beside | None = None

    def open(self, make_env: Callable[[int], BatchEnv], apart: bool) -> None:
        """From now on there are environments to play in, in a process of their own where they are `apart`."""
        self._beside = Beside(make_env, self._heard, self._lost, apart)

    @property
    def under_way(self) -> bool:
        """Whether one has begun that was not heard of yet."""
        return self._beside is not None and self._beside.under_way

    def begin(self, policies: list[Policy], lines: list[LogLine]) -> None:
        """Score every controller; each has its line, which the figures are added to."""
        if self._beside is not None:
            self._beside.begin(policies, self._config.evaluate_episodes, self._config.master, SEED, lines)

    def poll(self) -> None:
        """Tell of an evaluation that is done."""
        if self._beside is not None:
            self._beside.poll()

    def finish(self) -> None:
        """Wait for the evaluation under way, and tell of it."""
        if self._beside is not None:
            self._beside.finish()

    def close(self) -> None:
        """Give up what is under way."""
        if self._beside is not None:
            self._beside.close()

    def _heard(self, policies: list[Policy], played: evaluate.Played, lines: list[LogLine]) -> None:
        """Of controllers that were scored, the best by return minus cost paid, as the master is paid, is kept."""
        for agent, why in played.missing.items():
            self._listener.on_notice(f"agent {agent} was not evaluated at {lines[agent]['steps']} steps: {why}")
        scored = [agent for agent in range(len(policies)) if agent not in played.missing]
        for agent in scored:
            policy = policies[agent]
            lines[agent] |= evaluate.summarise(played, agent, self._cost)
            score = self._score(played, agent, policy.header.cost_coefficient)
            if score > self.best[agent]:
                self._files.save_policy(agent, policy, best=True)
                self.best[agent] = score
        lines = [lines[agent] for agent in scored]
        with self._files.refusals.met():
            self._files.metrics.add_awaited(lines)
        if lines:
            self.last = lines
            self._listener.on_evaluation(lines)

    def _lost(self, lines: list[LogLine], why: str) -> None:
        with self._files.refusals.met():
            self._files.metrics.add_awaited([])
        self._listener.on_notice(
            f"the evaluation at {lines[0]['steps']} steps is lost, and there is none from now on: {why}"
        )

    def _score(self, played: evaluate.Played, agent: int, coefficient: float) -> float:
        """Mean return minus what the master paid for it."""
        each = self._cost.score(played.returns[agent], coefficient, played.gear_steps[agent], played.picks[agent])
        return float(each.mean())
