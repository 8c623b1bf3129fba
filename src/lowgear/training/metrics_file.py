"""metrics.jsonl: what is written of a run, in the order of its steps however late an evaluation ends."""

import json
from dataclasses import dataclass
from pathlib import Path

from lowgear import LowgearError
from lowgear.training.collect import FinishedEpisode
from lowgear.training.progress import LogLine


@dataclass
class Interval:
    """What happened to one agent since the last log line."""

    episodes: list[FinishedEpisode]
    last: FinishedEpisode | None = None  # of earlier intervals, shown until a new one ends

    @property
    def shown(self) -> list[FinishedEpisode]:
        """What a log line tells of."""
        return self.episodes or ([self.last] if self.last else [])

    def next(self) -> "Interval":
        """The one after the line."""
        return Interval([], self.shown[-1] if self.shown else None)


class MetricsFile:
    """Takes lines as they come; those after an evaluation that is under way wait for it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._waiting: list[LogLine] = []

    @property
    def size(self) -> int:
        """Of the file, in bytes."""
        return self._path.stat().st_size if self._path is not None and self._path.exists() else 0

    def add(self, lines: list[LogLine], waits: bool) -> None:
        """Write lines, now or after what they wait for."""
        if waits:
            self._waiting += lines
        else:
            self._append(lines)

    def add_awaited(self, lines: list[LogLine]) -> None:
        """Write what others waited for, then those."""
        waiting, self._waiting = self._waiting, []
        self._append(lines + waiting)

    def close(self) -> None:
        """Where a run broke off, what its lines waited for is lost; they need not be."""
        if self._waiting:
            self.add_awaited([])

    def cut(self, size: int | None) -> None:
        """Back to so many bytes, as a checkpoint says, or to nothing."""
        if self._path is None or not self._path.exists():
            return
        if size is None:
            self._path.unlink()
        else:
            with self._path.open("r+b") as file:
                file.truncate(size)

    def _append(self, lines: list[LogLine]) -> None:
        if self._path is None:
            return
        text = "".join(json.dumps(line) + "\n" for line in lines)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise LowgearError(f"could not write {self._path}: {error.strerror}") from None
