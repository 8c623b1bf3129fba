"""What trackers are told of a run, and what becomes of the run where they fail."""

import json

import pytest

from lowgear import LowgearError
from lowgear.training.trackers import choice, tracking, worker
from lowgear.training.trackers.choice import ChosenTrackers
from tests.fixtures.trackers import CONFIG, EVALUATED, LOGGED, Recording, new_run, train
from tests.fixtures.training import StopAt, policy_bytes


@pytest.fixture
def use(monkeypatch):
    """Lets a tracker stand for all."""

    def stand(tracker):
        monkeypatch.setattr(choice, "make", lambda _: tracker)
        monkeypatch.setattr(choice, "installed", lambda _: True)
        return tracker

    return stand


@pytest.fixture(scope="module")
def untracked(tmp_path_factory):
    directory = new_run(tmp_path_factory.mktemp("plain"))
    train(directory)
    return policy_bytes(directory, 2)


def logs(tracker, group):
    return [call[2][0][1] for call in tracker.calls if call[:2] == ("log", group)]


def test_a_tracker_is_told_all_of_a_run_in_order(tmp_path, use):
    directory, tracker = new_run(tmp_path), use(Recording())
    heard = train(directory, trackers=("wandb",))
    assert tracker.calls[0] == ("begin", "pendulum", {}, True)
    assert heard.notices == ["look here"]
    assert (logs(tracker, "train"), logs(tracker, "evaluation")) == (LOGGED, EVALUATED)
    assert next(call[2] for call in tracker.calls if call[:2] == ("log", "train")) == [(0, 32), (1, 32)]
    files = [f"agent{agent}{best}.safetensors" for agent in (0, 1) for best in ("", "-best")]
    after = tracker.calls[-6:]
    assert after[0] == ("table", "evaluation", [0, 1])
    assert after[1:5] == [("policy", int(name[5]), name) for name in files]
    assert after[5] == ("end", "finished")
    assert json.loads((directory.path / "tracking.json").read_text()) == {"wandb": {"population": "made1"}}


def test_a_run_goes_on_in_the_trackers_run_that_it_began(tmp_path, use):
    directory, first = new_run(tmp_path), use(Recording())
    with pytest.raises(KeyboardInterrupt):
        train(directory, trackers=("mlflow",), listeners=[StopAt(96)])
    assert first.calls[-1] == ("end", "stopped")
    second = use(Recording())
    train(directory)  # tracking.json says where
    assert second.calls[0] == ("begin", "pendulum", {"population": "made1"}, True)
    assert logs(second, "train") == [96, 128]
    third = use(Recording())
    tracking.add(directory, CONFIG, pytest.fail, [{"agent": 0}], [tmp_path / "frontier.png"])
    assert third.calls == [
        ("begin", "pendulum", {"population": "made1"}, False),
        ("table", "evaluation", [0]),
        ("figure", "frontier.png"),
        ("end", "finished"),
    ]


@pytest.mark.parametrize("where", ["begin", "log", "policy", "end"])
def test_a_tracker_that_fails_is_told_of_once_and_changes_nothing(tmp_path, use, untracked, where):
    directory = new_run(tmp_path)
    tracker = use(Recording(lambda method, *_: method == where))
    heard = train(directory, trackers=("mlflow",))
    (said,) = [text for text in heard.notices if text != "look here"]
    assert said == (
        "mlflow misses some of this run ([Errno 28] No space left on device); metrics.jsonl has all, and it goes on"
    )
    assert policy_bytes(directory, 2) == untracked
    if where != "begin":  # it is tried again and again
        assert tracker.calls[-1] == ("end", "finished")


def test_a_tracker_whose_store_is_back_is_told_what_follows(tmp_path, use):
    times = iter([True, True])
    tracker = use(Recording(lambda method, *_: method == "begin" and next(times, False)))
    train(new_run(tmp_path), trackers=("mlflow",))
    assert [call[0] for call in tracker.calls[:3]] == ["begin"] * 3
    assert tracker.calls[3][0] == "log"


def test_a_slow_tracker_holds_nothing_up_and_is_left_behind(tmp_path, use, monkeypatch):
    monkeypatch.setattr(worker, "MOST_WAITING", 3)
    monkeypatch.setattr(worker, "END_S", 0.1)
    tracker = use(Recording())
    tracker.held.clear()  # it never answers
    heard = train(new_run(tmp_path), trackers=("wandb",))
    assert heard.notices == [
        "wandb misses some of this run (it is too slow for what the run tells); metrics.jsonl has all, and it goes on"
    ]
    assert tracker.calls == []
    tracker.held.set()


def test_the_choice_of_a_run_outlives_the_variable(tmp_path, use, monkeypatch):
    directory, tracker = new_run(tmp_path), use(Recording())
    monkeypatch.setenv("LOWGEAR_TRACK", "none")
    train(directory, trackers=("wandb",))
    assert tracker.calls == []
    monkeypatch.setenv("LOWGEAR_TRACK", "wandb")
    assert ChosenTrackers.to_train(directory).names == ()


def test_choices_are_read_and_what_is_missing_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name == "wandb" else object())
    assert choice.parse("mlflow, tensorboard,mlflow") == ("mlflow", "tensorboard")
    assert choice.parse("none") == ()
    with pytest.raises(LowgearError, match=r"tracking with wandb needs wandb: pip install 'lowgear\[wandb\]'"):
        choice.parse("mlflow,wandb")
    with pytest.raises(LowgearError, match=r"--track 'aim': choose from tensorboard, wandb, mlflow, or write none"):
        choice.parse("aim")
    with pytest.raises(LowgearError, match="write none alone"):
        choice.parse("none,mlflow")


@pytest.mark.parametrize(
    "text", ['{"wandb": {"0": "../x"}}', '{"aim": {}}', '{"mlflow": []}', "[]", '{"mlflow": {"0": 3}}', "{"]
)
def test_a_damaged_file_of_trackers_is_refused_in_a_line(tmp_path, text):
    directory = new_run(tmp_path)
    directory.create(CONFIG, {})
    (directory.path / "tracking.json").write_text(text)
    with pytest.raises(LowgearError, match=r"tracking\.json is damaged.*remove it"):
        ChosenTrackers.of(directory)
