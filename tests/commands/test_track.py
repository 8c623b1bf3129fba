"""`--track`: chosen before anything is made, kept with the run, given to the runs of a study."""

import json
import os

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands import train as command
from lowgear.commands.cli import cli
from lowgear.config.run_directory import RunDirectory
from lowgear.studies import plan
from lowgear.training.trackers import choice
from tests.fixtures.policies import policy_of, run_of
from tests.fixtures.trackers import Recording

MISSING = "tracking with wandb needs wandb: pip install 'lowgear[wandb]', or track without it"


def run(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


@pytest.fixture
def without_wandb(monkeypatch):
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name == "wandb" else object())


@pytest.fixture
def untrained(monkeypatch):
    """Runs are made, and not trained."""
    monkeypatch.setattr(command, "_run", lambda *_, **__: None)


@pytest.mark.usefixtures("without_wandb")
@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_library_that_is_missing_is_named_before_anything_is_made(tmp_path, monkeypatch, how):
    if how == "variable":
        monkeypatch.setenv("LOWGEAR_TRACK", "wandb")
    option = ["--track", "mlflow,wandb"] if how == "option" else []
    for words in (["train", "reacher-easy"], ["study", "performance", "reacher-easy"]):
        result = run(*words, *option, "--out", tmp_path / "run")
        assert isinstance(result.exception, LowgearError)
        assert str(result.exception) == MISSING
        assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("untrained")
def test_the_choice_is_kept_and_can_be_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "installed", lambda _: True)
    path = tmp_path / "run"
    assert run("train", "reacher-easy", "--track", "none", "--out", path).exit_code == 0
    assert json.loads((path / "tracking.json").read_text()) == {}
    choice.ChosenTrackers.of(RunDirectory(path)).keep("mlflow", {"population": "abc"})
    assert run("train", "--resume", path, "--track", "wandb,mlflow").exit_code == 0
    assert json.loads((path / "tracking.json").read_text()) == {"wandb": {}, "mlflow": {"population": "abc"}}
    assert run("train", "reacher-easy", "--out", tmp_path / "other").exit_code == 0
    assert not (tmp_path / "other" / "tracking.json").exists()


@pytest.mark.usefixtures("untrained", "without_wandb")
def test_a_run_whose_tracker_is_missing_does_not_go_on_without_a_word(tmp_path):
    path = tmp_path / "run"
    assert run("train", "reacher-easy", "--track", "none", "--out", path).exit_code == 0
    (path / "tracking.json").write_text('{"wandb": {"population": "abc"}}')
    result = run("train", "--resume", path)
    assert str(result.exception) == MISSING
    assert run("train", "--resume", path, "--track", "none").exit_code == 0


def test_a_study_hands_its_choice_to_its_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "installed", lambda _: True)
    monkeypatch.delenv("LOWGEAR_TRACK", raising=False)
    seen = []
    monkeypatch.setattr(plan, "print_plan", lambda *_: seen.append(os.environ.get("LOWGEAR_TRACK")))
    for option in (["--track", "mlflow,wandb"], []):
        result = run("study", "performance", "reacher-easy", *option, "--dry-run", "--out", tmp_path)
        assert result.exit_code == 0, result.output
    assert seen == ["mlflow,wandb", None]
    assert "LOWGEAR_TRACK" not in os.environ


def test_an_evaluation_arrives_where_the_run_is_tracked(tmp_path, monkeypatch):
    told = Recording()
    monkeypatch.setattr(choice, "make", lambda _: told)
    monkeypatch.setattr(choice, "installed", lambda _: True)
    path = run_of([policy_of()], tmp_path / "run")
    result = run("evaluate", path, "--episodes", "1", "--json")
    assert result.exit_code == 0, result.output
    assert told.calls == []  # it is tracked nowhere
    choice.ChosenTrackers.of(RunDirectory(path)).keep("mlflow", {"population": "abc"})
    result = run("evaluate", path, "--episodes", "1", "--frontier", "2", "--json")
    assert json.loads(result.stdout)["agents"]
    assert told.calls == [
        ("begin", "run", {"population": "abc"}, False),
        ("table", "evaluation", [0, 0, 0]),
        ("figure", "frontier.png"),
        ("end", "finished"),
    ]
    told.fails = lambda method, *_: method == "table"
    result = run("evaluate", path, "--episodes", "1", "--frontier", "2")
    assert result.exit_code == 0
    assert result.stderr.count("note: mlflow misses some of this run") == 1
