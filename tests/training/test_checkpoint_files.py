"""Checkpoints that were edited or come from elsewhere: refused by name, in little memory, within their directory."""

import json
import math
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as pack

from lowgear import LowgearError
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.training.checkpoint import Checkpoint, check_updates, read_latest, read_rows, read_state
from lowgear.training.checkpoint_writer import Checkpoints

STATE = {"a": np.zeros((2, 3), np.float32), "b": np.zeros(4, np.bool_)}
LATEST = Checkpoint(2, 128, 64, 10, [1.5, -math.inf], [[0, 64], [1, 64]])


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "run")
    made.create(resolve(find("walker-stand"), steps=128, seeds=(0, 1)), {})
    made.metrics.write_bytes(b"x" * 10)
    made.latest.write_text(json.dumps(asdict(LATEST)))
    made.state(2).write_bytes(pack({"['a']": STATE["a"], "['b']": STATE["b"]}))
    for number, _ in LATEST.segments:
        made.rows(number).write_bytes(np.full((64, 2, 3), number, np.float32).tobytes())
    return made


def rows(run: RunDirectory, latest: Checkpoint = LATEST) -> list[np.ndarray]:
    return list(read_rows(run, latest, 2, 64, 3))


def test_a_whole_checkpoint_is_read(run: RunDirectory) -> None:
    assert read_latest(run) == LATEST
    assert [chunk.mean() for chunk in rows(run)] == [0, 1]
    np.testing.assert_array_equal(read_state(run, LATEST, STATE)["a"], STATE["a"])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("number", "../../../home/x", "number is '../../../home/x'"),
        ("number", -1, "number is -1"),
        ("number", 1, "the last segment is not the one before the checkpoint"),
        ("steps", 1.5, "steps is 1.5"),
        ("steps", 64, "segments hold more than the 64 steps that were taken"),
        ("updates", -1, "updates is -1"),
        ("metrics_bytes", 11, "metrics_bytes is 11, not a whole number from 0 to 10"),
        ("metrics_bytes", 2**62, "metrics_bytes is 4611686018427387904"),
        ("best", [float("nan"), 0.0], "a score in best is nan"),
        ("best", "ab", "best is 'ab'"),
        ("segments", [], "segments is a list of 0"),
        ("segments", [["../x", 64]], "a segment's number is '../x'"),
        ("segments", [[0, -64]], "a segment's steps is -64"),
        ("segments", [[1, 64], [0, 64]], "segments are not in the order"),
        ("segments", [[0, 64], [0, 64]], "segments are not in the order"),
        ("segments", [[0]], "a segment is a list of 1"),
    ],
)
def test_every_entry_has_a_type_and_a_range(run: RunDirectory, name: str, value: Any, says: str) -> None:
    run.latest.write_text(json.dumps(asdict(LATEST) | {name: value}))
    with pytest.raises(LowgearError) as caught:
        read_latest(run)
    assert str(caught.value).startswith(f"{run.latest} is damaged ({says}")
    assert str(caught.value).endswith("): start a new run")


@pytest.mark.parametrize(("per_step", "most"), [(1, 128), (2, 256)])
def test_no_more_updates_than_a_run_can_have_made(run: RunDirectory, per_step: int, most: int) -> None:
    check_updates(run, replace(LATEST, updates=most), per_step)
    with pytest.raises(
        LowgearError, match=rf"damaged \(updates are {most + 1}, more than the {most} of 128 steps\): start"
    ):
        check_updates(run, replace(LATEST, updates=most + 1), per_step)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"format": 1}', '{"format": [1]}'])
def test_what_is_no_checkpoint(run: RunDirectory, text: str) -> None:
    run.latest.write_text(text)
    with pytest.raises(LowgearError, match=r"latest\.json.*: start a new run"):
        read_latest(run)


def test_rows_of_other_sizes(run: RunDirectory) -> None:
    os.truncate(run.rows(1), 1 << 40)
    with pytest.raises(LowgearError, match=r"rows-1\.bin has 1099511627776 bytes instead of 1536"):
        rows(run)
    with pytest.raises(LowgearError, match=r"latest\.json is of 1 agents, not of 2"):
        rows(run, Checkpoint(2, 128, 64, 0, [0.0], [[0, 64]]))


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"['a']": STATE["a"]}, "does not fit this run .*'b'"),
        ({"['a']": STATE["a"].astype(np.float64), "['b']": STATE["b"]}, "does not fit this run .*'a'"),
        ({"['a']": STATE["a"].T.copy(), "['b']": STATE["b"]}, "does not fit this run .*'a'"),
        ({"['a']": STATE["a"], "['b']": STATE["b"], "x": STATE["b"]}, "does not fit this run .*x"),
    ],
)
def test_a_state_of_another_run(run: RunDirectory, tensors: dict[str, np.ndarray], says: str) -> None:
    run.state(2).write_bytes(pack(tensors))
    with pytest.raises(LowgearError, match=says):
        read_state(run, LATEST, STATE)


def test_a_state_that_is_too_large_or_holds_what_is_no_bool(run: RunDirectory) -> None:
    data = run.state(2).read_bytes()
    run.state(2).write_bytes(data[:-1] + b"\2")
    with pytest.raises(LowgearError, match="neither true nor false"):
        read_state(run, LATEST, STATE)
    os.truncate(run.state(2), 1 << 40)
    with pytest.raises(LowgearError, match="more than the"):
        read_state(run, LATEST, STATE)


def test_only_files_of_checkpoints_are_deleted(run: RunDirectory) -> None:
    mine = run.checkpoint / "thesis.tex"
    mine.write_text("mine")
    (run.checkpoint / "state-1.safetensors").write_bytes(b"old")
    Checkpoints(run, run.read_config(), LATEST).close()
    assert sorted(path.name for path in run.checkpoint.iterdir()) == [
        "latest.json",
        "rows-0.bin",
        "rows-1.bin",
        "state-2.safetensors",
        "thesis.tex",
    ]
