import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.cli import cli
from tests.fixtures.faulty import making
from tests.fixtures.policies import KINDS, policy_of, run_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    options = ["--recipe", "paper", "--steps", "1200", "--gears", "2,4", "--evaluate-episodes", "2"]
    result = CliRunner().invoke(
        cli, ["train", "reacher-easy", *options, "--seeds", "0-1", "--variants", "asymmetric,large-only", "--out", path]
    )
    assert result.exit_code == 0, result.output
    return path


def test_a_run_leaves_what_the_readme_says(run):
    assert json.loads((run / "config.json").read_text())["task"] == "reacher-easy"
    assert {path.name for path in (run / "policies").iterdir()} == {
        f"agent{agent}{best}.safetensors" for agent in range(4) for best in ("", "-best")
    }
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if line["kind"] == "train"]
    assert {line["agent"] for line in trained} == {0, 1, 2, 3}
    assert all(line["gear0_critic_loss"] > 0 for line in trained if line["steps"] > 1100)
    assert (run / "tensorboard" / "agent3-large-only-seed1").is_dir()


def test_evaluate_keeps_the_json_contract(run):
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "3", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((run / "evaluation.json").read_text())
    assert {"task", "recipe", "steps", "episodes", "master", "agents"} == report.keys()
    # The paper samples the master on reacher-easy.
    assert (report["task"], report["episodes"], report["master"]) == ("reacher-easy", 3, "boltzmann")
    assert [(agent["variant"], agent["seed"]) for agent in report["agents"]] == [
        ("asymmetric", 0),
        ("asymmetric", 1),
        ("large-only", 0),
        ("large-only", 1),
    ]
    for agent in report["agents"]:
        assert sum(agent["gear_share"]) == pytest.approx(1)
        assert agent["large_share"] == agent["gear_share"][-1]
        assert agent["success_rate"] is None
        assert agent["flops_reduction"] <= 1
        assert {
            "agent",
            "cost_coefficient",
            "relative_coefficient",
            "return_mean",
            "return_std",
            "period_mean",
            "flops_per_step",
        } <= agent.keys()
    assert report["agents"][0]["period_mean"] == 5
    assert report["agents"][3]["flops_reduction"] == 0


def test_the_same_seed_gives_the_same_scores_and_best_policies_can_be_asked_for(run):
    def scores(*options):
        result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "2", "--json", *options])
        return [agent["return_mean"] for agent in json.loads(result.stdout)["agents"]]

    assert scores("--master", "greedy") == scores("--master", "greedy")
    assert scores("--master", "greedy") != scores("--master", "greedy", "--seed", "1")
    assert scores("--master", "greedy") != scores("--master", "greedy", "--best")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train"], "TASK"),
        (["train", "walker-sit"], "walker-stand"),
        (["train", "walker-stand", "--steps", "0"], "--steps 0"),
        (["train", "walker-stand", "--cost-coefficients", "-1"], "-1"),
        (["train", "walker-stand", "--cost-coefficients", "cheap"], "cheap"),
        (["train", "walker-stand", "--seeds", "4-0"], "0-4"),
        (["train", "walker-stand", "--seeds", "a"], "'a'"),
        (["train", "walker-stand", "--gears", "64"], "two are needed"),
        (["train", "walker-stand", "--recipe", "old"], "old"),
        (["train", "gym:Pendulum-v1", "--recipe", "paper"], "give --cost-coefficients"),
        (["train", "gym:Nothing-v0", "--gears", "2,4", "--cost-coefficients", "0"], "Nothing-v0"),
        (["train", "walker-stand", "--set", "bach=64"], "did you mean batch"),
        (["train", "walker-stand", "--set", "batch=many"], "batch = many"),
        (["train", "walker-stand", "--set", "actor_every=3"], "chunks have 64"),
        (["train", "walker-stand", "--settings", "none.toml"], "none.toml"),
        (["train", "--resume", ".", "--set", "batch=64"], "--set"),
        (["train", "--resume", "."], "not a run"),
        (["train", "--resume", ".", "--seeds", "5"], "--seeds"),
        (["train", "cartpole-swingup", "--seeds", "²"], "--seeds '²' is not a list of whole numbers"),
        (["train", "cartpole-swingup", "--seeds", "0-9999999"], "more than 100,000 numbers"),
        (["train", "cartpole-swingup", "--steps", "99999999999999999999"], "--steps 99999999999999999999: a run needs"),
        (["train", "cartpole-swingup", "--evaluate-every", "-1"], "--evaluate-every -1"),
        (["train", "cartpole-swingup", "--cost-coefficients", "1e300"], "cost coefficient 1e+300"),
        (["train", "cartpole-swingup", "--max-episode-steps", "0"], "max episode steps 0: write 1 or more"),
        (["train", "cartpole-swingup", "--seeds", "0-4000"], "narrower gears (--gears)"),
        (["train", "cartpole-swingup", "--env-timeout", "-1"], "--env-timeout -1: write seconds, or 0"),
        (["evaluate", ".", "--seed", "-1"], "--seed -1: write 0 or more"),
        (["evaluate", "."], "not a run"),
        (["evaluate", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, LowgearError)
    assert named in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_settings_of_the_recipe_reach_the_run(tmp_path):
    path, file = tmp_path / "run", tmp_path / "my.toml"
    file.write_text("batch = 8\nperiods = [3]\nfirst_alpha = 0.5\n")
    sizes = ["--steps", "128", "--gears", "2,4", "--critic-units", "4", "--evaluate-every", "0"]
    settings = ["--settings", str(file), "--set", "batch=16", "--set", "random-steps=64", "--set", "actor_every=2"]
    result = CliRunner().invoke(cli, ["train", "reacher-easy", *sizes, *settings, "--out", str(path)])
    assert result.exit_code == 0, result.output
    recipe = json.loads((path / "config.json").read_text())["recipe"]
    found = [recipe[name] for name in ("batch", "periods", "first_alpha", "random_steps", "actor_every")]
    assert found == [16, [3], 0.5, 64, 2]  # what is set goes before the file
    assert recipe["critic_units"] == 4


def test_a_setting_that_is_not_there_exits_with_2_and_one_line(tmp_path):
    command = [sys.executable, "-m", "lowgear", "train", "walker-stand", "--set", "bach=64", "--out", "run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("lowgear: error: --set bach")
    assert "did you mean batch" in line
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    again = CliRunner().invoke(cli, ["train", "walker-stand", "--out", str(run)])
    assert "exists" in str(again.exception)
    few = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "0"])
    assert "--episodes 0" in str(few.exception)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_damaged_policy_is_named(run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    policy = copy / "policies" / "agent1.safetensors"
    policy.write_bytes(policy.read_bytes()[:-9])
    result = CliRunner().invoke(cli, ["evaluate", str(copy), "--episodes", "1"])
    assert "agent1.safetensors" in str(result.exception)


def test_lists():
    assert lists.integers("--seeds", "0-2,7") == [0, 1, 2, 7]
    assert lists.numbers("--x", "0.1,1e-3") == [0.1, 0.001]
    assert lists.words("a, b") == ["a", "b"]


def test_an_agent_whose_environment_fails_is_listed_as_missing(tmp_path, monkeypatch):
    run = run_of([policy_of(replace(KINDS["one of each"], seed=seed)) for seed in (0, 1)], tmp_path / "run")
    monkeypatch.setattr("lowgear.envs.make_env", lambda _, count: making([*[""] * 4, "raise", *[""] * 3], at=20)(count))
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "4", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [agent["agent"] for agent in report["agents"]] == [0]
    (missing,) = report["missing"]
    assert missing["agent"] == 1
    assert "motor is unplugged" in missing["why"]
    assert result.stderr.strip().endswith(f"agent 1 at λ 0.01 is missing: {missing['why']}")
    assert json.loads((run / "evaluation.json").read_text()) == report
    monkeypatch.setattr("lowgear.envs.make_env", lambda _, count: making(["raise"], at=20)(count))
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "4"])
    assert isinstance(result.exception, LowgearError)
    assert json.loads((run / "evaluation.json").read_text()) == report
