"""Writes a run's checkpoints, so that `checkpoint` reads them back exactly, whenever the run is killed.

Collected rows are appended to a file as they come, so a checkpoint costs what was collected since the one before, not
the whole ring. A file counts only once latest.json names it: a run that is killed at any moment is found as its last
checkpoint left it. Where a run is to outlive a full disk, rows are kept in memory until a checkpoint has them, at most
as many as the rings hold.
"""

import contextlib
import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from safetensors.numpy import save as pack_tensors

from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.arrays import FloatArray
from lowgear.policy.files import WriteError, open_own, sync_folder, write_whole
from lowgear.training.checkpoint import Checkpoint, flatten

OURS = ("rows-*.bin", "state-*.safetensors", "*.partial")  # files of a checkpoint's directory that may be deleted


class Checkpoints:
    """Writes a run's checkpoints: rows as they come, the rest in the background."""

    def __init__(
        self, directory: RunDirectory, config: RunConfig, latest: Checkpoint | None = None, keeps: bool = False
    ) -> None:
        self._directory, self._capacity = directory, config.capacity + config.recipe.chunk
        self._latest = latest  # on disk
        self._number = latest.number if latest else 0
        self._segments = [list(segment) for segment in latest.segments] if latest else []
        self._steps = latest.open_steps if latest else 0
        self._open = (self._number, self._steps)  # of a segment that goes on
        if self._steps:
            self._segments.pop()
        self._file: IO[bytes] | None = None
        self._kept: dict[int, list[FloatArray]] | None = {} if keeps else None  # rows that no checkpoint has yet
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None
        self._remove_unnamed(latest)

    @property
    def number(self) -> int:
        """Checkpoints so far."""
        return self._number

    @property
    def appended(self) -> int:
        """Steps since the last checkpoint."""
        return self._steps

    def append(self, chunk: FloatArray) -> None:
        """Write down a chunk (P, K, width)."""
        if self._kept is not None:
            self._kept.setdefault(self._number, []).append(chunk)
            self._steps += chunk.shape[1]
            return
        try:
            if self._file is None:
                path = self._directory.rows(self._number)
                if not self._steps:
                    path.unlink(missing_ok=True)
                self._file = open_own(path, "ab" if self._steps else "xb")
            self._file.write(chunk.tobytes())
        except OSError as error:
            raise _full(self._directory, error) from None
        self._steps += chunk.shape[1]

    def end_segment(self) -> None:
        """What was appended since the last checkpoint belongs to the next one, which `commit` makes."""
        self._segments.append([self._number, self._steps])
        while sum(count for _, count in self._segments[1:]) >= self._capacity:
            number, _ = self._segments.pop(0)
            if self._kept is not None:
                self._kept.pop(number, None)
        self._number += 1
        self._steps = 0

    def commit(self, steps: int, updates: int, metrics_bytes: int, best: list[float], state: Any) -> None:
        """Make the segments that have ended, and the learners' `state`, the new checkpoint."""
        self.wait()
        latest = Checkpoint(self._number, steps, updates, metrics_bytes, best, [list(s) for s in self._segments])
        file, self._file = self._file, None
        self._writing = self._pool.submit(self._write, latest, file, state)

    def commit_open(self, steps: int, updates: int, metrics_bytes: int, best: list[float], state: Any) -> None:
        """The same where a run is stopped: its episodes go on when it does. Nothing may be appended after it."""
        self.wait()
        if self._steps:
            segments = [*self._segments, [self._number, self._steps]]
            latest = Checkpoint(self._number, steps, updates, metrics_bytes, best, segments, self._steps)
            file, self._file = self._file, None
            self._write(latest, file, state)

    def note_end(self, metrics_bytes: int, best: list[float]) -> None:
        """Add to the last checkpoint what the evaluation after it has found, for a run that goes on from its end."""
        self.wait()
        if self._latest is not None and metrics_bytes > self._latest.metrics_bytes:
            noted = replace(self._latest, end_metrics_bytes=metrics_bytes, end_best=best)
            write_whole(self._directory.latest, json.dumps(asdict(noted)).encode())
            self._latest = noted

    def poll(self) -> bool:
        """Whether a checkpoint is on disk since this was last asked; raises what went wrong with it."""
        if self._writing is None or not self._writing.done():
            return False
        return self.wait()

    def wait(self) -> bool:
        """Until the checkpoint under way is on disk, if there is one; raises what went wrong with it."""
        if self._writing is None:
            return False
        writing, self._writing = self._writing, None
        writing.result()
        return True

    def close(self) -> None:
        """Finish what is under way."""
        try:
            self.wait()
        finally:
            self._pool.shutdown()
            if self._file is not None:
                with contextlib.suppress(OSError):  # no checkpoint names this file
                    self._file.close()

    def _write(self, latest: Checkpoint, file: IO[bytes] | None, state: Any) -> None:
        try:
            self._write_all(latest, file, state)
        except WriteError:
            if self._kept is not None:
                self._remove_unnamed(self._latest)  # to make room for the next attempt
            raise
        self._latest = latest
        self._remove_unnamed(latest)
        if self._kept is not None:
            for number, _ in latest.segments:
                self._kept.pop(number, None)

    def _write_all(self, latest: Checkpoint, file: IO[bytes] | None, state: Any) -> None:
        directory = self._directory
        try:
            if file is not None:
                with file:
                    file.flush()
                    os.fsync(file.fileno())
            self._write_kept(latest)
            _sync(directory.metrics)
        except OSError as error:
            raise _full(directory, error) from None
        write_whole(directory.state(latest.number, latest.open_steps), pack_tensors(flatten(state)))
        for folder in (directory.path, directory.policies, directory.checkpoint):  # before anything names what is there
            sync_folder(folder)
        write_whole(directory.latest, json.dumps(asdict(latest)).encode())
        sync_folder(directory.checkpoint)  # before what the one before named is deleted

    def _write_kept(self, latest: Checkpoint) -> None:
        """Rows from memory, whatever an attempt before has left of them."""
        kept = self._kept or {}
        for number in [number for number, _ in latest.segments if number in kept]:
            chunks = kept[number]
            path, open_steps = self._directory.rows(number), self._open[1] if number == self._open[0] else 0
            if not open_steps:
                path.unlink(missing_ok=True)
            with open_own(path, "r+b" if open_steps else "xb") as file:
                file.truncate(open_steps * chunks[0].nbytes // chunks[0].shape[1])
                file.seek(0, os.SEEK_END)
                for chunk in chunks:
                    file.write(chunk.tobytes())
                file.flush()
                os.fsync(file.fileno())

    def _remove_unnamed(self, latest: Checkpoint | None) -> None:
        """Delete what latest.json does not name, except rows being collected right now."""
        named = {self._directory.rows(self._number)} if self._file is not None else set()
        if latest is not None:
            named |= {self._directory.rows(number) for number, _ in latest.segments}
            named |= {self._directory.state(latest.number, latest.open_steps), self._directory.latest}
            named.add(self._directory.rows(latest.number))  # may be opened while this runs
        for pattern in OURS:
            for path in self._directory.checkpoint.glob(pattern):
                if path not in named:
                    with contextlib.suppress(OSError):  # it is in nobody's way
                        path.unlink()


def _sync(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _full(directory: RunDirectory, error: OSError) -> WriteError:
    return WriteError(
        f"could not write to {directory.checkpoint}: {error.strerror}; the last checkpoint is whole: "
        f"make room, then `lowgear train --resume {directory.path}`"
    )
