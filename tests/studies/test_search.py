"""Sweeps: what is searched, and a search that is stopped early, killed and taken up again."""

import csv
import json

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.studies import space
from lowgear.studies.child import Result
from lowgear.studies.overview import Overview
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.search import Search
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


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Makes a search of a learning rate, which is also its score."""
    pytest.importorskip("optuna")
    monkeypatch.setattr("lowgear.studies.search.final_score", lambda directory: scores[directory.path.name])
    scores: dict[str, float] = {}

    def config(settings):
        return resolve(find("reacher-easy"), steps=960, evaluate_every=96, overrides={"chunk": 32} | settings)

    def make(trials):
        overview = Overview(tmp_path, "sweep")
        return Search(tmp_path, {"learning_rate": Range(0.1, 1.0, False)}, trials, config, overview)

    def go(search, limit=None):
        """Carry out its programs, or so many of them: each scores its learning rate, from its first evaluation on."""
        for count, program in enumerate(search.programs()):
            if count == limit:
                return
            scores[program.name] = score = program.config.agents[0].learning_rate
            marks = [(steps, score) for steps in range(96, 960, 96)]
            heard = (ProgramProgress("", 0, None, None, tuple(marks[: n + 1])) for n in range(len(marks)))
            pruned = any(search.on_progress(program, each) is False for each in heard)
            search.on_end(program, Result("stopped" if pruned else "done"))

    return make, go


@pytest.mark.ray
def test_poor_trials_are_stopped_early(search) -> None:
    make, go = search
    found = make(20)
    go(found)
    results = found.results()
    states = [one.state for one in results]
    assert len(results) == 20
    assert states.count("stopped early") >= 5
    assert states[0] == "done"
    best = max(one.settings["learning_rate"] for one in results)
    assert results[0].settings["learning_rate"] == results[0].score == pytest.approx(best)


@pytest.mark.ray
def test_a_trial_that_was_running_when_a_sweep_was_killed_goes_on(search) -> None:
    make, go = search
    first = make(4)
    go(first, 2)  # the third was begun
    again = make(4)
    programs = [program.name for program in again.programs()]
    assert programs == ["trial0002", "trial0003"]
    (running,) = [one for one in first.results() if one.number == 2]
    assert running.state == "running"


@pytest.mark.ray
def test_settings_that_make_no_run_are_failed_trials(tmp_path) -> None:
    pytest.importorskip("optuna")

    def config(settings):
        if settings:
            raise LowgearError("no such thing")
        return resolve(find("reacher-easy"), steps=960)

    found = Search(tmp_path, {"batch": Range(1, 9, False)}, 9, config, Overview(tmp_path, "sweep"))
    with pytest.raises(LowgearError, match="the first 5 trials have failed, the last because: no such thing"):
        list(found.programs())


def test_without_optuna_it_says_how_to_install_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    command = ["sweep", "reacher-easy", "--set", "batch=16:32", "--out", str(tmp_path / "none")]
    result = CliRunner().invoke(cli, command)
    assert "pip install 'lowgear[sweep]'" in str(result.exception)
    assert not (tmp_path / "none").exists()
