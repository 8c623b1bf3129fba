"""A run's trackers together, as a listener of its training; and what is added to them afterwards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.files import read_json
from lowgear.training.progress import Listener, LogLine
from lowgear.training.trackers import choice
from lowgear.training.trackers.choice import ChosenTrackers
from lowgear.training.trackers.passed import Passed
from lowgear.training.trackers.protocol import Rows, TrackedRun
from lowgear.training.trackers.tensorboard import FOLDER
from lowgear.training.trackers.worker import Worker

Tell = Callable[[str], None]
EVALUATION = "evaluation"  # the table of a run's last evaluation


class Tracking(Listener):
    """Passes on what it hears; `close` waits for what is still under way."""

    def __init__(self, run: TrackedRun, chosen: ChosenTrackers, tell: Tell, passed: Passed | None = None) -> None:
        self._tell, self._agents, self.status = tell, len(run.config.agents), "failed"
        self._passed = passed
        self._workers = [
            Worker(name, choice.make(name), run, ids, partial(chosen.keep, name), passed)
            for name, ids in chosen.ids.items()
        ]

    def on_log(self, lines: list[LogLine]) -> None:
        """Training figures."""
        self._call("log", "train", list(lines))

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Evaluation figures."""
        self._call("log", "evaluation", list(lines))

    def on_steps(self, steps: int) -> None:  # noqa: ARG002
        """Tell what the trackers have to say."""
        for worker in self._workers:
            for notice in worker.notices():
                self._tell(notice)

    def table(self, name: str, rows: Rows) -> None:
        """One row for each agent and setting."""
        self._call("table", name, list(rows))

    def figure(self, path: Path) -> None:
        """A PNG."""
        self._call("figure", path)

    def policy(self, agent: int, path: Path) -> None:
        """A policy file, if there is one."""
        if path.is_file():
            self._call("policy", agent, path)

    def finish(self, directory: RunDirectory, finished: bool, evaluated: Rows) -> None:
        """A run has stopped, or is finished: then its policies follow, and what they scored last."""
        self.status = "finished" if finished else "stopped"
        if not finished:
            return
        if evaluated:
            self.table(EVALUATION, evaluated)
        for agent in range(self._agents):
            for best in (False, True):
                self.policy(agent, directory.policy(agent, best))

    def close(self, at_once: bool = False) -> None:
        """Let them finish, and tell what they have to say."""
        for worker in self._workers:
            worker.end(self.status, at_once)
        self.on_steps(0)
        if self._passed is not None and self.status == "finished":
            self._passed.end()

    def _call(self, method: str, *arguments: Any) -> None:
        for worker in self._workers:
            worker.call(method, *arguments)


@contextmanager
def tracked(
    directory: RunDirectory | None,
    config: RunConfig,
    default: Sequence[str] | None,
    tell: Tell,
    passed: Passed | None = None,  # where another process trains
) -> Iterator[Tracking | None]:
    """The trackers of a run that is trained, until it ends, however it does; None where it has none.

    Nor has it any where `default` is None: another process tells them.
    """
    chosen = None if directory is None or default is None else ChosenTrackers.to_train(directory, default)
    if directory is None or chosen is None or not chosen.names:
        yield None
        return
    run, at_once = TrackedRun(directory.path, config, provenance_of(directory)), False
    tracking = Tracking(run, chosen, tell, passed)
    try:
        yield tracking
    except (KeyboardInterrupt, SystemExit) as error:
        at_once = isinstance(error, KeyboardInterrupt) or tracking.status != "stopped"
        tracking.status = "stopped"
        raise
    finally:
        tracking.close(at_once)


def add(directory: RunDirectory, config: RunConfig, tell: Tell, table: Rows = (), figures: Sequence[Path] = ()) -> None:
    """Add a table and figures to the trackers' runs of a run that has been trained; what fails is told."""
    try:
        default = choice.default_trackers() if directory.beside(FOLDER).is_dir() else ()
        chosen = ChosenTrackers.of(directory, default)
        choice.need(chosen.names)
    except LowgearError as error:
        tell(str(error))
        return
    tracking = Tracking(TrackedRun(directory.path, config, provenance_of(directory), trains=False), chosen, tell)
    tracking.status = "finished"
    if table:
        tracking.table(EVALUATION, table)
    for path in figures:
        tracking.figure(path)
    tracking.close()


def provenance_of(directory: RunDirectory) -> dict[str, Any]:
    """What a run's directory says of the code that made it."""
    found = read_json(directory.config, "configuration", "start a new run").get("provenance")
    return found if isinstance(found, dict) else {}
