"""`lowgear tune` on a trained run: the setting lands in the policy, wrong demands change nothing."""

import json
import resource
import shutil

import pytest
from click.testing import CliRunner

import lowgear
from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.policy.dial import Dial
from lowgear.policy.file import load
from tests.fixtures.commands import train

FEW = ("--episodes", "4")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(
        tmp_path_factory.mktemp("tune") / "run",
        *("--variants", "asymmetric,large-only,fixed-cost", "--seeds", "0-1"),
        *("--cost-coefficients", "0.001,0.1"),
    )


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def tune(run, *options):
    return CliRunner().invoke(cli, ["tune", str(run), *options])


def settings(run):
    return [load(path).header.cost_coefficient for path in sorted((run / "policies").glob("agent[01].safetensors"))]


def test_a_setting_within_the_flops_is_written_into_the_policies(run):
    before = (run / "policies" / "agent2.safetensors").read_bytes()
    result = tune(run, "--max-flops", "1.5", "--json", *FEW)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((run / "tuning.json").read_text())
    assert [line["agent"] for line in report["agents"]] == [0, 1]  # the others have no dial
    for line in report["agents"]:
        assert line["meets"]
        assert 1 - line["flops_reduction"] <= 1.5
    # Every setting of these small networks is within 1.5, so the best one is where compute is cheapest.
    assert settings(run) == pytest.approx([0.001, 0.001])
    assert lowgear.load(run / "policies" / "agent0.safetensors").cost_coefficient == pytest.approx(0.001)
    assert (run / "policies" / "agent2.safetensors").read_bytes() == before
    scored = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "1", "--json"])
    assert [agent["cost_coefficient"] for agent in json.loads(scored.stdout)["agents"]][:2] == settings(run)


def test_a_share_of_the_return_and_of_a_reference(run):
    own = tune(run, "--keep-return", "0.01", "--json", "--agents", "0", *FEW)
    assert own.exit_code == 0, own.output
    (line,) = json.loads(own.stdout)["agents"]
    assert line["meets"]
    assert line["score_mean"] >= 0.01 * line["best_score"]
    assert Dial(0.001, 0.1).holds(line["cost_coefficient"])
    against = tune(run, "--keep-return", "0.5", "--reference", str(run), "--json", *FEW)
    report = json.loads(against.stdout)
    assert report["reference"] == str(run)
    large = {line["best_score"] for line in report["agents"]}
    assert len(large) == 1  # the same bar for all
    assert all(line["demanded"] == pytest.approx(0.5 * line["best_score"]) for line in report["agents"])


@pytest.mark.parametrize("json_too", [[], ["--json"]], ids=["table", "json"])
def test_what_was_found_is_shown_where_it_cannot_be_written(run, json_too):
    before, (soft, hard) = settings(run), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))  # as on a full disk: no file may have two bytes
    try:
        result = tune(run, "--max-flops", "1.5", *FEW, *json_too)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(result.exception, LowgearError)
    assert "could not write" in str(result.exception)
    if json_too:
        assert [line["meets"] for line in json.loads(result.stdout)["agents"]] == [True, True]
    else:
        assert "0.001" in result.stdout
        assert "written" not in result.stdout
    assert settings(run) == before
    assert not (run / "tuning.json").exists()


def test_no_setting_meets_it_and_nothing_changes(run):
    before = settings(run)
    result = tune(run, "--max-flops", "0.001", *FEW)
    assert result.exit_code == 1
    assert "agent 0: no setting surely spends 0.1%" in result.stderr
    assert "nearest" in result.stderr
    assert settings(run) == before
    assert not any(line["meets"] for line in json.loads((run / "tuning.json").read_text())["agents"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "--keep-return 0.95 or --max-flops 0.2"),
        (["--keep-return", "0.9", "--max-flops", "0.2"], "one of them"),
        (["--keep-return", "95"], "--keep-return 95"),
        (["--keep-return", "nan"], "--keep-return nan"),
        (["--max-flops", "0"], "--max-flops 0"),
        (["--max-flops", "0.2", "--reference", "x"], "--reference x goes with --keep-return"),
        (["--max-flops", "0.2", "--episodes", "1"], "--episodes 1"),
        (["--max-flops", "0.2", "--seed", "-1"], "--seed -1: write 0 or more"),
        (["--max-flops", "0.2", "--agents", "9"], "no agent 9"),
        (["--max-flops", "0.2", "--agents", "2"], "no dial to set"),
        (["--keep-return", "0.9", "--reference", "nowhere"], "nowhere"),
    ],
)
def test_bad_demands_are_named(run, options, named):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    result = tune(run, *options)
    assert isinstance(result.exception, LowgearError)
    assert named in str(result.exception)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
