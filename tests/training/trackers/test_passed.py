"""What trackers were told of a run that another process trains is known to the next process."""

import pytest

from lowgear.training.trackers import choice
from lowgear.training.trackers.choice import ChosenTrackers
from lowgear.training.trackers.passed import Passed
from lowgear.training.trackers.protocol import TrackedRun
from lowgear.training.trackers.tracking import Tracking
from tests.fixtures.trackers import CONFIG, Recording, new_run


def line(steps, agent=0, kind="train"):
    return {"kind": kind, "agent": agent, "steps": steps}


def test_each_tracker_is_told_what_it_was_not(tmp_path):
    path = tmp_path / "followed.json"
    passed = Passed(path)
    assert passed.new("mlflow", [line(0), line(10)]) == [line(0), line(10)]
    passed.note("mlflow", [line(0), line(10)])
    passed.note("wandb", [line(0)])
    again = Passed(path)
    lines = [line(0), line(10), line(10, agent=1), line(10, kind="evaluation"), line(20)]
    assert again.new("mlflow", lines) == lines[2:]
    assert again.new("wandb", lines) == lines[1:]
    assert again.new("tensorboard", lines) == lines
    again.end()
    assert not path.exists()


def test_lines_that_were_told_in_another_way_are_old(tmp_path):
    assert Passed(tmp_path / "followed.json", 10).new("mlflow", [line(10), line(20)]) == [line(20)]


@pytest.mark.parametrize("text", ["{", "[]", '{"mlflow": 3}', '{"mlflow": {"train 0": "x"}}'])
def test_a_damaged_file_means_that_all_is_told_again(tmp_path, text):
    (tmp_path / "followed.json").write_text(text)
    assert Passed(tmp_path / "followed.json").new("mlflow", [line(10)]) == [line(10)]


def test_what_a_tracker_failed_at_is_told_again_by_the_next_process(tmp_path, monkeypatch):
    directory = new_run(tmp_path)
    directory.create(CONFIG, {})
    monkeypatch.setattr(choice, "installed", lambda _: True)
    monkeypatch.setattr(choice, "make", lambda name: trackers[name])
    failing = Recording(lambda method, *_: method == "log")
    trackers, run = {"mlflow": failing, "wandb": Recording()}, TrackedRun(directory.path, CONFIG, {})
    for _ in range(2):
        tracking = Tracking(
            run, ChosenTrackers.of(directory, tuple(trackers)), print, Passed(directory.beside("followed.json"))
        )
        tracking.on_log([line(32), line(32, agent=1)])
        tracking.status = "stopped"
        tracking.close()
        failing.fails = lambda *_: False
    for name, times in (("mlflow", 2), ("wandb", 1)):
        assert [call for call in trackers[name].calls if call[0] == "log"] == [
            ("log", "train", [(0, 32), (1, 32)])
        ] * times
