"""The training loop: collect, update, log, evaluate, checkpoint.

Collecting and learning go side by side (`pipeline`). Evaluation plays beside both, with weights as they stood when it
was due; what is written after it waits for it, so files have one order too.
"""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.envs import watchdog
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy
from lowgear.policy.files import WriteError, hold
from lowgear.policy.networks import take
from lowgear.training import checkpoint, memory
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.collect import FinishedEpisode
from lowgear.training.commits import Commits
from lowgear.training.frozen import check_frozen
from lowgear.training.lines import Lines
from lowgear.training.pipeline import Pipeline, Timings
from lowgear.training.progress import Listener as Listener
from lowgear.training.progress import Listeners
from lowgear.training.progress import LogLine as LogLine
from lowgear.training.resume import resume
from lowgear.training.run_files import RunFiles
from lowgear.training.scoring import Scoring
from lowgear.training.setup import MakeLearners, header_of, method_of, sac_learners
from lowgear.training.stopped import Stopped, StoppedCompiling, kept_of
from lowgear.training.trackers.tracking import tracked

MakeEnv = Callable[[int], BatchEnv]


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
        self.begins_anew = False  # where environments did not repeat themselves: episodes that were open are cut short
        self._directory, self._trackers = directory, trackers
        self._listeners = Listeners()
        self._lines = Lines(config, env.spec)
        self._files = RunFiles(directory, go_on, self._listeners.on_notice)
        self._commits: Commits | None = None
        self._stopping = False
        with ExitStack() as held:  # lets go of everything where something below fails
            if directory is not None:
                held.enter_context(hold(directory.lock))
            check_frozen(config, env.spec)
            method = method_of(config, env.spec, env.goal_rule, make_learners)
            capacity = capacity or config.capacity
            memory.check(method, len(config.agents), capacity, config.recipe.updates_per_chunk)
            self.pipeline = Pipeline(
                config, env, method, self._listeners, self._diverged, capacity=capacity, groups=groups, parts=parts
            )
            held.enter_context(closing(self.pipeline))
            self.pipeline.gives_up = self._can_go_on_later
            self.learner, self.collector = self.pipeline.learner, self.pipeline.collector
            self.stopped = self.pipeline.stopped
            self._scoring = held.enter_context(closing(Scoring(config, method.cost, self._files, self._listeners)))
            if make_env is not None:
                self._scoring.open(make_env, apart=self.learner.queues)
            if directory is not None:
                self._commits = self._open(directory)
                directory.keep_steps(config)  # once it is sure that it can go on
            self._held = held.pop_all()

    def stop(self) -> None:
        """Let `run` end after the chunk under way, with a checkpoint there; from a signal's handler or any thread."""
        self._stopping = True

    def run(self, listeners: list[Listener] | None = None) -> bool:
        """Train to the end; False if it was stopped before, at a checkpoint that it can go on from."""
        self._listeners.all = list(listeners or ())
        with (
            tracked(self._directory, self.config, self._trackers, self._listeners.on_notice) as tracking,
            watchdog.stuck(partial(self._stuck, watchdog.on_stuck())),
        ):
            self._listeners.all += [] if tracking is None else [tracking]
            self._lines.start_clock(self.collector.steps)
            finished = self._run()
            if tracking is not None and self._directory is not None:
                tracking.finish(self._directory, finished, self.last_evaluation)
            return finished

    def close(self) -> None:
        """End the threads and the environments; an evaluation that is under way is given up."""
        self._held.close()

    @property
    def timings(self) -> Timings:
        """Where the time has gone."""
        return self.pipeline.timings

    @property
    def best(self) -> list[float]:
        """The score of each agent's best policy so far."""
        return list(self._scoring.best)

    @property
    def last_evaluation(self) -> list[LogLine]:
        """The last one's lines."""
        return self._scoring.last

    def policy(self, agent: int, steps: int | None = None) -> Policy:
        """An agent's controller as it stands, after so many steps; None: all that were taken."""
        steps = self.stopped[agent].steps if agent in self.stopped else steps or self.collector.steps
        return Policy(
            header_of(self.config, self.spec, agent, steps, self.pipeline.cost_units),
            take(self.collector.weights, agent),
        )

    def save_policies(self, steps: int | None = None) -> None:
        """Write every agent's last policy, which has seen so many steps; None: all that were taken."""
        for agent in range(len(self.config.agents)):
            if agent not in self.stopped:  # whose last one was written then
                self._files.save_policy(agent, self.policy(agent, steps))

    def _run(self) -> bool:
        random_steps = self.config.recipe.random_steps
        random = self.collector.steps < random_steps
        self._listeners.on_phase(f"taking {random_steps:,} random steps" if random else None)
        try:
            while self.collector.steps < self.config.steps and not self._stopping:
                self._chunk()
                if not self._listeners.on_steps(self.collector.steps):
                    break
            self.pipeline.take_learned()
            self._scoring.finish()
            if self._commits is not None:
                self._commits.wait()
            self._files.refusals.go_on = False  # only one checkpoint is left
            self._commit_end()
            if self._stopping and self.collector.steps < self.config.steps:
                self.save_policies()
                return False
            self.pipeline.learn_pending()
            self.pipeline.take_learned()
            if self.config.evaluate_every:
                self._evaluate()
            self._scoring.finish()
            if self._commits is not None:
                self._commits.note_end()
            self.save_policies()  # last: policies that have seen every step mark a run as finished
            return True
        except StoppedCompiling:
            assert self._commits is not None
            self._commits.make_broken()
            self.save_policies(self.pipeline.before[0])
            return False
        except LowgearError as error:
            if self._commits is not None and not isinstance(error, WriteError):
                self._commits.make_broken()
            self._save_held()
            raise
        finally:
            if self._commits is not None:
                self._commits.close()
            self._files.metrics.close()

    def _chunk(self) -> None:
        """One round: learn from the chunk before, meanwhile collect the next."""
        config, size = self.config, self.config.recipe.chunk
        after = self.collector.steps + size
        at_checkpoint = self._commits is not None and after % config.checkpoint_every == 0
        at_log = after % config.log_every == 0 or after == config.steps
        at_evaluation = bool(config.evaluate_every) and after % config.evaluate_every == 0 and after < config.steps
        self.pipeline.take_learned(under_way=int(self.pipeline.learn_pending()))
        chunk, episodes = self._collect(last=at_checkpoint)
        if not self.learner.queues or not self.pipeline.compiled or at_log or at_evaluation or at_checkpoint:
            self.pipeline.take_learned()
        for agent, why in self.collector.bad.items():
            self._stop(agent, why)
        self.pipeline.pending = chunk
        self._lines.add(episodes)
        if self._commits is not None:
            self._commits.append(chunk)
        if at_log:
            self._log()
        if at_evaluation:
            self._evaluate()
        else:
            self._scoring.poll()
        if at_checkpoint and after < config.steps:
            self._commit()

    def _collect(self, last: bool) -> tuple[FloatArray, list[FinishedEpisode]]:
        return self.pipeline.collect(last)

    def _log(self) -> None:
        units, metrics = self.pipeline.cost_units, self.pipeline.metrics
        lines = self._lines.of_training(self.collector.steps, units, metrics, self.stopped)
        with self._files.refusals.met():
            self._files.metrics.add(lines, waits=self._scoring.under_way)
        self._listeners.on_log(lines)

    def _evaluate(self) -> None:
        """Begin to score every controller as it stands."""
        agents, units = range(len(self.config.agents)), self.pipeline.cost_units
        self._scoring.begin(
            [self.policy(agent) for agent in agents],
            [self._lines.head("evaluation", agent, self.collector.steps, units) for agent in agents],
        )

    def _commit(self) -> None:
        """Checkpoint, and open new episodes: environments can't be saved, so an unbroken run starts afresh too."""
        assert self._commits is not None
        number = self._commits.make()
        self.save_policies()
        self.collector.restart(number)
        self._lines.begin_anew()

    def _commit_end(self) -> None:
        """Checkpoint where the run ends, so that it can go on."""
        if self._commits is not None:
            self._commits.make_last()

    def _can_go_on_later(self) -> bool:
        """Whether the run is to stop, and may do so while its learners are compiled."""
        return self._stopping and self._commits is not None

    def _diverged(self, agent: int, what: str) -> None:
        self._stop(agent, f"it diverged ({what}): lower its learning rate")

    def _stop(self, agent: int, why: str) -> None:
        """The agent goes no further; where it is the last one, neither does the run."""
        if agent in self.stopped:
            return
        settings, steps = self.config.agents[agent], self.collector.steps
        self._files.save_policy(agent, self.policy(agent))
        self.stopped[agent] = Stopped(steps, why)
        self._files.save_stopped(self.stopped)
        self.collector.retire([agent])
        if len(self.stopped) == len(self.config.agents):
            if self._commits is not None:
                self._commits.make_broken()
            kept = kept_of(self._directory, self.config.task)
            raise LowgearError(f"agent {agent} stopped at {steps} steps: {why}{kept}")
        text = f"agent {agent} ({settings.variant}, seed {settings.seed}) stopped at {steps} steps: {why}"
        self._listeners.on_notice(f"{text}; the others go on")

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

    def _open(self, directory: RunDirectory) -> Commits:
        """Go on from the directory's last checkpoint, if it has one."""
        latest, metrics = checkpoint.read_latest(directory), self._files.metrics
        if latest is None:
            metrics.cut(None)  # a run killed before its first checkpoint starts over
        else:
            self.begins_anew = not resume(self.config, directory, latest, self.pipeline, self._lines)
            past_end = latest.steps < self.config.steps and 0 < latest.end_metrics_bytes <= metrics.size
            self._scoring.best = list(latest.end_best if past_end else latest.best)
            metrics.cut(latest.end_metrics_bytes if past_end else latest.metrics_bytes)
        if directory.stopped.exists():
            self._files.save_stopped(self.stopped)  # what stopped after the checkpoint is tried again
        checkpoints = Checkpoints(directory, self.config, latest, keeps=self._files.refusals.go_on)
        return Commits(self.config, checkpoints, self.pipeline, self._scoring, self._files, self._listeners)
