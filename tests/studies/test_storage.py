"""Runs at a URL: whole at any moment, whatever is cut short."""

import json
import uuid
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.commands.executors import Place
from lowgear.config.run_directory import RunDirectory
from lowgear.studies.storage import Remote
from lowgear.training.checkpoint import read_latest
from lowgear.training.checkpoint_writer import Checkpoints
from tests.fixtures.runs import make_run

pytest.importorskip("fsspec")
STATE = {"a": np.arange(6, dtype=np.float32)}


@pytest.fixture
def remote() -> Remote:
    return Remote(f"memory://{uuid.uuid4().hex}/runs")


@pytest.fixture
def run(tmp_path):
    """A run's directory, and what makes its next checkpoint."""
    directory = RunDirectory(make_run(tmp_path / "here" / "run"))
    config = replace(directory.read_config(), agents=directory.read_config().agents[:2])
    checkpoints = Checkpoints(directory, config)

    def go_on(steps: int) -> None:
        checkpoints.append(np.full((2, 32, 5), steps, np.float32))
        checkpoints.end_segment()
        checkpoints.commit(steps, 0, 10, [0.0, 0.0], STATE)
        checkpoints.wait()

    go_on(32)
    yield directory, go_on
    checkpoints.close()


def contents(directory: RunDirectory) -> dict[str, bytes]:
    paths = [path for path in directory.path.rglob("*") if path.is_file() and path.name != "lock"]
    return {path.relative_to(directory.path).as_posix(): path.read_bytes() for path in paths}


def test_a_run_comes_back_as_it_was_sent(tmp_path, remote, run) -> None:
    directory, go_on = run
    other = RunDirectory(tmp_path / "there" / "run")
    assert not remote.fetch(other.path)
    remote.check()
    remote.send(directory)
    go_on(64)
    remote.send(directory)
    assert remote.names() == ["run"]
    assert remote.fetch(other.path)
    assert contents(other) == contents(directory)
    assert read_latest(other) == read_latest(directory)
    light = RunDirectory(tmp_path / "light" / "run")
    remote.fetch(light.path, checkpoints=False)
    assert light.finished(light.read_config())
    assert not any(light.checkpoint.iterdir())


@pytest.mark.parametrize("cut", range(20))
def test_a_send_that_is_cut_short_leaves_a_checkpoint_that_is_whole(tmp_path, remote, run, cut, monkeypatch) -> None:
    """Whichever write is the last."""
    directory, go_on = run
    remote.send(directory)
    go_on(64)
    put, count = remote._put, iter(range(cut))

    def fails(source, path):
        if next(count, None) is None:
            raise OSError("connection lost")
        put(source, path)

    monkeypatch.setattr(remote, "_put", fails)
    try:
        remote.send(directory)
    except LowgearError as error:
        assert "cannot be written to (connection lost)" in str(error)  # noqa: PT017
    other = RunDirectory(tmp_path / "there" / "run")
    remote.fetch(other.path)
    latest = read_latest(other)
    assert latest is not None
    assert latest.steps in (32, 64)
    assert other.state(latest.number).exists()
    for number, steps in latest.segments:
        assert other.rows(number).stat().st_size == steps * 2 * 5 * 4
    json.loads(other.config.read_text())


@pytest.mark.parametrize("url", ["nosuch://a/b", "file:///proc/none"])
def test_a_store_that_cannot_be_used_is_named(url) -> None:
    with pytest.raises(LowgearError, match=url):
        Remote(url).check()


def test_a_run_that_other_machines_did_not_leave_there_is_named(tmp_path, remote, run) -> None:
    remedy = "name a place that all machines see as --storage"
    assert remote.bring(tmp_path / "run") == f"{remote.url} has no run run: {remedy}"
    remote.send(run[0])
    assert remote.bring(tmp_path / "run") == ""
    assert (tmp_path / "run" / "config.json").exists()


def test_a_directory_holds_the_runs_of_several_commands(tmp_path) -> None:
    place = Place(None, "10.0.0.1:6379", str(tmp_path / "a disk"), 2.0, None)
    place.keep_below("walker")
    assert place.remote.url == f"file://{tmp_path}/a disk/walker"
    place.remote.check()
    assert (tmp_path / "a disk" / "walker").is_dir()
    assert place.words == f" --ray 10.0.0.1:6379 --storage '{tmp_path}/a disk' --cpus 2"
    assert Place(None, "auto", None, None, None).words == " --ray"
