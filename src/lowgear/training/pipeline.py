"""Learners and collector of a population, side by side: while one chunk is learned from, the next is collected.

It is collected with the weights that the learners had before: always exactly one chunk behind, so a run is
reproducible however fast either side is.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from lowgear.config.run import RunConfig
from lowgear.envs.protocol import BatchEnv
from lowgear.learning.method import Method
from lowgear.policy.arrays import FloatArray
from lowgear.policy.networks import leaves_of
from lowgear.training.collect import FinishedEpisode
from lowgear.training.frozen import frozen_weights
from lowgear.training.parallel import Metrics, ParallelLearner
from lowgear.training.parallel_collector import ParallelCollector
from lowgear.training.progress import Listener
from lowgear.training.setup import behaviour_of, groups_of, learners_needed, parameters_of, tariff_of, weights_of
from lowgear.training.shard import Published
from lowgear.training.stopped import Stopped, StoppedCompiling, not_finite

COMPILER_POLL_S = 0.1


@dataclass(frozen=True)
class Timings:
    """Seconds that the parts of the loop have taken so far."""

    environment: float
    collecting: float  # the environment's included
    waiting: float  # for the learners
    learning: float  # each round's, from its start to the end of its last job; beside collecting
    rounds: int  # of updates
    first_round_at: float | None  # when it had ended, by `time.perf_counter`


class Pipeline:
    """Collects and learns chunk by chunk. Agents that have `stopped` act as they last did."""

    def __init__(
        self,
        config: RunConfig,
        env: BatchEnv,
        method: Method,
        listener: Listener,
        diverged: Callable[[int, str], None],  # hears of an agent, and of the number that is not finite
        *,
        capacity: int,  # steps that each agent's ring holds
        groups: int | None,  # that collect at once; None: as the learners' device goes
        parts: int | None,  # that an agent's learners are cut into; None: as the cores go
    ) -> None:
        self.pending: FloatArray | None = None  # the last chunk, which is not learned from yet
        self.before = (0, 0)  # steps and updates of the learners that `learner` remembers
        self.stopped: dict[int, Stopped] = {}  # agents that diverged, or whose environments failed
        self.gives_up: Callable[[], bool] = lambda: False  # whether the first updates are waited for no longer
        self.metrics: Metrics = {}  # of the last round of updates
        self._config, self._cost = config, method.cost
        self._listener, self._diverged = listener, diverged
        self._frozen = frozen_weights(config)
        self._collecting = self._waiting = 0.0
        self._first_round_at: float | None = None
        with ExitStack() as held:
            agents = parameters_of(config, env.spec, tariff_of(config, method.cost))
            which = learners_needed(config, method)
            self.learner = held.enter_context(
                closing(ParallelLearner(method, agents, capacity, which=which, parts=parts))
            )
            published = self.learner.published()
            self.cost_units = published.cost_units  # (P,): of relative cost coefficients
            behaviour = behaviour_of(config, has_goals=env.spec.desired_goal is not None)
            weights = weights_of(published, config, method.cost, self._frozen)
            groups = groups or groups_of(config, self.learner.queues)
            self.collector = held.enter_context(
                closing(ParallelCollector(env, behaviour, weights, config.recipe.chunk, groups))
            )
            self._held = held.pop_all()

    def close(self) -> None:
        """End the threads, the processes and the environments."""
        self._held.close()

    def collect(self, last: bool) -> tuple[FloatArray, list[FinishedEpisode]]:
        """Rows (P, steps, width), one environment's after another's, and the episodes that ended."""
        began = time.perf_counter()
        rows, episodes = self.collector.collect(last)
        self._collecting += time.perf_counter() - began
        return rows.reshape(len(rows), -1, rows.shape[-1]), episodes

    def learn_pending(self) -> bool:
        """Begin to learn from the chunk before; whether there are updates to wait for."""
        if self.pending is None:
            return False
        self.learner.remember()
        self.before = self.collector.steps, self.learner.time
        self.learner.insert(self.pending)
        self.pending = None
        if self.collector.steps < self._config.recipe.random_steps:
            return False
        if not self.compiled and not self.learner.under_way:
            self._listener.on_phase("compiling the learners, or loading them")
        self.learner.start(self._config.recipe.updates_per_chunk)
        return True

    def take_learned(self, under_way: int = 0) -> None:
        """Wait for the rounds of updates but for so many that stay under way, and act with what they came to."""
        while self.learner.under_way > under_way:
            began = time.perf_counter()
            if not self.compiled:
                self._wait_for_compiler()
            learned = self.learner.wait()
            now = time.perf_counter()
            self._waiting += now - began
            assert learned is not None
            if not self.compiled:
                self._first_round_at = now
                self._listener.on_phase(None)
            self.metrics = learned.metrics
            for agent, what in not_finite(learned).items():
                self._diverged(agent, what)
            self.act_with(learned.published)

    def _wait_for_compiler(self) -> None:
        """Until the first round is done, or nobody waits for it any longer."""
        while not self.learner.done_within(COMPILER_POLL_S):
            if self.gives_up():
                raise StoppedCompiling

    def act_with(self, published: Published) -> None:
        """From the next chunk on; agents that have stopped act as they last did, and keep their cost units."""
        units, stopped = published.cost_units, list(self.stopped)
        if units is not None and self.cost_units is not None:
            units = units.copy()
            units[stopped] = self.cost_units[stopped]
        self.cost_units = units
        weights = weights_of(published, self._config, self._cost, self._frozen)
        for new, old in zip(leaves_of(weights), leaves_of(self.collector.weights), strict=True):
            for agent in self.stopped:
                new[agent] = old[agent]
        self.collector.weights = weights

    @property
    def compiled(self) -> bool:
        """Whether a round of updates was ever done."""
        return self._first_round_at is not None

    @property
    def timings(self) -> Timings:
        """Where the time has gone."""
        return Timings(
            environment=self.collector.env_seconds,
            collecting=self._collecting,
            waiting=self._waiting,
            learning=self.learner.busy_seconds,
            rounds=self.learner.rounds,
            first_round_at=self._first_round_at,
        )
