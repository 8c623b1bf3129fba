"""Sweeps: what is searched, and a search that is stopped early, killed and taken up again."""

import csv
import json

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run_directory import RunDirectory
from lowgear.studies import space
from lowgear.studies.space import Choices, Range


def test_ranges_choices_and_values_are_told_apart() -> None:
    found, fixed = space.parse(
        ["learning-rate=1e-4:1e-2:log", "batch=64:512", "actor_activation=tanh|relu", "periods=2,5|5", "chunk=32"]
    )
    assert found == {
        "learning_rate": Range(1e-4, 1e-2, True),
        "batch": Range(64, 512, False),
        "actor_activation": Choices(("tanh", "relu")),
        "periods": Choices(((2, 5), (5,))),
    }
    assert found["batch"].whole
    assert not found["learning_rate"].whole
    assert fixed == {"chunk": 32}
    assert space.shown((2, 5)) == "2,5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch", "write NAME=LOW:HIGH"),
        ("batch=64", "nothing to search"),
        ("bacth=64:512", "did you mean batch"),
        ("batch=512:64", "write the lower end first"),
        ("batch=6.5:64", "write a whole number"),
        ("learning_rate=0:1:log", "above 0 for log"),
        ("learning_rate=0.1:1:cube", "write NAME=LOW:HIGH"),
        ("actor_activation=tanh:relu", "write choices as A|B"),
        ("batch=64|64", "write each choice once"),
    ],
)
def test_what_cannot_be_searched_is_named(text, message) -> None:
    with pytest.raises(LowgearError) as error:
        space.parse([text])
    assert message in str(error.value)


@pytest.mark.ray
def test_a_sweep_goes_on_with_more_trials(tmp_path) -> None:
    pytest.importorskip("optuna")
    options = ["--steps", "640", "--seeds", "0-1", "--gears", "2,4", "--evaluate-episodes", "1", "--out", str(tmp_path)]
    options += ["--set", "random_steps=64", "--set", "learning_rate=1e-4:1e-2:log", "--set", "batch=16|32"]

    def run(trials: int):
        command = ["sweep", "cartpole-swingup", *options, "--trials", str(trials), "--jobs", "2"]
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, (result.output, result.exception)
        with (tmp_path / "trials.csv").open() as file:
            return result, list(csv.DictReader(file))

    _, first = run(2)
    assert len(first) == 2
    result, found = run(5)
    assert sorted(int(row["trial"]) for row in found) == list(range(5))
    assert {row["state"] for row in found} <= {"done", "stopped early"}
    ended = [float(row["score"]) for row in found if row["state"] == "done"]
    assert ended == sorted(ended, reverse=True)
    for row in found:
        directory = RunDirectory(tmp_path / "runs" / f"trial{int(row['trial']):04d}")
        config = directory.read_config()
        assert [agent.seed for agent in config.agents] == [0, 1]
        assert config.recipe.batch == int(row["batch"])
        assert directory.finished(config) == (row["state"] == "done")
    assert f"best: {tmp_path}" in result.stdout
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "done"
    other = CliRunner().invoke(cli, ["sweep", "cartpole-swingup", *options, "--set", "chunk=32", "--trials", "6"])
    assert "is of another sweep" in str(other.exception)


def test_without_optuna_it_says_how_to_install_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    command = ["sweep", "reacher-easy", "--set", "batch=16:32", "--out", str(tmp_path / "none")]
    result = CliRunner().invoke(cli, command)
    assert "pip install 'lowgear[sweep]'" in str(result.exception)
    assert not (tmp_path / "none").exists()
