"""What a run does where it cannot write: it stops, or goes on and tries again at the next checkpoint.

Whoever goes on keeps what was not written: rows (`Checkpoints`), metrics (`MetricsFile`) and, here, policies. A
checkpoint that tells of a policy is made after that policy, so what is on disk always belongs together.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lowgear.policy.files import WriteError

Write = Callable[[Path], None]


class Refusals:
    """Counts what the disk refused, and tells of it: once, and once for each checkpoint that could not be made."""

    def __init__(self, go_on: bool, tell: Callable[[str], None]) -> None:
        self.go_on, self._tell = go_on, tell
        self._waiting: dict[Path, Write] = {}
        self._count = self._count_at_commit = 0

    @contextmanager
    def met(self, checkpoint: bool = False) -> Iterator[None]:
        """What cannot be written within is told, where the run goes on, or else raised."""
        try:
            yield
        except WriteError as error:
            if not self.go_on:
                raise
            self._count += 1
            if checkpoint or self._count == 1:
                self._tell(f"{error}; going on meanwhile, the next checkpoint tries again")

    def save(self, path: Path, write: Write) -> None:
        """Write a file, or keep what writes it for later."""
        self._waiting[path] = write
        with self.met():
            write(path)
            del self._waiting[path]

    def retry(self) -> None:
        """Write the files that wait."""
        for path, write in list(self._waiting.items()):
            write(path)
            del self._waiting[path]

    def committing(self) -> None:
        """A checkpoint begins that holds all there is."""
        self._count_at_commit = self._count

    def committed(self) -> None:
        """It is on disk."""
        if self._count and self._count == self._count_at_commit:
            self._count = self._count_at_commit = 0
            self._tell("everything is on disk again")
