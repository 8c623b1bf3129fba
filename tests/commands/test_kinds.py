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
from lowgear.policy.gears import HOLD, Gear, network
from tests.fixtures.kinds import ALONE, KINDS, Loop, policy_of_kind

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
@pytest.mark.parametrize("form", ["c", "onnx", "numpy"])
def test_exports_say_that_they_do_not_know_a_kind(tmp_path: Path, header: PolicyHeader, form: str) -> None:
    done = CliRunner().invoke(
        cli, ["export", str(saved(tmp_path, header)), "--format", form, "--out", str(tmp_path / "x")]
    )
    assert isinstance(done.exception, lowgear.LowgearError)
    assert f"gear 0 is {header.gears[0].description}, which can't be exported or timed yet" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.safetensors"]


def test_training_says_that_it_does_not_know_a_kind() -> None:
    with pytest.raises(lowgear.LowgearError, match="gears 'hold,8': hold can't be trained yet"):
        lowgear.Agent("cartpole-swingup", gears=(HOLD, network(8)))
    with pytest.raises(lowgear.LowgearError, match="x8 can't be trained yet"):
        lowgear.Agent("cartpole-swingup", gears=(Gear("network", (8,)), network(8)))


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
