"""Runs by a pattern, and evaluations that are kept: on runs of random policies, without training."""

import json
import shutil

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from tests.fixtures.runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "car-a", seeds=(0,), variants=("asymmetric", "large-only"))


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "car-a")


@pytest.fixture
def two(run):
    return run, shutil.copytree(run, run.with_name("car-b"))


def invoke(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def evaluate(run, *options):
    return invoke("evaluate", run, "--json", *options)


def test_every_run_that_a_pattern_matches_is_evaluated(two, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    first, second = two
    quoted = invoke("evaluate", first.parent / "car-*", "--episodes", "1", "--json")
    runs = json.loads(quoted.stdout)["runs"]
    assert [found.pop("directory") for found in runs] == [str(first), str(second)]
    assert [json.loads((path / "evaluation.json").read_text()) for path in two] == runs
    shown = invoke("evaluate", first, second, first, "--episodes", "1")  # each once
    assert shown.stdout.count("large-only") == 2
    assert shown.stdout.index(f"{first}:") < shown.stdout.index(f"{second}:")


def test_what_is_no_run_is_told_before_any_is_played(two, tmp_path):
    (tmp_path / "car-c").mkdir()
    result = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "car-*"), "--episodes", "1"])
    assert "car-c is not a run" in str(result.exception)
    assert not any((path / "evaluation.json").exists() for path in two)
    nothing = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "bus-*")])
    assert isinstance(nothing.exception, LowgearError)
    assert f"bus-* matches nothing: the runs there are {two[0]}, {two[1]}" in str(nothing.exception)
    none = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "car-c" / "*")])
    assert "`lowgear train TASK` makes one" in str(none.exception)


def test_several_runs_are_exported_each_into_its_own(two):
    report = json.loads(invoke("export", *two, "--format", "numpy", "--json").stdout)
    for path, found in zip(two, report["runs"], strict=True):
        assert found["out"] == str(path / "export" / "agent0-numpy")
        assert (path / "export" / "agent0-numpy" / "controller.py").is_file()
    result = CliRunner().invoke(cli, ["export", *map(str, two), "--format", "numpy", "--out", str(two[0] / "x")])
    assert "has room for one controller, and 2 are named" in str(result.exception)


def test_one_run_goes_on_at_a_time(two):
    result = CliRunner().invoke(cli, ["train", "--resume", *map(str, two)])
    assert str(result.exception) == f"--resume goes on with one run at a time: name {two[0]} or {two[1]}"


def test_a_quick_evaluation_does_not_replace_one_that_holds_more(run):
    file = run / "evaluation.json"
    frontier = json.loads(evaluate(run, "--frontier", "3", "--episodes", "2").stdout)
    pictures = (run / "frontier.svg").read_bytes()
    quick = evaluate(run, "--episodes", "1")
    assert json.loads(file.read_text()) == frontier
    assert "is kept: it has 4 settings of 2 episodes, this has 1 setting of 1 episode; --replace" in quick.stderr
    evaluate(run, "--frontier", "3", "--episodes", "1")  # the same settings, fewer episodes
    assert json.loads(file.read_text()) == frontier
    assert (run / "frontier.svg").read_bytes() == pictures
    asked = json.loads(evaluate(run, "--episodes", "1", "--replace").stdout)
    assert json.loads(file.read_text()) == asked


@pytest.mark.parametrize("change", ["older", "damaged", "other setting"])
def test_an_evaluation_that_no_longer_holds_is_replaced(run, change):
    file = run / "evaluation.json"
    report = json.loads(evaluate(run, "--episodes", "2").stdout)
    if change == "older":  # the run went on since
        file.write_text(json.dumps(report | {"steps": report["steps"] - 64}))
    elif change == "damaged":
        file.write_text(file.read_text()[:-20])
    else:  # the dial was tuned since
        report["agents"][0]["cost_coefficient"] *= 2
        file.write_text(json.dumps(report))
    new = json.loads(evaluate(run, "--episodes", "1").stdout)
    assert json.loads(file.read_text()) == new


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_table_cuts_a_cell_however_narrow_the_terminal(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (["evaluate", run, "--episodes", "2"], ["tasks"], ["recipes", "show"]):
        shown = invoke(*arguments).stdout
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= width
    scores = invoke("evaluate", run, "--episodes", "2", "--seed", "1").stdout
    narrow = " ".join(scores.split())
    if width < 70:
        assert "agent 1 variant large-only seed 0" in narrow
        assert "large 100.0%" in narrow


def test_one_episode_has_no_interval(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "±" not in invoke("evaluate", run, "--episodes", "1").stdout
