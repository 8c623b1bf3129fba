"""Checkpoints of a run, as `checkpoint_writer` writes them, read back exactly; damaged ones are refused by name.

The rings are rebuilt from the rows that were collected. latest.json names the files that count.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.policy import fields
from lowgear.policy.arrays import FloatArray
from lowgear.policy.fields import MAX_COUNT, BadField, entry
from lowgear.policy.files import open_own, read_json
from lowgear.policy.tensors import MOST_HEADER, open_tensors

FORMAT = 1
REMEDY = "start a new run"
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
        return latest
    except BadField as error:
        raise LowgearError(f"{directory.latest} is damaged ({error}): {REMEDY}") from None


def check_updates(directory: RunDirectory, latest: Checkpoint, per_step: int) -> None:
    """Refuse a checkpoint with more updates than a run of so many for each step can have made."""
    most = per_step * latest.steps
    if latest.updates > most:
        raise LowgearError(
            f"{directory.latest} is damaged (updates are {latest.updates}, more than the {most} of {latest.steps} "
            f"steps): {REMEDY}"
        )


def read_state(directory: RunDirectory, latest: Checkpoint, like: Any) -> Any:
    """The learners of a checkpoint, in the shape of `like`; a mismatch is an error, before any number is read."""
    path, expected = directory.state(latest.number, latest.open_steps), flatten(like)
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


def flatten(state: Any) -> dict[str, npt.NDArray[Any]]:
    """A state's arrays by their names in a file."""
    return dict(zip(_names(state), (np.asarray(leaf) for leaf in jax.tree.leaves(state)), strict=True))


def _names(state: Any) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
