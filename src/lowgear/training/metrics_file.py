"""metrics.jsonl: what is written of a run, in the order of its steps however late an evaluation ends."""

import json
from pathlib import Path

from lowgear.policy.files import WriteError, open_own
from lowgear.training.progress import LogLine


class MetricsFile:
    """Takes lines as they come; those after an evaluation that is under way wait for it.

    What could not be written stays here, and is written before the next lines.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._waiting: list[LogLine] = []
        self._unwritten = b""
        self._whole: int | None = None  # bytes of the file before half of a text was written to it

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
        if self._waiting or self._unwritten:
            self.add_awaited([])

    def cut(self, size: int | None) -> None:
        """Back to so many bytes, as a checkpoint says, or to nothing."""
        if self._path is None or not self._path.exists():
            return
        try:
            if size is None:
                self._path.unlink()
            else:
                with open_own(self._path, "r+b") as file:
                    file.truncate(size)
        except OSError as error:
            raise self._refused(error) from None

    def flush(self) -> None:
        """Write what could not be written before."""
        if self._path is None or not self._unwritten:
            return
        before = self.size if self._whole is None else self._whole
        try:
            with open_own(self._path, "ab") as file:
                self._whole = before
                file.truncate(before)
                file.write(self._unwritten)
        except OSError as error:
            raise self._refused(error) from None
        self._unwritten, self._whole = b"", None

    def _append(self, lines: list[LogLine]) -> None:
        if self._path is None:
            return
        self._unwritten += "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.flush()

    def _refused(self, error: OSError) -> WriteError:
        return WriteError(f"could not write {self._path}: {error.strerror}")
