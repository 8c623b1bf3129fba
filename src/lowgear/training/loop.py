"""The training loop: collect, update, log, evaluate, checkpoint.

While the learners work on the chunk before, the next one is collected with the weights they had before that: always
exactly one chunk behind, so a run is reproducible however fast either side is. Evaluation plays beside both, with
weights as they stood when it was due; what is written after it waits for it, so files have one order too.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.envs import watchdog
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy, load
from lowgear.policy.files import WriteError, hold, write_whole
from lowgear.policy.networks import leaves_of, take
from lowgear.training import checkpoint, memory
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.collect import FinishedEpisode
from lowgear.training.frozen import check_frozen, frozen_weights
from lowgear.training.lines import Lines
from lowgear.training.metrics_file import MetricsFile
from lowgear.training.parallel import LearnerStates, ParallelLearner, Published
from lowgear.training.parallel_collector import ParallelCollector
from lowgear.training.progress import Listener as Listener
from lowgear.training.progress import LogLine as LogLine
from lowgear.training.refusals import Refusals
from lowgear.training.resume import Parts, resume
from lowgear.training.scoring import Scoring
from lowgear.training.setup import (
    MakeLearners,
    behaviour_of,
    groups_of,
    header_of,
    learners_needed,
    method_of,
    parameters_of,
    sac_learners,
    tariff_of,
    weights_of,
)
from lowgear.training.stopped import Stopped, StoppedCompiling, kept_of, not_finite, stopped_file
from lowgear.training.trackers.tracking import tracked

MakeEnv = Callable[[int], BatchEnv]
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


class Training:
    """A population under training, and the only one in its directory until it is closed.

    `run` goes on until the configured steps, or until a listener or `stop` says so.
    """

    def __init__(
        self,
        config: RunConfig,
        env: BatchEnv,
        make_env: MakeEnv | None,
        directory: RunDirectory | None = None,
        make_learners: MakeLearners = sac_learners,
        groups: int | None = None,  # that collect at once
        capacity: int | None = None,  # steps that each agent's ring holds; None: as many as the run needs
        go_on: bool = False,  # where something can't be written
        trackers: Sequence[str] | None = (),  # where the directory names none; None: none at all
        parts: int | None = None,  # that an agent's learners are cut into; None: as the cores go
    ) -> None:
        self.config, self.spec = config, env.spec
        self._directory, self._trackers = directory, trackers
        self.stopped: dict[int, Stopped] = {}  # agents that diverged, or whose environments failed
        self.begins_anew = False  # where environments did not repeat themselves: episodes that were open are cut short
        self._checkpoints: Checkpoints | None = None
        self._pending: FloatArray | None = None
        self._before = (0, 0)  # steps and updates of the learners that `self.learner` remembers
        self._lines = Lines(config, env.spec)
        self._listeners: list[Listener] = []
        self._file = MetricsFile(None if directory is None else directory.metrics)
        self._refusals = Refusals(go_on, self._tell)
        self._metrics: dict[str, FloatArray] = {}
        self._collecting = self._waiting = 0.0
        self._first_round_at: float | None = None
        self._stopping = False
        with ExitStack() as held:  # lets go of everything where something below fails
            if directory is not None:
                held.enter_context(hold(directory.lock))
            check_frozen(config, env.spec)
            method = method_of(config, env.spec, env.goal_rule, make_learners)
            capacity = capacity or config.capacity
            memory.check(method, len(config.agents), capacity)
            self.cost = method.cost
            self._scoring = Scoring(
                config, method.cost, directory, self._file, self._refusals, self._tell, self._tell_evaluation
            )
            agents = parameters_of(config, env.spec, tariff_of(config, method.cost))
            which = learners_needed(config, method)
            self.learner = held.enter_context(
                closing(ParallelLearner(method, agents, capacity, which=which, parts=parts))
            )
            behaviour = behaviour_of(config, has_goals=env.spec.desired_goal is not None)
            published = self.learner.published()
            self.cost_units = published.cost_units  # (P,): of relative cost coefficients
            self._frozen = frozen_weights(config)
            weights = weights_of(published, config, method.cost, self._frozen)
            groups = groups or groups_of(config, self.learner.queues)
            self.collector = held.enter_context(
                closing(ParallelCollector(env, behaviour, weights, config.recipe.chunk, groups))
            )
            held.enter_context(closing(self._scoring))
            if make_env is not None:
                self._scoring.open(make_env, apart=self.learner.queues)
            if directory is not None:
                self._checkpoints = self._open(directory)
            self._held = held.pop_all()

    def stop(self) -> None:
        """Let `run` end after the chunk under way, with a checkpoint there; from a signal's handler or any thread."""
        self._stopping = True

    def run(self, listeners: list[Listener] | None = None) -> bool:
        """Train to the end; False if it was stopped before, at a checkpoint that it can go on from."""
        self._listeners = list(listeners or ())
        with (
            tracked(self._directory, self.config, self._trackers, self._tell) as tracking,
            watchdog.stuck(partial(self._stuck, watchdog.on_stuck())),
        ):
            self._listeners += [] if tracking is None else [tracking]
            self._lines.start_clock(self.collector.steps)
            finished = self._run()
            if tracking is not None and self._directory is not None:
                tracking.finish(self._directory, finished, self.last_evaluation)
            return finished

    def _run(self) -> bool:
        random_steps = self.config.recipe.random_steps
        self._enter(f"taking {random_steps:,} random steps" if self.collector.steps < random_steps else None)
        try:
            while self.collector.steps < self.config.steps and not self._stopping:
                self._chunk()
                if any(listener.on_steps(self.collector.steps) is False for listener in self._listeners):
                    break
            self._take_learned()
            self._scoring.finish()
            if self._checkpoints is not None:
                with self._refusals.met(checkpoint=True):
                    self._checkpoints.wait()
            self._refusals.go_on = False  # only one checkpoint is left
            self._commit_end()
            if self._stopping and self.collector.steps < self.config.steps:
                self.save_policies()
                return False
            self._learn_pending()
            self._take_learned()
            if self.config.evaluate_every:
                self._evaluate()
            self._scoring.finish()
            if self._checkpoints is not None:
                self._checkpoints.note_end(self._file.size, self.best)
            self.save_policies()  # last: policies that have seen every step mark a run as finished
            return True
        except StoppedCompiling:
            self._commit_broken()
            self.save_policies(self._before[0])
            return False
        except LowgearError as error:
            if not isinstance(error, WriteError):
                self._commit_broken()
            self._save_held()
            raise
        finally:
            if self._checkpoints is not None:
                self._checkpoints.close()
            self._file.close()

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

    @property
    def best(self) -> list[float]:
        """The score of each agent's best policy so far."""
        return [float(score) for score in self._scoring.best]

    @property
    def last_evaluation(self) -> list[LogLine]:
        """The last one's lines."""
        return self._scoring.last

    def policy(self, agent: int, steps: int | None = None) -> Policy:
        """An agent's controller as it stands, after so many steps; None: all that were taken."""
        steps = self.stopped[agent].steps if agent in self.stopped else steps or self.collector.steps
        return Policy(
            header_of(self.config, self.spec, agent, steps, self.cost_units),
            take(self.collector.weights, agent),
        )

    def save_policies(self, steps: int | None = None) -> None:
        """Write every agent's last policy, which has seen so many steps; None: all that were taken."""
        if self._directory is not None:
            for agent in range(len(self.config.agents)):
                if agent not in self.stopped:  # whose last one was written then
                    self._refusals.save(self._directory.policy(agent), self.policy(agent, steps).save)

    def _save_held(self) -> None:
        """Where a run breaks off: policies as they stand, as far as they can be written."""
        if self.collector.steps < self.config.steps:
            with contextlib.suppress(LowgearError):
                self.save_policies()

    def _stuck(self, tell: watchdog.OnStuck, why: str) -> None:
        """An environment will never return, from another thread."""
        try:
            self._save_held()
        finally:
            tell(why)

    def close(self) -> None:
        """End the threads and the environments; an evaluation that is under way is given up."""
        self._held.close()

    def _chunk(self) -> None:
        """One round: learn from the chunk before, meanwhile collect the next."""
        config, size = self.config, self.config.recipe.chunk
        after = self.collector.steps + size
        at_checkpoint = self._checkpoints is not None and after % config.checkpoint_every == 0
        at_log = after % config.log_every == 0 or after == config.steps
        at_evaluation = bool(config.evaluate_every) and after % config.evaluate_every == 0 and after < config.steps
        self._take_learned(under_way=int(self._learn_pending()))
        chunk, episodes = self._collect(last=at_checkpoint)
        if not self.learner.queues or self._first_round_at is None or at_log or at_evaluation or at_checkpoint:
            self._take_learned()
        for agent, why in self.collector.bad.items():
            self._stop(agent, why)
        self._pending = chunk
        self._lines.add(episodes)
        if self._checkpoints is not None:
            self._checkpoints.append(chunk)
            with self._refusals.met(checkpoint=True):
                if self._checkpoints.poll():
                    self._refusals.committed()
                    self._tell_checkpoint()
        if at_log:
            self._log()
        if at_evaluation:
            self._evaluate()
        else:
            self._scoring.poll()
        if at_checkpoint and after < config.steps:
            self._commit()

    def _collect(self, last: bool) -> tuple[FloatArray, list[FinishedEpisode]]:
        """Rows (P, steps, width), one environment's after another's."""
        began = time.perf_counter()
        rows, episodes = self.collector.collect(last)
        self._collecting += time.perf_counter() - began
        return rows.reshape(len(rows), -1, rows.shape[-1]), episodes

    def _learn_pending(self) -> bool:
        if self._pending is None:
            return False
        self.learner.remember()
        self._before = self.collector.steps, self.learner.time
        self.learner.insert(self._pending)
        self._pending = None
        if self.collector.steps < self.config.recipe.random_steps:
            return False
        if self._first_round_at is None and not self.learner.under_way:
            self._enter("compiling the learners, or loading them")
        self.learner.start(self.config.recipe.chunk)
        return True

    def _take_learned(self, under_way: int = 0) -> None:
        """Wait for the rounds of updates but for so many that stay under way, and act with what they came to."""
        while self.learner.under_way > under_way:
            began = time.perf_counter()
            if self._first_round_at is None:
                self._wait_for_compiler()
            learned = self.learner.wait()
            now = time.perf_counter()
            self._waiting += now - began
            assert learned is not None
            if self._first_round_at is None:
                self._first_round_at = now
                self._enter(None)
            self._metrics = learned.metrics
            for agent, what in not_finite(learned).items():
                self._stop(agent, f"it diverged ({what}): lower its learning rate")
            self.act_with(learned.published)

    def _wait_for_compiler(self) -> None:
        """Until the first round is done; a run that is stopped meanwhile, and can go on, waits no longer."""
        while not self.learner.done_within(COMPILER_POLL_S):
            if self._stopping and self._checkpoints is not None:
                raise StoppedCompiling

    def act_with(self, published: Published) -> None:
        """From the next chunk on; agents that have stopped act as they last did."""
        self.cost_units = published.cost_units
        weights = weights_of(published, self.config, self.cost, self._frozen)
        for new, old in zip(leaves_of(weights), leaves_of(self.collector.weights), strict=True):
            for agent in self.stopped:
                new[agent] = old[agent]
        self.collector.weights = weights

    def _stop(self, agent: int, why: str) -> None:
        """The agent goes no further; where it is the last one, neither does the run."""
        if agent in self.stopped:
            return
        settings = self.config.agents[agent]
        if self._directory is not None:
            self._refusals.save(self._directory.policy(agent), self.policy(agent).save)
        self.stopped[agent] = Stopped(self.collector.steps, why)
        self._write_stopped()
        self.collector.retire([agent])
        if len(self.stopped) == len(self.config.agents):
            self._commit_broken()
            kept = kept_of(self._directory, self.config.task)
            raise LowgearError(f"agent {agent} stopped at {self.collector.steps} steps: {why}{kept}")
        text = (
            f"agent {agent} ({settings.variant}, seed {settings.seed}) stopped at {self.collector.steps} steps: {why}"
        )
        self._tell(f"{text}; the others go on")

    def _tell(self, text: str) -> None:
        for listener in self._listeners:
            listener.on_notice(text)

    def _tell_evaluation(self, lines: list[LogLine]) -> None:
        for listener in self._listeners:
            listener.on_evaluation(lines)

    def _tell_checkpoint(self) -> None:
        for listener in self._listeners:
            listener.on_checkpoint()

    def _write_stopped(self) -> None:
        if self._directory is not None:
            data = stopped_file(self.stopped)
            self._refusals.save(self._directory.stopped, lambda path: write_whole(path, data))

    def _enter(self, phase: str | None) -> None:
        """Tell what the run is at, or that it learns."""
        for listener in self._listeners:
            listener.on_phase(phase)

    def _log(self) -> None:
        lines = self._lines.of_training(self.collector.steps, self.cost_units, self._metrics, self.stopped)
        with self._refusals.met():
            self._file.add(lines, waits=self._scoring.under_way)
        for listener in self._listeners:
            listener.on_log(lines)

    def _evaluate(self) -> None:
        """Begin to score every controller as it stands."""
        agents = range(len(self.config.agents))
        self._scoring.begin(
            [self.policy(agent) for agent in agents],
            [self._lines.head("evaluation", agent, self.collector.steps, self.cost_units) for agent in agents],
        )

    def _commit(self) -> None:
        """Checkpoint, and open new episodes: environments can't be saved, so an unbroken run starts afresh too."""
        assert self._checkpoints is not None
        self._scoring.finish()
        self._checkpoints.end_segment()
        with self._refusals.met(checkpoint=True):
            if self._checkpoints.wait():
                self._tell_checkpoint()
        with self._refusals.met(checkpoint=True):
            self._write_waiting()
            self._refusals.committing()
            self._checkpoints.commit(*self._standing())
        self.save_policies()
        self._restart(self._checkpoints.number)

    def _commit_end(self) -> None:
        """Checkpoint where the run ends, so that it can go on: its episodes too, unless a checkpoint is due anyway."""
        if self._checkpoints is None:
            return
        self._write_waiting()
        if self.collector.steps % self.config.checkpoint_every:
            self._checkpoints.commit_open(*self._standing())
        elif self._checkpoints.appended:
            self._checkpoints.end_segment()
            self._checkpoints.commit(*self._standing())

    def _commit_broken(self) -> None:
        """Checkpoint where the run breaks off: after the last chunk that was kept, if there is anybody to go on there.

        Learners that were given that chunk already are taken as they were before.
        """
        if self._checkpoints is None:
            return
        given = self._pending is None
        steps, updates = self._before if given else (self.collector.steps, self.learner.time)
        lost = [agent for agent, stopped in self.stopped.items() if stopped.steps <= steps]
        try:
            self._checkpoints.wait()
            if self._checkpoints.appended and len(lost) < len(self.config.agents):
                self._scoring.finish()
                self._write_waiting()
                states = self.learner.remembered() if given else self.learner.states()
                self._checkpoints.commit_open(steps, updates, self._file.size, self.best, states)
        except LowgearError as error:
            self._tell(f"no checkpoint could be made: {error}")

    def _write_waiting(self) -> None:
        """What could not be written before, and belongs to the next checkpoint."""
        self._refusals.retry()
        self._file.flush()

    def _standing(self) -> tuple[int, int, int, list[float], LearnerStates]:
        """What a checkpoint keeps besides the rows."""
        return self.collector.steps, self.learner.time, self._file.size, self.best, self.learner.states()

    def _restart(self, number: int) -> None:
        self.collector.restart(number)
        self._lines.begin_anew()

    def _open(self, directory: RunDirectory) -> Checkpoints:
        """Go on from the directory's last checkpoint, if it has one."""
        latest = checkpoint.read_latest(directory)
        if latest is not None:
            for agent, (steps, why) in directory.read_stopped().items():
                if steps <= latest.steps:
                    self.stopped[agent] = Stopped(steps, why)
                    kept = leaves_of(load(directory.policy(agent)).weights)
                    for mine, last in zip(leaves_of(self.collector.weights), kept, strict=True):
                        mine[agent] = last[0]
            if len(self.stopped) == len(self.config.agents):
                raise LowgearError(f"{directory.path} has no agent left: {self.stopped[0].why}; start a new run")
            self.collector.retire(self.stopped)
            self._resume(directory, latest)
        else:
            self._file.cut(None)  # a run killed before its first checkpoint starts over
        if directory.stopped.exists():
            self._write_stopped()  # what stopped after the checkpoint is tried again
        return Checkpoints(directory, self.config, latest, keeps=self._refusals.go_on)

    def _resume(self, directory: RunDirectory, latest: checkpoint.Checkpoint) -> None:
        parts = Parts(self.config, self.learner, self.collector, self._lines, self.act_with)
        self._pending, self.begins_anew = resume(parts, directory, latest)
        past_end = latest.steps < self.config.steps and 0 < latest.end_metrics_bytes <= self._file.size
        self._scoring.best = list(latest.end_best if past_end else latest.best)
        self._file.cut(latest.end_metrics_bytes if past_end else latest.metrics_bytes)
