"""When a run's checkpoints are made, and what goes into them: where they are due, at its end, where it breaks off."""

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.policy.arrays import FloatArray
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.pipeline import Pipeline
from lowgear.training.progress import Listener
from lowgear.training.run_files import RunFiles
from lowgear.training.scoring import Scoring
from lowgear.training.shard import LearnerStates


class Commits:
    """Makes the checkpoints of a run out of its parts as they stand."""

    def __init__(
        self,
        config: RunConfig,
        checkpoints: Checkpoints,
        pipeline: Pipeline,
        scoring: Scoring,
        files: RunFiles,
        listener: Listener,
    ) -> None:
        self._config, self._checkpoints = config, checkpoints
        self._pipeline, self._scoring, self._files, self._listener = pipeline, scoring, files, listener

    def append(self, chunk: FloatArray) -> None:
        """Keep a chunk's rows for the next checkpoint, and hear of the last one."""
        self._checkpoints.append(chunk)
        with self._files.refusals.met(checkpoint=True):
            self._hear(self._checkpoints.poll())

    def make(self) -> int:
        """A checkpoint that is due, while the run goes on; the number of checkpoints so far."""
        self._scoring.finish()
        self._checkpoints.end_segment()
        with self._files.refusals.met(checkpoint=True):
            self._hear(self._checkpoints.wait())
        with self._files.refusals.met(checkpoint=True):
            self._files.write_waiting()
            self._files.refusals.committing()
            self._checkpoints.commit(*self._standing())
        return self._checkpoints.number

    def wait(self) -> None:
        """Until the one under way is on disk."""
        with self._files.refusals.met(checkpoint=True):
            self._hear(self._checkpoints.wait())

    def make_last(self) -> None:
        """Where the run ends, so that it can go on: its episodes too, unless a checkpoint is due anyway."""
        self._files.write_waiting()
        if self._pipeline.collector.steps % self._config.checkpoint_every:
            self._checkpoints.commit_open(*self._standing())
        elif self._checkpoints.appended:
            self._checkpoints.end_segment()
            self._checkpoints.commit(*self._standing())

    def make_broken(self) -> None:
        """Where the run breaks off: after the last chunk that was kept, if there is anybody to go on there.

        Learners that were given that chunk already are taken as they were before.
        """
        learner, given = self._pipeline.learner, self._pipeline.pending is None
        steps, updates = self._pipeline.before if given else (self._pipeline.collector.steps, learner.time)
        lost = [agent for agent, stopped in self._pipeline.stopped.items() if stopped.steps <= steps]
        try:
            self._checkpoints.wait()
            if self._checkpoints.appended and len(lost) < len(self._config.agents):
                self._scoring.finish()
                self._files.write_waiting()
                states = learner.remembered() if given else learner.states()
                best = list(self._scoring.best)
                self._checkpoints.commit_open(steps, updates, self._files.metrics.size, best, states)
        except LowgearError as error:
            self._listener.on_notice(f"no checkpoint could be made: {error}")

    def note_end(self) -> None:
        """Add what the evaluation after the last step has found."""
        self._checkpoints.note_end(self._files.metrics.size, list(self._scoring.best))

    def close(self) -> None:
        """Finish what is under way."""
        self._checkpoints.close()

    def _hear(self, is_there: bool) -> None:
        """Tell of the checkpoint that was under way, where it has come to the disk."""
        if is_there:
            self._files.refusals.committed()
            self._listener.on_checkpoint()

    def _standing(self) -> tuple[int, int, int, list[float], LearnerStates]:
        """What a checkpoint keeps besides the rows."""
        learner, best = self._pipeline.learner, list(self._scoring.best)
        return self._pipeline.collector.steps, learner.time, self._files.metrics.size, best, learner.states()
