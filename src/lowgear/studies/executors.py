"""Who carries out the programs of a study: this process, several of this machine, or a cluster (`ray_pool`).

A pool starts programs; `carry_out` keeps it busy, takes results as they come, and starts a program that was
lost again, from its last checkpoint. What fails is told, and the rest goes on.
"""

import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from lowgear import LowgearError
from lowgear.config.cores import cores
from lowgear.studies import progress_file
from lowgear.studies.child import Child, Job, Result
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.training.signals import stops

POLL_S = 0.1
PROGRESS_S = 0.5
LOSSES = 3  # in a row, without a step forward in between, after which a program has failed


class StartedProgram(Protocol):
    """A program that was handed to a pool."""

    def poll(self) -> Result | None:
        """How it ended; None while it goes on, or waits for its turn."""

    def progress(self) -> ProgramProgress | None:
        """What it is at; None before it has begun."""

    def stop(self) -> None:
        """Let it stop at a checkpoint."""

    def kill(self) -> None:
        """End it at once."""


class Pool(Protocol):
    """Takes programs, so many at once; a cluster queues what it has no room for."""

    @property
    def most(self) -> int:
        """Programs that it takes at once."""

    def start(self, program: Program) -> StartedProgram:
        """Hand over a program."""


class Watcher:
    """Hears how programs go. This one does nothing."""

    def on_progress(self, program: Program, progress: ProgramProgress) -> bool | None:  # noqa: ARG002
        """Of a program that runs; False stops it at a checkpoint."""
        return None

    def on_loss(self, program: Program, why: str) -> None:
        """It was lost, and is started again."""

    def on_end(self, program: Program, result: Result) -> None:
        """It is done, failed or stopped."""


class Ended(NamedTuple):
    """A program that is over."""

    program: Program
    result: Result


class _Running:
    """A program's tasks, one after another where it is lost."""

    def __init__(self, pool: Pool, program: Program) -> None:
        self.program, self._pool = program, pool
        self.task = pool.start(program)
        self._losses, self._steps, self._asked = 0, -1, 0.0

    def _progress(self) -> ProgramProgress | None:
        now = time.monotonic()
        if now - self._asked < PROGRESS_S:
            return None
        self._asked = now
        return self.task.progress()

    def poll(self, watcher: Watcher, stopping: bool) -> Result | None:
        """How it ended, where nothing more is to be done about it."""
        result, progress = self.task.poll(), self._progress()
        if progress is not None:
            if progress.steps > self._steps and self._steps >= 0:
                self._losses = 0
            self._steps = max(self._steps, progress.steps)
            if result is None and watcher.on_progress(self.program, progress) is False:
                self.task.stop()
        if result is None or result.kind != "lost":
            return result
        if stopping:
            return Result("stopped")
        self._losses += 1
        if self._losses > LOSSES:
            return Result("failed", f"{result.why}, {self._losses} times in a row")
        watcher.on_loss(self.program, result.why)
        self.task = self._pool.start(self.program)
        return None


def carry_out(pool: Pool, programs: Iterable[Program], watcher: Watcher, most: int | None = None) -> Iterator[Ended]:
    """Every program, as they end. A signal stops those that run at a checkpoint, then ends the command.

    Programs are asked for when there is room for them, for `most` at once where that is told.
    """
    waiting, running, most = iter(programs), list[_Running](), most or pool.most
    try:
        with stops(lambda: _stop_all(running)) as heard:
            while True:
                while heard.number is None and len(running) < most and (program := next(waiting, None)):
                    running.append(_Running(pool, program))
                if not running:
                    break
                time.sleep(POLL_S)
                for each in list(running):
                    result = each.poll(watcher, stopping=heard.number is not None)
                    if result is not None:
                        running.remove(each)
                        watcher.on_end(each.program, result)
                        yield Ended(each.program, result)
    finally:
        for each in running:
            each.task.kill()
    if heard.number is not None:
        raise SystemExit(heard.exit_code)  # the same command goes on from there


def _stop_all(running: list[_Running]) -> None:
    for each in running:
        each.task.stop()


class _LocalTask:
    def __init__(self, job: Job) -> None:
        self._job, self._child = job, Child(job)
        self.poll, self.stop, self.kill = self._child.poll, self._child.stop, self._child.kill

    def progress(self) -> ProgramProgress | None:
        return progress_file.read(Path(self._job.folder), self._job.attempt)


class LocalPool:
    """So many processes of this machine, which share its cores."""

    def __init__(self, jobs: int, runs: Path, env_timeout_s: float = 300.0) -> None:
        if jobs < 1:
            raise LowgearError(f"--jobs {jobs}: write 1 or more")
        self.most, self._runs, self._env_timeout_s = jobs, runs, env_timeout_s

    def start(self, program: Program) -> StartedProgram:
        """In a process of its own."""
        job = Job(
            program,
            str(self._runs / program.name),
            uuid.uuid4().hex,
            cores=max(1, cores() // self.most),
            env_timeout_s=self._env_timeout_s,
            share_gpu=self.most,
        )
        return _LocalTask(job)
