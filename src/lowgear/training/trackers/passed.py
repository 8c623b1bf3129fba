"""Which lines of a run each tracker was told, kept in followed.json for the process that tells it next.

For runs that another process trains: whoever follows them may be killed at any moment, before or after it has told.
"""

import contextlib
import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField
from lowgear.policy.files import WriteError, read_json, write_whole
from lowgear.training.progress import LogLine

NAME = "followed.json"


def key_of(line: LogLine) -> str:
    """What lines of one kind and agent share; their steps go up."""
    return f"{line['kind']} {line['agent']}"


class Passed:
    """The steps up to which each tracker was told each agent's lines; each tracker asks from its own thread."""

    def __init__(self, path: Path, steps: int = -1) -> None:
        self._path, self._least = path, steps  # steps: lines up to there were told in another way
        self._steps: dict[str, dict[str, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        if path.exists():
            with contextlib.suppress(LowgearError, BadField):  # then all is told again
                self._read()

    def new(self, tracker: str, lines: Sequence[LogLine]) -> list[LogLine]:
        """Those that a tracker was not told."""
        steps = self._steps[tracker]
        return [line for line in lines if line["steps"] > steps.get(key_of(line), self._least)]

    def note(self, tracker: str, lines: Sequence[LogLine]) -> None:
        """It was told them."""
        with self._lock:
            self._steps[tracker] |= {key_of(line): line["steps"] for line in lines}
            self._keep()

    def end(self) -> None:
        """All was told, and nobody needs to go on."""
        with self._lock, contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        """Where it cannot be written, the next process tells some lines again."""
        with contextlib.suppress(WriteError):
            write_whole(self._path, json.dumps(self._steps).encode())

    def _read(self) -> None:
        for tracker, steps in read_json(self._path, "list of steps", "delete it").items():
            for key, value in fields.entries(tracker, steps).items():
                self._steps[tracker][key] = fields.whole(key, value, 0, fields.MAX_COUNT)
