"""Checkpoints of a run: written atomically, read back exactly.

Collected rows are appended to a file as they come, so a checkpoint costs what was collected since the one before, not
the whole ring. The rings are rebuilt from these rows. A file counts only once latest.json names it: a run that is
killed at any moment is found as its last checkpoint left it. Where a run is to outlive a full disk, rows are kept in
memory until a checkpoint has them, at most as many as the rings hold.
"""

import contextlib
import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np
import numpy.typing as npt
from safetensors.numpy import save as pack_tensors

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy import fields
from lowgear.policy.arrays import FloatArray
from lowgear.policy.fields import MAX_COUNT, BadField, entry
from lowgear.policy.files import WriteError, open_own, read_json, sync_folder, write_whole
from lowgear.policy.tensors import MOST_HEADER, open_tensors

FORMAT = 1
REMEDY = "start a new run"
OURS = ("rows-*.bin", "state-*.safetensors", "*.partial")  # files of a checkpoint's directory that may be deleted
MOST_SEGMENTS = 2**16
LARGEST = 1e300  # of a score


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood when a checkpoint was made."""

    number: int
    steps: int  # taken by each agent; the last chunk of them is collected but not yet learned from
    updates: int  # made by each learner
    metrics_bytes: int  # length of metrics.jsonl
    best: list[float]  # each agent's best score while training
    segments: list[list[int]]  # (checkpoint number, steps) of each file of rows that is still needed
    open_steps: int = 0  # of the last of them, after which the run was stopped within its episodes
    end_metrics_bytes: int = 0  # with the evaluation after the run's last step; 0 where there was none
    end_best: list[float] = field(default_factory=list)
    format: int = FORMAT


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
        self.wait()
        return True

    def wait(self) -> None:
        """Until the checkpoint under way is on disk; raises what went wrong with it."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

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
        write_whole(directory.state(latest.number, latest.open_steps), pack_tensors(_flatten(state)))
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


def read_latest(directory: RunDirectory) -> Checkpoint | None:
    """The last checkpoint's, or None before the first; anything in it that cannot be right is an error."""
    if not directory.latest.is_file():
        return None
    raw = read_json(directory.latest, "checkpoint", REMEDY)
    try:
        if entry(raw, "format") != FORMAT:
            shown = fields.shown(raw["format"])
            raise LowgearError(f"{directory.latest} has format {shown}; this version reads {FORMAT}: {REMEDY}")
        latest = Checkpoint(
            number=fields.whole("number", entry(raw, "number"), 0, MAX_COUNT),
            steps=fields.whole("steps", entry(raw, "steps"), 1, MAX_COUNT),
            updates=fields.whole("updates", entry(raw, "updates"), 0, MAX_COUNT),
            metrics_bytes=fields.whole("metrics_bytes", entry(raw, "metrics_bytes"), 0, _size(directory.metrics)),
            best=[_score(score) for score in fields.items("best", entry(raw, "best"))],
            segments=[_segment(pair) for pair in fields.items("segments", entry(raw, "segments"), 1, MOST_SEGMENTS)],
            open_steps=fields.whole("open_steps", raw.get("open_steps", 0), 0, MAX_COUNT),  # which earlier files lack
            end_metrics_bytes=fields.whole("end_metrics_bytes", raw.get("end_metrics_bytes", 0), 0, MAX_COUNT),
            end_best=[_score(score) for score in fields.items("end_best", raw.get("end_best", []), 0)],
        )
        numbers, last = [number for number, _ in latest.segments], latest.segments[-1]
        if numbers != sorted(set(numbers)):
            raise BadField("segments are not in the order of their numbers")
        if last != [latest.number, latest.open_steps] if latest.open_steps else last[0] >= latest.number:
            raise BadField("the last segment is not the one before the checkpoint")
        if sum(steps for _, steps in latest.segments) > latest.steps:
            raise BadField(f"segments hold more than the {latest.steps} steps that were taken")
        if len(latest.end_best) not in (0, len(latest.best)):
            raise BadField(f"end_best has {len(latest.end_best)} scores, best {len(latest.best)}")
        if latest.updates > latest.steps:
            raise BadField(f"updates are {latest.updates}, more than the {latest.steps} steps")
        return latest
    except BadField as error:
        raise LowgearError(f"{directory.latest} is damaged ({error}): {REMEDY}") from None


def read_state(directory: RunDirectory, latest: Checkpoint, like: Any) -> Any:
    """The learners of a checkpoint, in the shape of `like`; a mismatch is an error, before any number is read."""
    path, expected = directory.state(latest.number, latest.open_steps), _flatten(like)
    most = MOST_HEADER + 8 + sum(value.nbytes for value in expected.values())
    with open_tensors(path, "state of a checkpoint", REMEDY, most) as file:
        for name in sorted(expected.keys() | file.declared.keys()):
            have, want = file.declared.get(name), expected.get(name)
            if have is None or want is None or have.shape != want.shape or have.kind != want.dtype:
                raise LowgearError(
                    f"{path} does not fit this run ({fields.shown(name)}), it is of another task or version of "
                    "Lowgear: start a new run; this one's policies can still be evaluated and exported"
                )
        leaves = [file.read(name, expected[name].dtype, expected[name].shape) for name in _names(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves) if leaves else like


def read_rows(
    directory: RunDirectory, latest: Checkpoint, population: int, chunk: int, width: int
) -> Iterator[FloatArray]:
    """Every chunk (P, K, width) that a checkpoint still needs, oldest first."""
    if len(latest.best) != population:
        raise LowgearError(f"{directory.latest} is of {len(latest.best)} agents, not of {population}: {REMEDY}")
    count = population * chunk * width
    for number, steps in latest.segments:
        path = directory.rows(number)
        size, wanted = _size(path), steps * population * width * 4
        if latest.open_steps and number == latest.number and size > wanted:  # a run that went on from here was killed
            with open_own(path, "r+b") as file:
                file.truncate(wanted)
        elif size != wanted or steps % chunk:
            raise LowgearError(f"{path} has {size} bytes instead of {wanted}, in whole chunks: {REMEDY}")
        with path.open("rb") as file:
            for _ in range(steps // chunk):
                yield np.fromfile(file, np.float32, count).reshape(population, chunk, width)


def rewrite_last(directory: RunDirectory, latest: Checkpoint, chunk: FloatArray) -> None:
    """Put a chunk (P, K, width) in the place of the last one that a checkpoint names."""
    with open_own(directory.rows(latest.segments[-1][0]), "r+b") as file:
        file.seek(-chunk.nbytes, os.SEEK_END)
        file.write(chunk.tobytes())


def _sync(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _score(value: Any) -> float:
    """The best score of an agent: any number, or minus infinity before its first evaluation."""
    return -math.inf if value == -math.inf else fields.number("a score in best", value, -LARGEST, LARGEST)


def _segment(raw: Any) -> list[int]:
    number, steps = fields.items("a segment", raw, 2, 2)
    return [
        fields.whole("a segment's number", number, 0, MAX_COUNT),
        fields.whole("a segment's steps", steps, 1, MAX_COUNT),
    ]


def _flatten(state: Any) -> dict[str, npt.NDArray[Any]]:
    return dict(zip(_names(state), (np.asarray(leaf) for leaf in jax.tree.leaves(state)), strict=True))


def _names(state: Any) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]


def _full(directory: RunDirectory, error: OSError) -> WriteError:
    return WriteError(
        f"could not write to {directory.checkpoint}: {error.strerror}; the last checkpoint is whole: "
        f"make room, then `lowgear train --resume {directory.path}`"
    )
