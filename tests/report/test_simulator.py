"""Where episodes are rendered: every published task has its place, and a reason where it has none."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.report.simulator import open_simulator
from tests.fixtures.probes import Wander
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
    simulator = open_simulator(header, False)
    if simulator.render_error:
        pytest.skip(f"MuJoCo cannot draw here: {simulator.render_error}")
    assert simulator.name == "Ant-v4 of Gymnasium"
    seen = simulator.env.reset([0])
    assert seen.shape == (1, 111)
    pool = envs.make(find("Ant-v3"), 1)
    for place in (pool, simulator.env):
        place.reset([0])
        for _ in range(30):
            step = place.step(np.full((1, 8), 0.5, np.float32))
            assert not step.observation[0, 27:].any()
    simulator.close()


def test_one_robot_after_another_is_seen_and_followed() -> None:
    """Gymnasium's own renderer leaves the second one black."""
    for name in ("HalfCheetah-v3", "Swimmer-v3"):
        policy = random_policy(resolve(find(name), steps=2000), 0)
        simulator = open_simulator(policy.header, False)
        if simulator.render_error:
            pytest.skip(f"MuJoCo cannot draw here: {simulator.render_error}")
        assert simulator.render is not None
        simulator.env.reset([0])
        before = simulator.render()
        for _ in range(40):
            simulator.env.step(np.ones((1, policy.header.act_dim), np.float32))
        after = simulator.render()
        simulator.close()
        assert before.shape == (360, 640, 3)
        assert before.mean() > 30
        assert np.abs(before.astype(int) - after.astype(int)).mean() > 1


def test_fetch_is_played_where_it_was_trained_and_says_why() -> None:
    simulator = open_simulator(random_policy(resolve(find("FetchPush-v1"), steps=2000), 0).header, False)
    assert simulator.render is None
    assert simulator.name == "FetchPush-v1 of EnvPool"
    assert simulator.render_error is not None
    assert "gymnasium-robotics" in simulator.render_error


def test_an_environment_with_other_observations_is_refused() -> None:
    from dataclasses import replace

    header = random_policy(resolve(find("MountainCarContinuous-v0"), steps=2000), 0).header
    simulator = open_simulator(replace(header, layout=(("position", 1), ("speed", 1))), False)
    assert simulator.render is None
    assert simulator.render_error is not None
    assert "other observations" in simulator.render_error


WITHOUT = """
import sys
sys.modules["dm_control"] = None
from tests.fixtures.runs import random_policy
from lowgear.config.run import resolve
from lowgear.report.simulator import open_simulator
from lowgear.config.tasks import find
simulator = open_simulator(random_policy(resolve(find("cartpole-swingup"), steps=2000), 0).header, False)
assert simulator.render is None and simulator.name == "CartpoleSwingup-v1 of EnvPool", simulator
assert "pip install 'lowgear[dmc]'" in simulator.render_error, simulator.render_error
simulator.env.reset([0])
"""


def test_without_dm_control_the_episode_is_played_in_envpool() -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, cwd=root)


def test_a_mujoco_that_was_loaded_for_a_screen_renders_nothing(tmp_path: Path) -> None:
    """Its renderer would end the process without one."""
    code = """
import mujoco, mujoco.gl_context
from lowgear.config.run import resolve
from lowgear.report.simulator import open_simulator
from lowgear.config.tasks import find
from tests.fixtures.runs import random_policy
simulator = open_simulator(random_policy(resolve(find("HalfCheetah-v3"), steps=2000), 0).header, False)
print(simulator.render_error)
"""
    environment = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "DISPLAY")}
    root = Path(__file__).parents[2]
    environment["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MUJOCO_GL=egl" in done.stdout


class Drawn(Wander):
    """Draws its place as a bar."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def render(self) -> np.ndarray:
        assert self.render_mode == "rgb_array"
        return np.full((4, 4, 3), 100 + int(10 * self._x), np.uint8)


def test_ones_own_environment_is_drawn_where_it_takes_a_render_mode() -> None:
    simulator = open_simulator(random_policy(resolve(find(f"{__name__}:Drawn"), steps=2000), 0).header, False)
    assert (simulator.name, simulator.render_error) == (f"{__name__}:Drawn", None)
    assert simulator.render is not None
    simulator.env.reset([3])
    assert simulator.render().shape == (4, 4, 3)
    simulator.close()
    header = random_policy(resolve(find("tests.fixtures.probes:Wander"), steps=2000), 0).header
    plain = open_simulator(header, False)
    assert plain.render is None
    assert plain.render_error == "tests.fixtures.probes:Wander takes no render_mode, so that it cannot be drawn"
    plain.close()
