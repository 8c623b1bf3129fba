"""A training in memory that has no last step: it goes on as often as it is told, and can be put down and taken up.

It keeps what a run's checkpoint keeps: the learners as they were before the last chunk, and the steps in their buffers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from lowgear import LowgearError
from lowgear.config.run import RunConfig, whole_chunks
from lowgear.config.run_directory import RunDirectory
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.networks import Weights
from lowgear.training import checkpoint, memory
from lowgear.training.algorithm import Unrepeatable
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.collect import FinishedEpisode
from lowgear.training.loop import Training
from lowgear.training.progress import Listener
from lowgear.training.resume import cut_episodes
from lowgear.training.shard import LearnerStates

LEAST_ROOM = 1 << 16  # steps: a buffer that grows is compiled for anew


@dataclass(frozen=True)
class Snapshot:
    """Where an agent's training stood, on the host."""

    steps: int
    updates: int
    states: LearnerStates
    rows: FloatArray  # (environments, steps of each, width) that its buffer holds, oldest first
    pending: bool  # the last chunk of them is not learned from yet
    number: int  # of the episodes to open
    open_steps: int = 0  # of the rows, after which its episodes were open

    @property
    def is_finite(self) -> bool:
        """Whether it can be gone on from: learners that diverged cannot."""
        leaves = [leaf for leaf in jax.tree.leaves(self.states) if np.issubdtype(leaf.dtype, np.floating)]
        return all(bool(np.isfinite(leaf).all()) for leaf in leaves)


class OpenEnded(Training):
    """One agent under training; `go_on` trains it further, exactly as if it had never paused.

    Buffers of other sizes are other programs, whose sums may differ in the last digit: where one grows, or has another
    size than a run's (`room`), it is exact but for that.
    """

    def __init__(self, config: RunConfig, env: BatchEnv, room: int | None = None) -> None:
        self._room = room or _room(config, config.steps)
        super().__init__(config, env, None, capacity=self._room)
        self._ahead: Weights | None = None  # what acts after the next chunk, whose updates are made already
        self._behind: Weights | None = None  # what the next chunk is collected with
        self._before_last: tuple[LearnerStates, int] | None = None  # learners and updates before the last round
        self._number = 0  # of the episodes that are open
        self._log_episodes: int | None = None

    def forget_stop(self) -> None:
        """What told it to stop the last time counts no more."""
        self._stopping = False

    def go_on(self, steps: int, listeners: Sequence[Listener] = (), log_episodes: int | None = None) -> None:
        """Train for so many steps more, or until a listener or `stop` says so; log after so many episodes if told."""
        chunk, self._log_episodes = self.config.recipe.chunk, log_episodes
        total = self.collector.steps + whole_chunks(steps, chunk)
        every = chunk if log_episodes else whole_chunks(min(max(1_000, steps // 500), steps), chunk)
        self.config = replace(self.config, steps=total, log_every=every)
        if _room(self.config, total) > self._room:
            self._room = _room(self.config, total)
            memory.check(self.learner.method, 1, self._room, self.config.recipe.updates_per_chunk)
            self.learner.grow(self._room, chunk)
        if self._behind is not None:
            self.collector.weights = self._behind
        if not self.run(list(listeners)):
            self.pipeline.learn_pending()
            self.pipeline.take_learned()
        if self._ahead is None:
            self._ahead = self.collector.weights
        self.collector.weights = self._ahead

    def snapshot(self) -> Snapshot | None:
        """All that it takes to go on from here, with new episodes; None before the first chunk."""
        rows, pending, columns = self.learner.rows(), self._before_last is not None, self.collector.columns
        if self.pipeline.pending is not None:
            chunk = self.pipeline.pending.reshape(len(rows), -1, columns.width)
            rows, pending = np.concatenate([rows, chunk], axis=1), True
        if not rows.shape[1]:
            return None
        states, updates = self._before_last or (self.learner.states(), self.learner.time)
        columns.end(rows[:, -1])
        return Snapshot(self.collector.steps, updates, states, rows, pending, self._number + 1)

    def rescue(self) -> Snapshot | None:
        """What is left after an error: the threads are ended, and `policy` gives what was learned so far."""
        self.learner.drain()
        self.learner.close()
        if self.collector.bad:  # its environment failed within a chunk, which is not kept
            self.collector.steps -= self.config.recipe.chunk
        self.stopped.clear()
        found = self.snapshot()
        if found is not None and found.is_finite and self.learner.time:
            self.pipeline.act_with(self.learner.published())
        return found

    def take_up(self, snapshot: Snapshot) -> None:
        """Go on from where another stood; episodes that were open are brought to where they were, or begin anew."""
        chunk, environments = self.config.recipe.chunk, self.config.recipe.environments
        if snapshot.rows.shape[1] * environments > self._room:
            self._room = _room(self.config, snapshot.rows.shape[1] * environments)
            self.learner.grow(self._room, chunk)
        chunks = np.split(snapshot.rows, snapshot.rows.shape[1] * environments // chunk, axis=1)
        self.learner.restore(snapshot.states, snapshot.updates)
        if snapshot.updates:  # until then an agent acts as it began
            self.pipeline.act_with(self.learner.published())
        for rows in chunks[: len(chunks) - snapshot.pending]:
            self.learner.insert(rows.reshape(1, chunk, -1), known=True)
        self.pipeline.pending = chunks[-1].reshape(1, chunk, -1).copy() if snapshot.pending else None
        self._number = snapshot.number
        self.collector.steps = snapshot.steps - snapshot.open_steps
        self.collector.restart(self._number)
        if snapshot.open_steps:
            self._repeat(chunks[len(chunks) - snapshot.open_steps // chunk :], snapshot.steps)

    def _repeat(self, chunks: list[FloatArray], steps: int) -> None:
        """Take the steps of open episodes again; where environments do not repeat themselves, they end there."""
        try:
            for rows in chunks:
                self._lines.add(self.collector.collect_again(rows[None]))
        except Unrepeatable:
            cut_episodes(self.config, self.pipeline, self._lines, steps, self._number)
            self.begins_anew = True

    def _collect(self, last: bool) -> tuple[FloatArray, list[FinishedEpisode]]:
        found = super()._collect(last)
        if self._ahead is not None:
            self.collector.weights = self._ahead
        self._ahead = self._behind = self._before_last = None
        return found

    def _commit_end(self) -> None:
        """A checkpoint in memory: what the round of updates that is left would change."""
        if self.pipeline.pending is not None:
            self._behind, self._before_last = self.collector.weights, (self.learner.states(), self.learner.time)

    def _log(self) -> None:
        episodes, wanted = len(self._lines.intervals[0].episodes), self._log_episodes
        if wanted is None or episodes >= wanted or self.collector.steps == self.config.steps:
            super()._log()


def write_run(directory: RunDirectory, config: RunConfig, snapshot: Snapshot) -> None:
    """A checkpoint in a run's directory, from which it can be trained further."""
    chunk = config.recipe.chunk
    checkpoints = Checkpoints(directory, config)
    try:
        for rows in np.split(snapshot.rows, snapshot.rows.shape[1] * len(snapshot.rows) // chunk, axis=1):
            checkpoints.append(rows.reshape(1, chunk, -1))
        checkpoints.end_segment()
        size = directory.metrics.stat().st_size if directory.metrics.exists() else 0
        checkpoints.commit(snapshot.steps, snapshot.updates, size, [-np.inf], snapshot.states)
    finally:
        checkpoints.close()


def read_run(directory: RunDirectory, config: RunConfig, agent: int, training: OpenEnded) -> Snapshot:
    """One agent of a run as its last checkpoint has it; `training` is one of the same shapes."""
    latest = checkpoint.read_latest(directory)
    if latest is None:
        raise LowgearError(
            f"{directory.path} has no checkpoint to learn on from: train it further with "
            f"`lowgear train --resume {directory.path}`"
        )
    checkpoint.check_updates(directory, latest, config.recipe.updates_per_step)
    population, columns = len(config.agents), training.collector.columns
    mine = slice(agent, agent + 1)

    def whole(one: Any) -> Any:
        return np.broadcast_to(one, (population, *one.shape[1:]))

    states = checkpoint.read_state(directory, latest, jax.tree.map(whole, training.learner.states()))
    chunks = checkpoint.read_rows(directory, latest, population, config.recipe.chunk, columns.width)
    rows = [rows[mine].reshape(config.recipe.environments, -1, columns.width) for rows in chunks]
    return Snapshot(
        steps=latest.steps,
        updates=latest.updates,
        states=jax.tree.map(lambda leaf: leaf[mine], states),
        rows=np.concatenate(rows, axis=1),
        pending=True,
        number=latest.number,
        open_steps=latest.open_steps,
    )


def _room(config: RunConfig, steps: int) -> int:
    """Steps that a ring has room for: powers of two, so that it seldom grows, up to what the recipe keeps."""
    room = max(LEAST_ROOM, 1 << (steps - 1).bit_length())
    return min(whole_chunks(config.recipe.replay, config.recipe.chunk), whole_chunks(room, config.recipe.chunk))
