"""A population that was spread over programs is the run that it would have been."""

import json
from shutil import rmtree

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.studies import shards
from lowgear.studies.program import Program, cut_here, train
from tests.fixtures.training import SMALL, policy_bytes, without_speed


def killed_midway(path, **_) -> None:
    """Deletes one of the folder's parts."""
    rmtree(next(path.iterdir()))
    raise KeyboardInterrupt


def test_shards_come_to_what_one_program_does(tmp_path, monkeypatch) -> None:
    options = {"steps": 192, "gears": (2, 4), "evaluate_episodes": 1, "evaluate_every": 96, "checkpoint_every": 128}
    config = resolve(find("reacher-easy"), seeds=range(4), overrides=SMALL, **options)
    whole, spread = RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "spread")
    assert train(Program("whole", config, *cut_here(len(config.agents))), whole, []) is None
    spread.create(config, {})
    programs = shards.split(config, 3)
    assert [len(program.config.agents) for program in programs] == [1, 1, 2]
    folders = [RunDirectory(spread.path / shards.FOLDER / program.name) for program in programs]
    for program, folder in zip(programs, folders, strict=True):
        folder.path.parent.mkdir(exist_ok=True)
        assert train(program, folder, []) is None
    with monkeypatch.context() as patch:
        patch.setattr(shards.shutil, "rmtree", killed_midway)
        with pytest.raises(KeyboardInterrupt):
            shards.merge(spread, folders)
    assert not shards.is_spread(spread)  # what is left of them is not taken for the run's shards
    assert spread.finished(config)
    assert policy_bytes(spread, 4) == policy_bytes(whole, 4)
    assert without_speed(spread) == without_speed(whole)
    joined = RunDirectory(tmp_path / "joined")  # of runs that lie elsewhere, and stay there
    joined.create(config, {})
    shards.merge(joined, [spread])
    assert joined.finished(config)
    assert spread.finished(config)
    assert policy_bytes(joined, 4) == policy_bytes(whole, 4)
    longer = spread.extended(config, 256)
    for directory in (spread, whole):
        assert train(Program("longer", longer, *cut_here(4)), directory, []) is None
    assert policy_bytes(spread, 4) == policy_bytes(whole, 4)  # the checkpoints were the same too
    assert without_speed(spread) == without_speed(whole)


@pytest.mark.ray
def test_train_spreads_over_processes_and_reports_one_run(tmp_path) -> None:
    sizes = ["--steps", "640", "--gears", "2,4", "--critic-units", "4", "--set", "batch=16", "--seeds", "0-2"]
    command = [
        "train",
        "reacher-easy",
        *sizes,
        "--evaluate-episodes",
        "1",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "run"),
    ]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    found = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "run"), "--episodes", "1", "--json"])
    assert found.exit_code == 0, found.output
    assert [agent["seed"] for agent in json.loads(found.stdout)["agents"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shards", "2"], "--shards 2 is for --jobs or --ray"),
        (["--shards", "0", "--jobs", "2"], "--shards 0: write 1 or more"),
    ],
)
def test_what_cannot_be_spread_is_named(tmp_path, options, message) -> None:
    result = CliRunner().invoke(cli, ["train", "reacher-easy", *options, "--out", str(tmp_path / "none")])
    assert isinstance(result.exception, LowgearError)
    assert message in str(result.exception)
    assert not (tmp_path / "none").exists()
