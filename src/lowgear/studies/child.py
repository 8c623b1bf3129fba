"""One program in a process of its own, and the parent's side of it.

The parent writes the job, one line of JSON, to the child's standard input and keeps that open: when it closes, because
the parent says so or is gone, the child stops at a checkpoint. Another process that still trains the same program is
waited for.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from lowgear import LowgearError
from lowgear.config.cores import VARIABLE
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.files import InUseError, hold
from lowgear.studies import storage
from lowgear.studies.program import XLA_THREADS, Program, score, train
from lowgear.studies.progress_file import NAME as PROGRESS
from lowgear.studies.progress_file import ProgressFile
from lowgear.training.checkpoint import read_latest
from lowgear.training.progress import Listener

ERROR = "lowgear: error: "
MEMORY_SHARE = 0.9  # of a GPU that several programs share
WAIT_S = 0.2


@dataclass(frozen=True)
class Job:
    """A program, and where and with what it is carried out."""

    program: Program
    folder: str  # of its run
    attempt: str  # which its progress names
    cores: int
    storage: str | None = None  # URL that its run is fetched from and sent to
    env_timeout_s: float = 300.0
    share_gpu: int = 1  # programs at once on one

    def to_json(self) -> dict[str, Any]:
        """For the child."""
        return vars(self) | {"program": self.program.to_json()}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Job":
        """In the child."""
        return cls(**raw | {"program": Program.from_json(raw["program"])})


class Result(NamedTuple):
    """How it ended. What is lost was killed by something else than its parent."""

    kind: Literal["done", "failed", "stopped", "lost"]
    why: str = ""


class Child:
    """The process of a job."""

    def __init__(self, job: Job, cwd: str | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, read when the process has ended
        self._told_to_stop = False
        self._ended: Result | None = None
        told = {VARIABLE: str(job.cores), XLA_THREADS: str(job.program.threads)}
        if job.share_gpu > 1:
            told["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{MEMORY_SHARE / job.share_gpu:.3f}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lowgear.studies.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            cwd=cwd,
            env=os.environ | told,
            start_new_session=True,  # Ctrl-C is for the parent, which tells its children
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job.to_json()).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def stop(self) -> None:
        """At a checkpoint, soon."""
        self._told_to_stop = True
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """At once; its last checkpoint stays."""
        self._told_to_stop = True
        self._process.kill()
        self._process.wait()
        self.poll()

    def poll(self) -> Result | None:
        """How it ended; None while it goes on."""
        code = self._process.poll()
        if code is None:
            return None
        if self._ended is None:
            self._ended = self._result(code)
            self._close()
        return self._ended

    def _result(self, code: int) -> Result:
        if code == 0:
            return Result("done")
        if self._told_to_stop:
            return Result("stopped")
        if code < 0:
            return Result("lost", f"its process was ended by {signal.Signals(-code).name}")
        if code > 128:
            return Result("lost", f"its process was stopped by {signal.Signals(code - 128).name}")
        return Result("failed", self._last_words() or f"its process ended with exit code {code}")

    def _close(self) -> None:
        self._errors.close()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix(ERROR) if lines else ""


def main() -> None:
    """The child."""
    from lowgear.envs import watchdog

    job = Job.from_json(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    watchdog.limit_s = job.env_timeout_s
    try:
        with watchdog.stuck(_end_stuck):
            _carry_out(job)
    except LowgearError as error:
        _end_stuck(str(error))


def _end_stuck(why: str) -> None:
    sys.stderr.write(f"{ERROR}{why}\n")
    sys.stderr.flush()
    os._exit(2)  # no thread is waited for


def _end_with_parent() -> None:
    """Wait until the parent closes our input, or is gone."""
    while sys.stdin.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _carry_out(job: Job) -> None:
    directory, config = RunDirectory(job.folder, trust=True), job.program.config
    directory.path.parent.mkdir(parents=True, exist_ok=True)
    remote = storage.Remote(job.storage) if job.storage else None
    if remote is not None:
        remote.fetch(directory.path)
    if directory.config.exists() and replace(directory.read_config(), steps=config.steps) != config:
        where = job.storage or directory.path.parent
        raise LowgearError(f"{where} holds another run {directory.path.name}: choose another place")
    latest = read_latest(directory) if directory.config.exists() else None
    mirror = storage.Mirror(remote, directory) if remote is not None else None
    shown = ProgressFile(
        directory.path, job.attempt, latest.steps if latest else 0, mirror.send_progress if mirror else lambda: None
    )
    _train(job, directory, [shown, *([mirror] if mirror else [])])
    if directory.finished(config):
        shown.on_steps(config.steps)
        shown.on_phase("evaluating")
        score(job.program, directory, lambda *_: None, lambda *_: None)
        (directory.path / PROGRESS).unlink(missing_ok=True)
    if mirror is not None:
        mirror.on_checkpoint()


def _train(job: Job, directory: RunDirectory, listeners: list[Listener]) -> None:
    """Until the run is finished, here or by a process that was there before."""
    while not (directory.config.exists() and directory.finished(job.program.config)):
        try:
            if directory.path.exists():
                hold(directory.lock).close()
            heard = train(job.program, directory, listeners, tracked=False)
        except InUseError as error:
            for listener in listeners:
                listener.on_phase(f"waiting: {error}")
            time.sleep(WAIT_S)
            continue
        if heard is not None:
            for listener in listeners:
                listener.on_checkpoint()
            sys.exit(heard.exit_code)


if __name__ == "__main__":
    main()
