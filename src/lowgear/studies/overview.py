"""Where a study stands, kept in status.json for whoever asks: `lowgear study status`.

A thread writes it every other second, so that one can also tell whether the study's process is still there.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.files import WriteError, read_json, write_whole
from lowgear.studies.child import Result
from lowgear.studies.executors import Watcher
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.schedule import makespan
from lowgear.training.progress import Listener, Pace

NAME = "status.json"
EVERY_S = 2.0
SILENT_S = 30.0  # after which a process that nothing is heard of is taken for gone
STATES = ("planned", "running", "done", "failed", "stopped")
ENDS = ("going", "done", "stopped", "failed")
MOST_PROGRAMS = 100_000
LARGEST = 1e15


@dataclass
class ProgramStatus:
    """Of one program."""

    name: str
    task: str
    gears: str
    agents: int
    steps: int  # of each agent
    state: str = "planned"
    done: int = 0  # steps of each agent
    rate: float | None = None  # steps of each agent a second
    phase: str | None = None  # where it runs and does not learn
    why: str = ""  # it failed, or was started again
    losses: int = 0
    seconds: float | None = None  # that it is thought to take before it has begun

    @property
    def left_s(self) -> float | None:
        """Seconds that are left of it, as far as is known."""
        if self.state not in ("planned", "running"):
            return 0.0
        if self.state == "running" and self.rate:
            return (self.steps - self.done) / self.rate
        return None if self.seconds is None else self.seconds * (1 - self.done / max(1, self.steps))


@dataclass
class StudyStatus:
    """Of a whole study."""

    study: str
    slots: int  # programs at once
    state: str = "going"
    doing: str = ""  # besides its programs
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    began: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)
    programs: list[ProgramStatus] = field(default_factory=list)

    @property
    def left_s(self) -> float | None:
        """Seconds until the last program ends, longest first; None where that of one is not known."""
        times = [program.left_s for program in self.programs]
        known = [seconds for seconds in times if seconds is not None]
        return None if len(known) < len(times) else makespan(known, self.slots)

    @property
    def dead(self) -> bool:
        """Whether it says that it goes on, and its process is gone."""
        if self.state != "going":
            return False
        if time.time() - self.updated > SILENT_S:
            return True
        return self.host == socket.gethostname() and not _lives(self.pid)


class Overview(Watcher):
    """Keeps a study's status.json."""

    def __init__(self, path: Path, study: str, slots: int = 1) -> None:
        self._path = path / NAME
        self.status = StudyStatus(study, slots)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="overview", daemon=True)

    def begin(self) -> None:
        """From now on it is kept."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._write()
        self._thread.start()

    def plan(self, programs: Iterable[ProgramStatus]) -> None:
        """Programs that are to come, or are there."""
        with self._lock:
            known = {program.name for program in self.status.programs}
            self.status.programs += [program for program in programs if program.name not in known]

    def doing(self, text: str) -> None:
        """Say what the study is at, besides its programs."""
        self.status.doing = text

    def on_progress(self, program: Program, progress: ProgramProgress) -> None:
        """Of a program that runs."""
        self.change(program.name, state="running", done=progress.steps, rate=progress.rate, phase=progress.phase)

    def on_loss(self, program: Program, why: str) -> None:
        """It waits for its next turn."""
        found = self._find(program.name)
        self.change(program.name, state="planned", rate=None, phase=None, why=why, losses=found.losses + 1)

    def on_end(self, program: Program, result: Result) -> None:
        """It is over."""
        done = {"done": program.config.steps} if result.kind == "done" else {}
        self.change(program.name, state=result.kind, rate=None, phase=None, why=result.why, **done)

    def change(self, name: str, **values: Any) -> None:
        """Some of what is known of a program."""
        found = self._find(name)
        with self._lock:
            for key, value in values.items():
                setattr(found, key, value)

    def listener(self, program: Program, done: int) -> Listener:
        """Hears a program that runs in this process."""
        return _Heard(self, program, done)

    def end(self, state: str) -> None:
        """The study is over."""
        self.status.state, self.status.doing = state, ""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._write()

    def _find(self, name: str) -> ProgramStatus:
        return next(program for program in self.status.programs if program.name == name)

    def _write_on(self) -> None:
        while not self._over.wait(EVERY_S):
            self._write()

    def _write(self) -> None:
        with self._lock:
            self.status.updated = time.time()
            data = json.dumps(asdict(self.status)).encode()
        with contextlib.suppress(WriteError):  # whoever asks sees less; the study goes on
            write_whole(self._path, data)


class _Heard(Listener):
    """A program of this process, told to the overview."""

    def __init__(self, overview: Overview, program: Program, done: int) -> None:
        self._overview, self._program, self._pace = overview, program, Pace()
        self._steps, self._phase = done, None if done else "starting"
        self._tell()

    def on_phase(self, phase: str | None) -> None:
        self._phase = phase
        self._pace.restart()
        self._tell()

    def on_steps(self, steps: int) -> None:
        self._steps = steps
        self._pace.mark(steps, time.monotonic())
        self._tell()

    def _tell(self) -> None:
        self._overview.on_progress(self._program, ProgramProgress("", self._steps, self._pace.rate, self._phase, ()))


def find(path: Path) -> list[StudyStatus]:
    """Of the studies in a directory, or of the one that it is; the last to be heard of first."""
    paths = [path / NAME] if (path / NAME).is_file() else sorted(path.glob(f"*/{NAME}"))
    if not paths:
        raise LowgearError(f"{path} has no study: name the --out of `lowgear study`, or a study's directory in it")
    return sorted((read(each) for each in paths), key=lambda status: -status.updated)


def read(path: Path) -> StudyStatus:
    """A status from its file, checked."""
    remedy = "delete it; the study writes it anew"
    raw = read_json(path, "status of a study", remedy, 1 << 26)
    try:
        return StudyStatus(
            study=fields.word("study", entry(raw, "study")),
            slots=fields.whole("slots", entry(raw, "slots"), 1, fields.MAX_COUNT),
            state=fields.one_of("state", entry(raw, "state"), ENDS),
            doing=str(entry(raw, "doing"))[:200],
            host=str(entry(raw, "host"))[:200],
            pid=fields.whole("pid", entry(raw, "pid"), 1, 2**31 - 1),
            began=fields.number("began", entry(raw, "began"), 0, LARGEST),
            updated=fields.number("updated", entry(raw, "updated"), 0, LARGEST),
            programs=[
                _program(fields.entries("a program", each))
                for each in fields.items("programs", entry(raw, "programs"), 0, MOST_PROGRAMS)
            ],
        )
    except BadField as error:
        raise LowgearError(f"{path} is damaged ({error}): {remedy}") from None


def _program(raw: dict[str, Any]) -> ProgramStatus:
    def word(name: str) -> str:
        return str(entry(raw, name))[:300]

    def count(name: str) -> int:
        return fields.whole(name, entry(raw, name), 0, fields.MAX_COUNT)

    return ProgramStatus(
        name=word("name"),
        task=word("task"),
        gears=word("gears"),
        agents=count("agents"),
        steps=count("steps"),
        state=fields.one_of("state", entry(raw, "state"), STATES),
        done=count("done"),
        rate=_number("rate", entry(raw, "rate")),
        phase=None if entry(raw, "phase") is None else word("phase"),
        why=word("why"),
        losses=count("losses"),
        seconds=_number("seconds", entry(raw, "seconds")),
    )


def _number(name: str, value: Any) -> float | None:
    return None if value is None else fields.number(name, value, 0, LARGEST)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
