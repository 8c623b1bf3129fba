"""`lowgear advise` from nothing to the command, on small networks."""

import json

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli

SMALL = ["--gears", "2,4", "--periods", "2,5", "--steps", "256", "--seeds", "0-1", "--episodes", "4"]
SMALL += ["--set", "batch=16", "--set", "critic_units=4", "--set", "random_steps=64", "--set", "master_batch=16"]


def advise(out, *options):
    return CliRunner().invoke(cli, ["advise", "gym:Pendulum-v1", *SMALL, "--out", str(out), *options])


def test_a_sweep_becomes_advice_and_is_not_repeated(tmp_path, monkeypatch):
    dry = advise(tmp_path, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "1 of 1 runs to do, about" in dry.stdout
    assert not list(tmp_path.iterdir())
    result = advise(tmp_path, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "gym-Pendulum-v1" / "advice.json").read_text())
    assert [option["gears"] for option in report["options"]] == [[2], [4], [2, 4]]
    assert report["random_score"] < -500  # of 200 steps of a pendulum that is pushed about
    (run,) = (tmp_path / "runs").iterdir()  # one program for all widths and seeds
    assert len(json.loads((run / "config.json").read_text())["agents"]) == 2
    large = report["options"][1]
    assert large["flops"] == pytest.approx([1, 1, 1])
    assert large["score"][1] <= large["score"][0] <= large["score"][2]
    assert "1 of 2 runs to do" in advise(tmp_path, "--seeds", "0-2", "--dry-run").stdout  # seed 2 alone
    monkeypatch.setattr("lowgear.studies.program.Training", None)
    monkeypatch.setenv("COLUMNS", "40")
    again = advise(tmp_path)
    assert again.exit_code == 0, again.output
    assert "2 alone" in again.stdout
    assert report["words"][0].split(":")[0] in again.stdout
    for one in report["commands"]:
        assert f"\n  {one['command']}\n" in again.stdout
        assert "--set batch=16" in one["command"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--episodes", "3"], "--episodes 3"),
        (["--keep-return", "95"], "--keep-return 95"),
        (["--seeds", "0"], "--seeds: one seed"),
        (["--gears", "8"], "two are needed"),
        (["--set", "known_prices=no"], "leave out --set known_prices or dial"),
        (["--set", "bach=3"], "did you mean batch"),
    ],
)
def test_what_cannot_be_advised_is_named_and_leaves_nothing(tmp_path, options, named):
    result = advise(tmp_path / "none", *options)
    assert isinstance(result.exception, LowgearError)
    assert named in str(result.exception)
    assert not (tmp_path / "none").exists()
