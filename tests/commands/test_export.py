"""`lowgear export` as a person uses it, wrong ways too."""

import json
import subprocess
from dataclasses import replace

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.export import c_format, compiler
from tests.fixtures.policies import HEADER, KINDS, policy_of, run_of


def export(*arguments):
    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


@pytest.fixture
def policy_file(tmp_path):
    """Of an environment that cannot be made, so that nothing slow is."""
    path = tmp_path / "agent0.safetensors"
    policy_of(replace(HEADER, task="gym:NoSuchThing-v9")).save(path)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_of([policy_of(), policy_of(KINDS["small-only"])], tmp_path_factory.mktemp("export") / "run")


def test_an_agent_of_a_run(run):
    result = export(run, "--format", "c", "--agent", "0", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    out = run / "export" / "agent0-c"
    assert report["out"] == str(out)
    assert sorted(path.name for path in out.iterdir()) == sorted([*report["files"], "export.json"])
    assert json.loads((out / "export.json").read_text())["checked"] == report["checked"]
    assert report["checked"]["wrong_gears"] == 0
    assert report["checked"]["from_environment"]
    assert report["notes"] == []
    flags = [*compiler.STRICT, f"-D{report['name'].upper()}_SELF_TEST"]
    program = compiler.build(compiler.need("test"), flags, [out / f"{report['name']}.c"], out / "test")
    assert subprocess.run([program], check=False, capture_output=True).returncode == 0


def test_a_policy_file_of_no_known_environment_is_checked_on_random_observations(policy_file):
    result = export(policy_file, "--format", "c", "--name", "robot", "--cost-coefficient", "0.05")
    assert result.exit_code == 0, result.output
    assert "stretches of random observations" in result.stdout
    assert "checked on random observations, not on episodes" in result.stderr
    out = policy_file.with_name("agent0-c")
    assert sorted(path.name for path in out.iterdir()) == ["export.json", "robot.c", "robot.h"]
    assert json.loads((out / "export.json").read_text())["cost_coefficient"] == 0.05
    assert "ROBOT_COST_COEFFICIENT 0.05" in (out / "robot.h").read_text()


@pytest.mark.parametrize("format_name", ["onnx", "numpy"])
def test_other_formats(policy_file, format_name, tmp_path):
    result = export(policy_file, "--format", format_name, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "the same gears" in result.stdout
    report = json.loads((tmp_path / "out" / "export.json").read_text())
    assert report["format"] == format_name
    written = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert written == {*report["files"], "export.json"}


def test_a_sampled_master_is_told_of(tmp_path):
    path = tmp_path / "p.safetensors"
    policy_of(replace(HEADER, task="gym:NoSuchThing-v9", boltzmann=True)).save(path)
    result = export(path, "--format", "numpy")
    assert "the export picks the best value instead" in result.stderr
    policy_of(replace(KINDS["small-only"], task="gym:NoSuchThing-v9", boltzmann=True)).save(path)
    assert "best value" not in export(path, "--format", "numpy").stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--format", "c", "--name", "2fast"], "--name '2fast' cannot begin a C identifier"),
        (["--format", "c", "--agent", "1"], "--agent and --best choose from a run"),
        (["--format", "c", "--best"], "--agent and --best choose from a run"),
        (["--format", "c", "--cost-coefficient", "7"], "cost coefficient 7 is outside"),
        (["--format", "c", "--cost-coefficient", "nan"], "cost coefficient nan is outside"),
        (["--format", "onnx", "--weights", "int8"], "--weights int8 is for --format c"),
        (["--format", "onnx", "--unchecked"], "--unchecked is for --format c"),
    ],
)
def test_wrong_ways_are_named_and_leave_nothing(policy_file, options, named):
    result = export(policy_file, *options)
    assert isinstance(result.exception, LowgearError), result.output
    assert named in str(result.exception)
    assert list(policy_file.parent.iterdir()) == [policy_file]


def test_wrong_places_are_named(policy_file, run, tmp_path):
    assert "no such run directory or policy file" in str(export(tmp_path / "nowhere", "--format", "c").exception)
    assert "has no config.json" in str(export(tmp_path, "--format", "c").exception)
    assert "has no agent0-best.safetensors yet" in str(export(run, "--format", "c", "--best").exception)
    assert "--agent 99" in str(export(run, "--format", "c", "--agent", "99").exception)
    assert "is a file; name a directory" in str(export(policy_file, "--format", "c", "--out", policy_file).exception)
    unknown = export(policy_file, "--format", "rust")
    assert unknown.exit_code == 2
    assert "'rust' is not one of" in unknown.stderr


def test_without_a_compiler_it_must_be_said(policy_file, monkeypatch):
    monkeypatch.setattr(compiler, "find", lambda: None)
    refused = export(policy_file, "--format", "c")
    assert "no C compiler was found" in str(refused.exception)
    assert "--unchecked" in str(refused.exception)
    assert list(policy_file.parent.iterdir()) == [policy_file]
    written = export(policy_file, "--format", "c", "--unchecked", "--name", "robot")
    assert written.exit_code == 0
    assert "NOT CHECKED" in written.stderr
    out = policy_file.with_name("agent0-c")
    assert json.loads((out / "export.json").read_text())["checked"] is None
    assert (out / "robot.c").is_file()


def test_a_failed_check_leaves_no_file(policy_file, monkeypatch):
    true = c_format.c_files

    def tampered(*arguments):
        files = true(*arguments)
        return {name: data.replace(b"x * p / q", b"x * p / q * 1.001f") for name, data in files.items()}

    monkeypatch.setattr(c_format, "c_files", tampered)
    result = export(policy_file, "--format", "c")
    assert "does not act as the network" in str(result.exception)
    assert "nothing was written" in str(result.exception)
    assert list(policy_file.parent.iterdir()) == [policy_file]


def test_a_broken_compiler_is_named(policy_file, monkeypatch):
    monkeypatch.setenv("CC", "false")
    result = export(policy_file, "--format", "c")
    assert "false" in str(result.exception)
    assert "did not accept" in str(result.exception)
    assert list(policy_file.parent.iterdir()) == [policy_file]


@pytest.mark.slow
def test_int8_loss_is_measured_in_the_environment(run):
    result = export(run, "--format", "c", "--weights", "int8", "--out", run / "int8", "--json")
    loss = json.loads(result.stdout)["int8_loss"]
    assert loss["loss"] == pytest.approx(loss["return_float32"] - loss["return_int8"], abs=1e-6)
    assert loss["episodes"] == c_format.LOSS_EPISODES
