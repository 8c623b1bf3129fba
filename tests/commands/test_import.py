"""`lowgear import`: another library's file becomes a policy file, or one line says why not."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.policy.controller import Controller
from lowgear.policy.file import load
from tests.fixtures.foreign import FOLDER, expected, observations


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["import", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def imported(tmp_path: Path, name: str, *options: str) -> np.ndarray:
    """What the policy file does with the observations, in the environment's units."""
    out = tmp_path / "policy.safetensors"
    run(str(FOLDER / name), "--task", "gym:Pendulum-v1", "--out", str(out), *options)
    policy, seen = load(out), observations()
    controller = Controller.from_policies([policy], len(seen))
    controller.pick(seen[None])
    return policy.bounds.scale(controller.act(seen[None])[0])


@pytest.mark.parametrize("name", ["sb3-td3.zip", "sbx-sac.zip", "cleanrl-ppo.pt"])
def test_the_file_acts_as_the_original(tmp_path: Path, name: str) -> None:
    assert np.abs(imported(tmp_path, name) - expected(Path(name).stem)).max() < 2e-6


def test_normalised(tmp_path: Path) -> None:
    found = imported(tmp_path, "sb3-ppo.zip", "--normalise", str(FOLDER / "vecnormalize.pkl"))
    assert np.abs(found - expected("sb3-ppo normalised")).max() < 2e-6


def test_what_it_prints(tmp_path: Path) -> None:
    arguments = (str(FOLDER / "policy.onnx"), "--task", "gym:Pendulum-v1", "--out", str(tmp_path / "p.safetensors"))
    report = json.loads(run(*arguments, "--json"))
    assert report["hidden"] == [4]
    assert report["flops_per_step"] == 2 * (3 * 4 + 4 * 2) + 3
    assert report["checked"]["library"] == "ONNX Runtime"
    assert report["checked"]["largest_action_error"] < 1e-5
    text = run(*arguments)
    for words in ("ONNX for gym:Pendulum-v1", "3 → 4 → 1, elu", "normalised in the first layer", "lowgear evaluate"):
        assert words in text


def test_an_imported_policy_is_evaluated(tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    run(str(FOLDER / "sb3-sac.zip"), "--task", "gym:Pendulum-v1", "--out", str(out))
    result = CliRunner().invoke(cli, ["evaluate", str(out), "--episodes", "2", "--json"], catch_exceptions=False)
    agent = json.loads(result.stdout)["agents"][0]
    assert agent["variant"] == "imported"
    assert agent["return_mean"] < 0
    assert agent["gear_share"] == [1.0]


@pytest.mark.parametrize(
    ("name", "task", "out", "words"),
    [
        ("sb3-sac.zip", "gym:MountainCarContinuous-v0", "p.safetensors", "sees 3 numbers"),
        ("sb3-sac.zip", "gym:Pendulum-v1", "p.zip", "write p.safetensors"),
        ("make.py", "gym:Pendulum-v1", "p.safetensors", "cannot be imported"),
    ],
)
def test_one_line_and_no_file(tmp_path: Path, name: str, task: str, out: str, words: str) -> None:
    with pytest.raises(LowgearError) as caught:
        run(str(FOLDER / name), "--task", task, "--out", str(tmp_path / out))
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []
