"""`lowgear evaluate` and `lowgear export` on policy files with gears of other kinds than plain networks."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lowgear
from lowgear.commands.cli import cli
from lowgear.config.policy_file import open_run
from lowgear.policy.file import PolicyHeader
from lowgear.policy.gears import HOLD, network
from tests.fixtures.kinds import ALONE, KINDS, Loop, policy_of_kind
from tests.fixtures.training import SMALL

PENDULUM = {"task": "gym:Pendulum-v1", "obs_dim": 3, "act_dim": 1, "layout": (("", 3),)}
BOUNDS = {"action_low": (-2.0,), "action_high": (2.0,)}
MIXED = replace(KINDS["hold and one gear"], **PENDULUM, **BOUNDS, gears=(HOLD, network(8), network(64, 64, 64)))
SINGLE = replace(ALONE, **PENDULUM, **BOUNDS)


def saved(folder: Path, header: PolicyHeader) -> Path:
    policy_of_kind(header, bias=2.0 if header.sees_action else 0.0).save(folder / "mine.safetensors")
    return folder / "mine.safetensors"


def test_the_table_names_the_gears(tmp_path: Path) -> None:
    path = saved(tmp_path, MIXED)
    done = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", "2"], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    assert "hold/8/64x64x64 %" in done.stdout
    found = json.loads((tmp_path / "mine-evaluation.json").read_text())
    assert found["gears"] == ["hold", 8, "64x64x64"]
    shares = "/".join(f"{100 * share:.0f}" for share in found["agents"][0]["gear_share"])
    assert shares in done.stdout
    assert len(found["agents"][0]["gear_share"]) == 3


def test_an_imported_policy_is_a_run_of_its_own(tmp_path: Path) -> None:
    path = saved(tmp_path, SINGLE)
    config = open_run(path).read_config()
    assert (config.recipe.name, config.gears, config.agents[0].variant) == ("imported", SINGLE.gears, "imported")
    done = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", "2", "--json"])
    (row,) = json.loads(done.stdout)["agents"]
    assert (row["variant"], row["gear_share"], row["flops_reduction"]) == ("imported", [1.0], 0.0)


@pytest.mark.parametrize("header", [MIXED, SINGLE], ids=["hold", "imported"])
@pytest.mark.parametrize("form", ["c", "onnx", "numpy", "hub"])
def test_exports_are_checked_on_episodes(tmp_path: Path, header: PolicyHeader, form: str) -> None:
    done = CliRunner().invoke(
        cli, ["export", str(saved(tmp_path, header)), "--format", form, "--out", str(tmp_path / "x")]
    )
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "x" / "export.json").read_text())
    assert report["gears"] == json.loads(json.dumps([gear.to_json() for gear in header.gears]))
    assert report["checked"]["from_environment"]
    assert (report["checked"]["steps"], report["checked"]["wrong_gears"]) == (800, 0)
    assert (report["checked"]["picks"] > 0) == (header is MIXED)


@pytest.mark.parametrize(
    ("gears", "message"),
    [
        ("hold,8,hold", "hold is there twice"),
        ("hold", "two are needed"),
        ("8,none.safetensors", "none.safetensors: no such policy file"),
        ("8,broken.safetensors", "not a whole safetensors file"),
        ("8,other.safetensors", "has 4 observations and 2 actions, gym:Pendulum-v1 has 3 and 1"),
    ],
)
def test_gears_that_cannot_be_trained_leave_nothing_behind(
    tmp_path: Path, monkeypatch, gears: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.safetensors").write_bytes(b"no policy")
    policy_of_kind(ALONE).save("other.safetensors")
    done = CliRunner().invoke(cli, ["train", "gym:Pendulum-v1", "--gears", gears, "--out", "run"])
    assert isinstance(done.exception, lowgear.LowgearError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.safetensors", "other.safetensors"]


def test_an_agent_learns_around_a_frozen_policy_and_travels(tmp_path: Path) -> None:
    path = saved(tmp_path, SINGLE)
    agent = lowgear.Agent("gym:Pendulum-v1", gears=("x4", path, "hold"), **SMALL)
    agent.learn(96)
    path.unlink()
    agent.save_run(tmp_path / "run")
    again = lowgear.load(tmp_path / "run")
    assert str(again.policy.header.gears) == "(hold, x4, frozen 4x3)"
    assert again.policy.header.gears[2].source == "Stable-Baselines3 PPO"
    again.learn(32)
    before, after = agent.policy.weights, again.policy.weights
    assert not np.array_equal(before.gears[1][0][0], after.gears[1][0][0])
    for one, other in zip((*before.gears[2], before.clips[2]), (*after.gears[2], after.clips[2]), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_tasks_price_every_kind() -> None:
    done = CliRunner().invoke(cli, ["tasks", "walker-stand", "--gears", "64x64x64,hold,8", "--json"])
    row = json.loads(done.stdout)
    assert row["gears"] == ["hold", 8, "64x64x64"]
    assert row["gear_flops"] == [0, 707, 2 * (24 * 64 + 2 * 64 * 64 + 64 * 12) + 3]
    assert row["gear_costs"][:2] == [0, 1]
    shown = CliRunner().invoke(cli, ["tasks", "walker-stand", "--gears", "hold,8"]).stdout
    assert "the last action again, 0 FLOPs, cost 0.0" in shown
    assert "8 units, 707 FLOPs, cost 1.0" in shown


def test_predict_carries_the_last_action(tmp_path: Path) -> None:
    path = saved(tmp_path, MIXED)
    agent, loop = lowgear.load(path), Loop(policy_of_kind(MIXED, bias=2.0))
    state, used = None, set()
    for t, observation in enumerate(np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)):
        start = np.array([t == 20])
        if start[0]:
            loop.begin()
        action, state = agent.predict(observation, state, start)
        gear, expected, _ = loop.step(observation.astype(np.float64))
        np.testing.assert_allclose(action, 2 * expected, atol=1e-4)
        assert state[0] % 3 == gear
        used.add(gear)
    assert 0 in used
    assert len(used) > 1
    with pytest.raises(lowgear.LowgearError, match="state is of another policy"):
        agent.predict(observation, state[:2])
