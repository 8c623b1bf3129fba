"""Which trackers a run has, and how it finds its own runs there again: tracking.json in its directory.

A run whose trackers were chosen, by `--track` or the variable LOWGEAR_TRACK, has that file; with it `--resume` goes on
in the same runs of the trackers, and `lowgear evaluate` and `lowgear report` add to them. It names no store and no
server: those are the machine's to choose.
"""

import json
import os
import re
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.policy import fields
from lowgear.policy.fields import BadField
from lowgear.policy.files import read_json, write_whole
from lowgear.training.trackers.protocol import Ids, Tracker

MODULES = {"tensorboard": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow"}  # what each needs, by its extra
NONE = "none"
VARIABLE = "LOWGEAR_TRACK"
FILE = "tracking.json"
ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def parse(text: str, option: str = "--track") -> tuple[str, ...]:
    """Trackers out of tensorboard, wandb, mlflow, or `none`; one that is unknown, or not installed, is an error."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in (*MODULES, NONE):
            raise LowgearError(f"{option} {fields.shown(text)}: choose from {', '.join(MODULES)}, or write {NONE}")
    if NONE in names and len(names) > 1:
        raise LowgearError(f"{option} {fields.shown(text)}: write {NONE} alone, or leave it out")
    chosen = tuple(name for name in names if name != NONE)
    need(chosen)
    return chosen


def need(names: Sequence[str]) -> None:
    """An error with the command that installs what is missing."""
    for name in names:
        if not installed(name):
            raise LowgearError(
                f"tracking with {name} needs {MODULES[name]}: pip install 'lowgear[{name}]', or track without it"
            )


def installed(name: str) -> bool:
    """Whether a tracker's library is here."""
    return find_spec(MODULES[name]) is not None


def default_trackers() -> tuple[str, ...]:
    """Of `lowgear train`, where none were chosen."""
    return ("tensorboard",) if installed("tensorboard") else ()


def by_variable() -> tuple[str, ...] | None:
    """Those that LOWGEAR_TRACK names; None where it is not set."""
    text = os.environ.get(VARIABLE)
    return parse(text, VARIABLE) if text else None


def make(name: str) -> Tracker:
    """A tracker by its name."""
    if name == "tensorboard":
        from lowgear.training.trackers.tensorboard import TensorBoard

        return TensorBoard()
    if name == "wandb":
        from lowgear.training.trackers.wandb import Wandb

        return Wandb()
    from lowgear.training.trackers.mlflow import Mlflow

    return Mlflow()


class ChosenTrackers:
    """The trackers of a run, each with the ids of its runs there."""

    def __init__(self, path: Path, ids: dict[str, Ids]) -> None:
        self._path, self.ids = path, ids
        self._lock = threading.Lock()

    @classmethod
    def of(cls, directory: RunDirectory, default: Sequence[str] = ()) -> "ChosenTrackers":
        """Those that a run's file names, or else `default`."""
        path = directory.beside(FILE)
        return cls(path, _read(path) if path.is_file() else {name: {} for name in default})

    @classmethod
    def to_train(cls, directory: RunDirectory, default: Sequence[str] = ()) -> "ChosenTrackers":
        """The same for a run to train: LOWGEAR_TRACK goes before `default`, and what is not installed is an error."""
        chosen, by_name = cls.of(directory, default), by_variable()
        if by_name is not None and not directory.beside(FILE).is_file():
            chosen.settle(by_name)
        need(chosen.names)
        return chosen

    @property
    def names(self) -> tuple[str, ...]:
        """Of the trackers."""
        return tuple(self.ids)

    def settle(self, names: Sequence[str]) -> None:
        """From now on these, and no others."""
        self.ids = {name: self.ids.get(name, {}) for name in names}
        self._write()

    def keep(self, name: str, ids: Ids) -> None:
        """What a tracker's runs are found by; from the tracker's own thread."""
        with self._lock:
            self.ids[name] = dict(ids)
            self._write()

    def _write(self) -> None:
        write_whole(self._path, json.dumps(self.ids, indent=1).encode())


def _read(path: Path) -> dict[str, Ids]:
    remedy = "remove it, and the run goes on in new runs of its trackers"
    raw = read_json(path, "list of trackers", remedy)
    found: dict[str, Ids] = {}
    try:
        for name, ids in raw.items():
            fields.one_of("a tracker", name, tuple(MODULES))
            found[name] = {
                fields.text("a run", key): fields.word("an id", value)
                for key, value in fields.entries(name, ids).items()
            }
            for value in found[name].values():
                if not ID.fullmatch(value):
                    raise BadField(f"an id is {fields.shown(value)}, not letters and digits")
    except BadField as error:
        raise LowgearError(f"{path} is damaged ({error}): {remedy}") from None
    return found
