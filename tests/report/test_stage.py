"""Where episodes are drawn: every published task has its place, and a reason where it has none."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.report.stage import open_stage
from tests.fixtures.runs import random_policy

pytestmark = [
    pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes its warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


def test_ant_sees_zeros_where_its_contact_forces_were() -> None:
    """EnvPool's Ant-v3 leaves them at 0, as the MuJoCo of the paper did; Gymnasium's Ant-v4 fills them in."""
    header = random_policy(resolve(find("Ant-v3"), steps=2000), 0).header
    stage = open_stage(header, False)
    if stage.why_blind:
        pytest.skip(f"MuJoCo cannot draw here: {stage.why_blind}")
    assert stage.name == "Ant-v4 of Gymnasium"
    seen = stage.env.reset([0])
    assert seen.shape == (1, 111)
    pool = envs.make(find("Ant-v3"), 1)
    for place in (pool, stage.env):
        place.reset([0])
        for _ in range(30):
            step = place.step(np.full((1, 8), 0.5, np.float32))
            assert not step.observation[0, 27:].any()
    stage.close()


def test_one_robot_after_another_is_seen_and_followed() -> None:
    """Gymnasium's own renderer leaves the second one black."""
    for name in ("HalfCheetah-v3", "Swimmer-v3"):
        policy = random_policy(resolve(find(name), steps=2000), 0)
        stage = open_stage(policy.header, False)
        if stage.why_blind:
            pytest.skip(f"MuJoCo cannot draw here: {stage.why_blind}")
        assert stage.draw is not None
        stage.env.reset([0])
        before = stage.draw()
        for _ in range(40):
            stage.env.step(np.ones((1, policy.header.act_dim), np.float32))
        after = stage.draw()
        stage.close()
        assert before.shape == (256, 256, 3)
        assert before.mean() > 30
        assert np.abs(before.astype(int) - after.astype(int)).mean() > 1


def test_fetch_is_played_where_it_was_trained_and_says_why() -> None:
    stage = open_stage(random_policy(resolve(find("FetchPush-v1"), steps=2000), 0).header, False)
    assert stage.draw is None
    assert stage.name == "FetchPush-v1 of EnvPool"
    assert stage.why_blind is not None
    assert "gymnasium-robotics" in stage.why_blind


def test_an_environment_with_other_observations_is_refused() -> None:
    from dataclasses import replace

    header = random_policy(resolve(find("MountainCarContinuous-v0"), steps=2000), 0).header
    stage = open_stage(replace(header, layout=(("position", 1), ("speed", 1))), False)
    assert stage.draw is None
    assert stage.why_blind is not None
    assert "other observations" in stage.why_blind


WITHOUT = """
import sys
sys.modules["dm_control"] = None
from tests.fixtures.runs import random_policy
from lowgear.config.run import resolve
from lowgear.report.stage import open_stage
from lowgear.config.tasks import find
stage = open_stage(random_policy(resolve(find("cartpole-swingup"), steps=2000), 0).header, False)
assert stage.draw is None and stage.name == "CartpoleSwingup-v1 of EnvPool", stage
assert "pip install 'lowgear[dmc]'" in stage.why_blind, stage.why_blind
stage.env.reset([0])
"""


def test_without_dm_control_the_episode_is_played_in_envpool() -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, cwd=root)


def test_a_mujoco_that_was_loaded_for_a_screen_leaves_the_stage_dark(tmp_path: Path) -> None:
    """Its renderer would end the process without one."""
    code = """
import mujoco, mujoco.gl_context
from lowgear.config.run import resolve
from lowgear.report.stage import open_stage
from lowgear.config.tasks import find
from tests.fixtures.runs import random_policy
stage = open_stage(random_policy(resolve(find("HalfCheetah-v3"), steps=2000), 0).header, False)
print(stage.why_blind)
"""
    environment = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "DISPLAY")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MUJOCO_GL=egl" in done.stdout
