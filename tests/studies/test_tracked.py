"""Programs that others carry out are shown by trackers as those of this process are."""

import json
import shutil
import time
from dataclasses import replace

import pytest

from lowgear.config.run_directory import RunDirectory
from lowgear.studies import program as programs
from lowgear.studies import shards
from lowgear.studies.child import Result
from lowgear.studies.executors import Watcher
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.storage import Remote
from lowgear.studies.tracked import Tracked, TrackedShards, tracked
from lowgear.training.trackers import choice
from lowgear.training.trackers.passed import NAME, Passed
from lowgear.training.trackers.tracking import tracked as tracked_run
from tests.fixtures.trackers import CONFIG, EVALUATED, LOGGED, Recording, new_run, train

PROGRAM = Program("pendulum", CONFIG, 1, 1)
GOING = ProgramProgress("", 32, None, None, ())
DONE, STOPPED = Result("done"), Result("stopped")


@pytest.fixture
def use(monkeypatch):
    """Lets a tracker stand for the one that the variable names."""
    monkeypatch.setenv("LOWGEAR_TRACK", "mlflow")
    monkeypatch.setattr(choice, "installed", lambda _: True)

    def stand(tracker):
        monkeypatch.setattr(choice, "make", lambda _: tracker)
        return tracker

    return stand


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that was trained and not tracked."""
    directory = new_run(tmp_path_factory.mktemp("made"))
    train(directory)
    return directory


@pytest.fixture
def run(tmp_path, made):
    """A copy of it."""
    shutil.copytree(made.path, tmp_path / "pendulum")
    return RunDirectory(tmp_path / "pendulum")


def told(tracker):
    """What a tracker was told, however many lines at once."""
    lines = [(call[1], *one) for call in tracker.calls if call[0] == "log" for one in call[2]]
    return sorted(lines), [call for call in tracker.calls if call[0] != "log"]


def cut(directory, count):
    """As a program that has written so many lines."""
    lines = directory.metrics.read_bytes().splitlines(keepends=True)
    directory.metrics.write_bytes(b"".join(lines[:count]))
    return lines


def follow(path, *results, remote=None):
    notices = []
    with tracked(Watcher(), path, notices.append, remote) as watcher:
        watcher.on_progress(PROGRAM, GOING)
        for result in results:
            watcher.finish(PROGRAM, result)
    return notices


def test_a_tracker_is_told_the_same_as_by_the_process_that_trains(tmp_path, use, run):
    own = use(Recording())
    train(new_run(tmp_path / "own"), trackers=("mlflow",))
    other = use(Recording())
    assert follow(tmp_path, DONE) == ["look here"]
    assert told(other) == told(own)
    assert json.loads(run.beside("tracking.json").read_text()) == {"mlflow": {"population": "made1"}}
    again = use(Recording())
    with tracked(Watcher(), tmp_path, print) as watcher:
        watcher.catch_up(PROGRAM)
    assert again.calls == []  # it was told of the end
    assert not run.beside(NAME).exists()


def test_the_next_process_goes_on_where_one_was_killed(tmp_path, use, run):
    lines, first = cut(run, 3), use(Recording())
    watcher = Tracked(Watcher(), tmp_path, print)
    watcher.on_progress(PROGRAM, GOING)
    deadline = time.monotonic() + 30
    while len(first.calls) < 2 or not all(run.beside(name).exists() for name in ("tracking.json", NAME)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.metrics.write_bytes(b"".join(lines))  # and nobody follows: it is finished meanwhile
    second = use(Recording())
    with tracked(Watcher(), tmp_path, print) as watcher:
        watcher.catch_up(PROGRAM)
    assert second.calls[0][:2] == ("begin", "pendulum")
    assert sorted(told(first)[0] + told(second)[0]) == sorted(
        (group, agent, steps)
        for group, every in (("train", LOGGED), ("evaluation", EVALUATED))
        for steps in every
        for agent in (0, 1)
    )
    assert second.calls[-1] == ("end", "finished")


def test_what_its_own_process_told_before_is_not_told_again(tmp_path, use):
    directory, own = new_run(tmp_path), use(Recording())
    train(directory, trackers=("mlflow",), stop_at=96)
    other = use(Recording())
    follow(tmp_path, STOPPED)
    assert other.calls == [("begin", "pendulum", {"population": "made1"}, True), ("end", "stopped")]
    assert max(steps for _, _, steps in told(own)[0]) == 96


@pytest.mark.parametrize(("result", "status"), [(STOPPED, "stopped"), (Result("failed", "no motor"), "failed")])
def test_a_program_that_did_not_finish_is_said_to_be_so(tmp_path, use, run, result, status):
    cut(run, 5)
    tracker = use(Recording())
    follow(tmp_path, result)
    assert told(tracker)[1] == [("begin", "pendulum", {}, True), ("end", status)]
    later = use(Recording())
    assert follow(tmp_path) == ["look here"]  # the command is stopped while it runs
    assert later.calls == [("begin", "pendulum", {"population": "made1"}, True), ("end", "stopped")]


@pytest.mark.usefixtures("run")
def test_a_slow_tracker_keeps_no_program_waiting(tmp_path, use):
    tracker = use(Recording())
    tracker.held.clear()
    with tracked(Watcher(), tmp_path, print) as watcher:
        began = time.monotonic()
        watcher.on_progress(PROGRAM, GOING)
        watcher.finish(PROGRAM, DONE)
        assert time.monotonic() - began < 10  # it is held for 30 s and more
        assert tracker.calls == []
        tracker.held.set()
    assert tracker.calls[-1] == ("end", "finished")


def test_a_tracker_that_is_missing_costs_no_program(tmp_path, use, run, monkeypatch):
    use(Recording())
    run.beside("tracking.json").write_text('{"wandb": {}}')
    monkeypatch.setattr(choice, "installed", lambda name: name != "wandb")
    (said,) = follow(tmp_path, DONE)
    assert said == (
        "pendulum is not tracked: tracking with wandb needs wandb: pip install 'lowgear[wandb]', or track without it"
    )


def test_runs_without_trackers_are_let_be(tmp_path, run, monkeypatch):
    monkeypatch.delenv("LOWGEAR_TRACK", raising=False)
    before = sorted(path.name for path in run.path.iterdir())
    assert follow(tmp_path, DONE) == []
    assert sorted(path.name for path in run.path.iterdir()) == before


def test_metrics_come_from_a_url_while_a_program_runs(tmp_path, use, made):
    pytest.importorskip("fsspec")
    shutil.copytree(made.path, tmp_path / "bucket" / "pendulum")
    here, remote = tmp_path / "here", Remote((tmp_path / "bucket").as_uri())
    tracker = use(Recording())
    with tracked(Watcher(), here, print, remote) as watcher:
        watcher.on_progress(PROGRAM, GOING)
        assert not (here / "pendulum" / "config.json").exists()
        remote.fetch(here / "pendulum", checkpoints=False)
        watcher.finish(PROGRAM, DONE)
    assert [call[0] for call in told(tracker)[1]] == ["begin", "table", *["policy"] * 4, "end"]
    assert len(told(tracker)[0]) == 2 * (len(LOGGED) + len(EVALUATED))


def test_shards_are_one_run_with_the_agents_of_the_whole(tmp_path, use):
    directory, tracker = new_run(tmp_path), use(Recording())
    directory.create(CONFIG, {})
    runs, parts = directory.path / shards.FOLDER, shards.split(CONFIG, 2)
    with tracked_run(directory, CONFIG, (), print, Passed(directory.beside(NAME))) as tracking:
        watcher = TrackedShards(Watcher(), tracking, runs, parts)
        for part in parts:
            train(RunDirectory(runs / part.name), replace(CONFIG, agents=part.config.agents), trackers=None)
            watcher.on_progress(part, GOING)
        shards.merge(directory, [RunDirectory(runs / part.name) for part in parts])
        watcher.finish(directory, finished=True)
    own = use(Recording())
    train(new_run(tmp_path / "own"), trackers=("mlflow",))
    assert told(tracker) == told(own)
    assert not (directory.path / shards.FOLDER).exists()
    assert not directory.beside(NAME).exists()


def test_a_program_in_a_process_of_its_own_tracks_nothing(tmp_path, use):
    tracker, directory = use(Recording()), new_run(tmp_path)
    assert programs.train(PROGRAM, directory, [], tracked=False) is None
    assert tracker.calls == []
    assert not directory.beside("tracking.json").exists()
    assert programs.train(PROGRAM, new_run(tmp_path / "here"), []) is None
    assert tracker.calls[-1] == ("end", "finished")


def test_shards_that_are_yet_to_be_made_are_none(tmp_path):
    directory = new_run(tmp_path)
    directory.create(CONFIG, {})
    assert shards.existing(directory, CONFIG) == []
    (directory.path / shards.FOLDER).mkdir()  # as a pool makes it that looks whether it can be written to
    assert shards.existing(directory, CONFIG) == []
    (directory.path / shards.FOLDER / "shard0").mkdir()
    assert len(shards.existing(directory, CONFIG)) == 1
