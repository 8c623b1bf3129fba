import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import lowgear
from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.policy_file import open_run
from lowgear.policy.header import PolicyHeader
from tests.fixtures.probes import Valley
from tests.fixtures.runs import make_run
from tests.fixtures.weights import thrifty

TASK = "MountainCarContinuous-v0"


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", TASK, ("asymmetric", "large-only"), (0,))


@pytest.fixture
def file(run, tmp_path):
    path = tmp_path / "car.safetensors"
    lowgear.load(run).save(path)
    return path


@pytest.fixture
def valley():
    """An agent whose environment is a class here, with a controller that needs no training."""
    policy = thrifty()
    header = replace(policy.header, task="Valley")
    shape = {"gears": header.gears, "periods": header.periods, "master_units": header.master_units}
    agent = lowgear.Agent(Valley, seed=header.seed, cost_coefficient=header.dial, recipe=header.recipe, **shape)
    agent._policy = replace(policy, header=header)
    return agent


def test_evaluating_an_agent_a_file_and_a_run_gives_the_same(run, file):
    found = [lowgear.evaluate(what, 3) for what in (lowgear.load(run), lowgear.load(file), file, str(file))]
    assert all(one == found[0] for one in found)
    whole = lowgear.evaluate(run, 3)
    assert [agent["variant"] for agent in whole["agents"]] == ["asymmetric", "large-only"]
    printed = json.loads(CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "3", "--json"]).stdout)
    assert printed == whole
    frontier = lowgear.evaluate(file, 2, frontier=3)
    assert [agent["agent"] for agent in frontier["agents"]] == [0, 0, 0, 0]  # its own setting too
    two = lowgear.evaluate(file, 2, cost_coefficients=[agent["cost_coefficient"] for agent in frontier["agents"][::2]])
    assert two["agents"] == frontier["agents"][::2]


def test_agents_play_in_environments_like_their_own(valley, tmp_path):
    (row,) = lowgear.evaluate(valley, 4)["agents"]
    assert row["episode_length_mean"] == 20
    valley.set_env(Valley())  # which it keeps to itself: copies are played in
    assert lowgear.evaluate(valley, 4)["agents"] == [row]
    assert lowgear.evaluate(valley, 4, env=lambda: Valley())["agents"] == [row]
    valley.save(tmp_path / "valley.safetensors")
    assert lowgear.evaluate(tmp_path / "valley.safetensors", 4, env=Valley)["agents"] == [row]
    with pytest.raises(LowgearError, match="unknown task 'Valley'"):
        lowgear.evaluate(tmp_path / "valley.safetensors", 4)


def test_tuning_sets_an_agent_and_rewrites_a_file(valley, tmp_path):
    before = valley.cost_coefficient
    found = lowgear.tune(valley, max_flops=0.9, episodes=8, dry_run=True)
    assert valley.cost_coefficient == before
    assert lowgear.tune(valley, max_flops=0.9, episodes=8) == found
    (row,) = found["agents"]
    assert row["meets"]
    assert valley.cost_coefficient == row["cost_coefficient"] != row["cost_coefficient_before"] == before
    path = tmp_path / "valley.safetensors"
    valley.cost_coefficient = before
    valley.save(path)
    assert lowgear.tune(path, max_flops=0.9, episodes=8, env=Valley) == found
    assert lowgear.load(path).cost_coefficient == row["cost_coefficient"]


def test_the_commands_take_a_policy_file(file):
    for words in (
        ["evaluate", str(file), "--episodes", "2", "--frontier", "2"],
        ["tune", str(file), "--max-flops", "2", "--episodes", "2"],
        ["report", str(file), "--no-video", "--episodes", "0"],
    ):
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
    beside = {path.name for path in file.parent.iterdir()}
    for name in ("evaluation.json", "tuning.json", "report", "frontier.svg", "frontier.png"):
        assert f"car-{name}" in beside
    page = (file.parent / "car-report" / "index.html").read_text()
    assert TASK in page
    result = CliRunner().invoke(cli, ["evaluate", str(file), "--best"])
    assert "is one policy" in str(result.exception)
    result = CliRunner().invoke(cli, ["evaluate", str(file.with_name("none"))])
    assert "no such run directory or policy file" in str(result.exception)


def test_a_report_and_an_export_of_an_agent(valley, tmp_path):
    found = lowgear.report(valley, out=tmp_path / "report", video=False, episodes=0)
    assert found.page == tmp_path / "report" / "index.html"
    assert "frontier.svg" in {path.name for path in found.files}
    assert not any("--" in notice or "/tmp" in notice for notice in found.notices)
    said = lowgear.export(valley, "numpy", tmp_path / "numpy")
    assert said["checked"]["from_environment"]
    assert said["out"] == str(tmp_path / "numpy")
    assert (tmp_path / "numpy" / "export.json").is_file()
    assert callable(sys.modules["lowgear.export"])
    assert callable(sys.modules["lowgear.report"])


def test_an_agent_of_a_file_is_reported_too(file, tmp_path):
    found = lowgear.report(lowgear.load(file), out=tmp_path / "report", video=False, episodes=0)
    assert found.page.is_file()
    assert TASK in (tmp_path / "report" / "summary.md").read_text()


def test_a_policy_file_as_a_run(file):
    run = open_run(file)
    (policy,) = run.load_policies()
    config = run.read_config()
    assert (config.task, config.gears, len(config.agents)) == (TASK, policy.header.gears, 1)
    assert config.agents[0].dial == policy.header.dial
    assert config.recipe.periods == policy.header.periods
    assert isinstance(policy.header, PolicyHeader)
    np.testing.assert_array_equal(policy.weights.master[0][0], lowgear.load(file).policy.weights.master[0][0])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda path: lowgear.evaluate(path, 0), "episodes=0: write 1 or more"),
        (lambda path: lowgear.evaluate(path, 1, seed=-1), "seed=-1: write a whole number, 0 or more"),
        (lambda path: lowgear.evaluate(path, 1, seed=1.5), "seed=1.5: write a whole number, 0 or more"),
        (lambda path: lowgear.tune(path, max_flops=1, seed=-1), "seed=-1: write a whole number, 0 or more"),
        (lambda path: lowgear.evaluate(path, frontier=1), "frontier=1: write 2 or more"),
        (lambda path: lowgear.evaluate(path, frontier=2, cost_coefficients=[1]), "give one of them"),
        (lambda path: lowgear.evaluate(path, best=True), "agent and best=True choose"),
        (lambda path: lowgear.evaluate(path.with_name("none")), "no such run directory or policy file"),
        (lambda _: lowgear.evaluate(3), "3 is no Agent, policy file or run directory"),
        (lambda path: lowgear.tune(path), "keep_return=0.95 or max_flops"),
        (lambda path: lowgear.tune(path, keep_return=2), "keep_return=2: write a share above 0 and at most 1"),
        (lambda path: lowgear.tune(path, max_flops=1, reference=2), "reference=2 goes with keep_return"),
        (lambda path: lowgear.tune(path, keep_return=0.9, reference=np.nan), "reference=nan: write a finite number"),
        (lambda path: lowgear.tune(path, keep_return=0.9, reference="x"), "reference='x': write a finite number"),
        (lambda path: lowgear.export(path, "zip"), "format='zip': write c, onnx, numpy or hub"),
        (lambda path: lowgear.export(path, "onnx", weights="int8"), 'weights="int8" is for format="c"'),
        (lambda path: lowgear.export(path, "c", name="1 x"), "name='1 x' cannot begin"),
        (lambda _: lowgear.report(), "name an agent"),
        (lambda path: lowgear.load(path).learn(100), "not the critics"),
        (lambda path: lowgear.load(path).save(path.parent), "is a directory"),
    ],
)
def test_bad_arguments_are_named(file, call, named):
    with pytest.raises(LowgearError) as error:
        call(file)
    assert named in str(error.value)
    assert "--" not in str(error.value)
