"""Trackers of programs that other processes carry out: the process that asks for the programs tells them.

It follows what the programs write to metrics.jsonl, so a store has one writer, this process's settings count (which
server, which account), and the machines of a cluster need none of the trackers' libraries. When it is killed, the next
one goes on where it was.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.studies.child import Result
from lowgear.studies.executors import Watcher
from lowgear.studies.followed import Followed
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.storage import Remote
from lowgear.training.checkpoint import read_latest
from lowgear.training.provenance import provenance
from lowgear.training.trackers.choice import ChosenTrackers
from lowgear.training.trackers.passed import NAME, Passed
from lowgear.training.trackers.protocol import TrackedRun
from lowgear.training.trackers.tracking import Tracking, provenance_of
from lowgear.training.trackers.worker import GIVE_UP_S

FETCH_EVERY_S = 10.0  # metrics, from a URL
Tell = Callable[[str], None]


class _Metrics:
    """Brings programs' metrics here, where they are at a URL."""

    def __init__(self, runs: Path, remote: Remote | None) -> None:
        self._runs, self._remote = runs, remote
        self._fetched: dict[str, float] = {}

    def bring(self, program: Program) -> None:
        """Now and then."""
        now = time.monotonic()
        if self._remote is not None and now - self._fetched.get(program.name, -FETCH_EVERY_S) >= FETCH_EVERY_S:
            self._fetched[program.name] = now
            folder = self._runs / program.name
            self._remote.fetch_longer(RunDirectory(folder).metrics.name, folder)


class _Passing(Watcher):
    """Lets another watcher hear all that it hears."""

    def __init__(self, heard: Watcher) -> None:
        self._heard = heard

    def on_progress(self, program: Program, progress: ProgramProgress) -> bool | None:
        """Of a program that runs; False stops it at a checkpoint."""
        going = self._heard.on_progress(program, progress)
        self.follow(program)
        return going

    def on_loss(self, program: Program, why: str) -> None:
        """It was lost, and is started again."""
        self._heard.on_loss(program, why)

    def on_end(self, program: Program, result: Result) -> None:
        """It is done, failed or stopped."""
        self._heard.on_end(program, result)

    def follow(self, program: Program) -> None:
        """Pass on what it has logged since."""


class Tracked(_Passing):
    """Of the programs of a study or a sweep: the run of each is one of the trackers' too."""

    def __init__(self, heard: Watcher, runs: Path, tell: Tell, remote: Remote | None = None) -> None:
        super().__init__(heard)
        self._runs, self._tell, self._remote = runs, tell, remote
        self._metrics = _Metrics(runs, remote)
        self._open: dict[str, _TrackedProgram | None] = {}  # None: it has no trackers
        self._closing: list[threading.Thread] = []
        self._told: set[str] = set()

    def follow(self, program: Program) -> None:
        """From when its directory is there."""
        told = self._of(program)
        if told is not None:
            self._metrics.bring(program)
            told.follow()

    def finish(self, program: Program, result: Result) -> None:
        """It has ended, and what it left is here. Its trackers are through when `close` returns."""
        told = self._of(program)
        self._open[program.name] = None
        if told is not None:
            told.finish(result)
            self._close(told)

    def catch_up(self, program: Program) -> None:
        """With a run that was finished when nobody followed it."""
        if (self._runs / program.name / NAME).exists():
            self.finish(program, Result("done"))

    def close(self, at_once: bool = False) -> None:
        """Wait until the trackers are through."""
        for told in filter(None, self._open.values()):
            told.tracking.status = "stopped"
            self._close(told, at_once)
        self._open.clear()
        for thread in self._closing:
            thread.join(GIVE_UP_S if at_once else None)

    def _close(self, told: "_TrackedProgram", at_once: bool = False) -> None:
        """Beside what goes on: a tracker may have much to do."""
        thread = threading.Thread(target=told.close, args=(at_once,), name="tracking", daemon=True)
        self._closing.append(thread)
        thread.start()

    def _of(self, program: Program) -> "_TrackedProgram | None":
        directory = RunDirectory(self._runs / program.name, trust=True)
        if program.name not in self._open and (directory.config.exists() or self._remote is not None):
            self._open[program.name] = self._begin(program, directory)
        return self._open.get(program.name)

    def _begin(self, program: Program, directory: RunDirectory) -> "_TrackedProgram | None":
        try:
            directory.path.mkdir(parents=True, exist_ok=True)
            chosen = ChosenTrackers.to_train(directory)
            return _TrackedProgram(program, directory, chosen, self._say) if chosen.names else None
        except (LowgearError, OSError) as error:  # no tracker is worth a program
            self._say(f"{directory.path.name} is not tracked: {error}")
            return None

    def _say(self, text: str) -> None:
        """Once, whichever programs say it."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)


class _TrackedProgram:
    """One that is followed."""

    def __init__(self, program: Program, directory: RunDirectory, chosen: ChosenTrackers, tell: Tell) -> None:
        origin = provenance_of(directory) if directory.config.exists() else provenance()
        self._directory = directory
        passed = Passed(directory.beside(NAME), _steps_told(directory, chosen))
        self._followed = Followed(directory.metrics, len(program.config.agents))
        self.tracking = Tracking(TrackedRun(directory.path, program.config, origin), chosen, tell, passed)

    def follow(self) -> None:
        _pass_on(self._followed, self.tracking)

    def finish(self, result: Result) -> None:
        self.follow()
        if result.kind != "failed":
            self.tracking.finish(self._directory, result.kind == "done", self._followed.evaluation)

    def close(self, at_once: bool = False) -> None:
        self.tracking.close(at_once)


class TrackedShards(_Passing):
    """Of the programs that a population is spread over: one run of the trackers, with all of its agents."""

    def __init__(
        self,
        heard: Watcher,
        tracking: Tracking | None,  # of the whole run
        runs: Path,
        programs: Sequence[Program],
        remote: Remote | None = None,
    ) -> None:
        super().__init__(heard)
        self._tracking, self._metrics = tracking, _Metrics(runs, remote)
        self._followed: dict[str, Followed] = {}
        first = 0
        for program in programs:
            metrics, agents = RunDirectory(runs / program.name).metrics, len(program.config.agents)
            self._followed[program.name] = Followed(metrics, agents, first)
            first += agents

    def follow(self, program: Program) -> None:
        """Its agents have the numbers that they have in the whole."""
        if self._tracking is not None:
            self._metrics.bring(program)
            _pass_on(self._followed[program.name], self._tracking)

    def finish(self, directory: RunDirectory, finished: bool) -> None:
        """The whole has stopped, or is put together."""
        if self._tracking is not None:
            evaluated = [line for followed in self._followed.values() for line in followed.evaluation]
            self._tracking.finish(directory, finished, evaluated)


@contextmanager
def tracked(heard: Watcher, runs: Path, tell: Tell, remote: Remote | None = None) -> Iterator[Tracked]:
    """A watcher that tells trackers; they are through at the end, or left behind where all is to end at once."""
    watcher, at_once = Tracked(heard, runs, tell, remote), False
    try:
        yield watcher
    except KeyboardInterrupt:
        at_once = True
        raise
    finally:
        watcher.close(at_once)


def _pass_on(followed: Followed, tracking: Tracking) -> None:
    """All that is new, in its order."""
    while lines := followed.lines():
        for kind, own in groupby(lines, key=lambda line: line["kind"]):
            (tracking.on_evaluation if kind == "evaluation" else tracking.on_log)(list(own))
    tracking.on_steps(0)


def _steps_told(directory: RunDirectory, chosen: ChosenTrackers) -> int:
    """Where a run's own process told the trackers until now, that was up to its last checkpoint."""
    own = any(chosen.ids.values()) and directory.config.exists() and not directory.beside(NAME).exists()
    latest = read_latest(directory) if own else None
    return latest.steps if latest is not None else -1
