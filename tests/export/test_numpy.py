"""The NumPy export runs where there is NumPy and safetensors and nothing else, not even Lowgear."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import lowgear
from lowgear.export.numpy_format import export_numpy
from lowgear.export.source import ExportRequest
from tests.fixtures.exports import write_files
from tests.fixtures.kinds import KINDS as OTHER_KINDS
from tests.fixtures.kinds import policy_of_kind
from tests.fixtures.policies import KINDS, episodes_of, policy_of, source_of

RUN = """
import importlib.util, json
import numpy as np
from controller import Controller

assert not any(importlib.util.find_spec(name) for name in ("lowgear", "jax", "envpool", "gymnasium", "rich", "click"))
controller = Controller("robot.safetensors", {coefficient})
episodes = []
for observations in np.load("observations.npy"):
    controller.reset()
    episodes.append([[gear, action.tolist()] for action, gear in map(controller.step, observations)])
print(json.dumps(episodes))
"""


@pytest.fixture(scope="module")
def numpy_only(tmp_path_factory):
    """A folder with NumPy and safetensors alone, to stand in place of the installed packages."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("numpy", "safetensors"):
        package = Path(find_spec(name).origin).parent
        (folder / name).symlink_to(package)
        if (libraries := package.with_name(f"{name}.libs")).exists():
            (folder / libraries.name).symlink_to(libraries)
    return folder


def run(arguments, packages, cwd):
    """Python without the installed packages."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-S", "-s", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_importing_the_policy_room_pulls_in_nothing_else():
    code = "import sys, lowgear.policy.controller; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "envpool", "gymnasium", "rich", "click"} & set(done.stdout.split())


@pytest.mark.parametrize(
    "kind",
    [
        *("dial", "dial from below 0", "learned prices", "no dial, one period", "small-only", "other bounds"),
        *("every kind", "imported"),
    ],
)
def test_it_acts_as_the_network_where_lowgear_is_not_installed(kind, tmp_path, numpy_only):
    policy = policy_of(KINDS[kind]) if kind in KINDS else policy_of_kind(OTHER_KINDS[kind])
    made = export_numpy(ExportRequest(source_of(policy, tmp_path), "robot", episodes=1))
    assert made.report["checked"]["wrong_gears"] == 0
    write_files(made.files, tmp_path / "export")
    coefficient = 0.05 if policy.turns and kind != "small-only" else None
    episodes = episodes_of(policy if coefficient is None else policy.at(coefficient))
    np.save(tmp_path / "export" / "observations.npy", [episode.observation for episode in episodes])
    done = run(["-c", RUN.format(coefficient=coefficient)], numpy_only, tmp_path / "export")
    assert done.returncode == 0, done.stderr
    for found, episode in zip(json.loads(done.stdout), episodes, strict=True):
        assert [gear for gear, _ in found] == episode.gear.tolist()
        np.testing.assert_allclose([action for _, action in found], policy.bounds.scale(episode.action), atol=1e-5)


def test_the_program_runs_as_it_is(tmp_path, numpy_only):
    made = export_numpy(ExportRequest(source_of(policy_of(), tmp_path), "robot", episodes=1))
    write_files(made.files, tmp_path / "export")
    done = run([tmp_path / "export" / "controller.py"], numpy_only, tmp_path)
    assert done.stdout.count("gear ") == 5, done.stderr


def test_the_package_is_the_code_that_runs_here_under_another_name(tmp_path):
    made = export_numpy(ExportRequest(source_of(policy_of(), tmp_path), "robot", episodes=1))
    package = {Path(name).name: data.decode() for name, data in made.files.items() if name.startswith("robot_policy/")}
    ours = {path.name: path.read_text() for path in Path(lowgear.__file__).with_name("policy").glob("*.py")}
    assert set(package) == set(ours)
    for name, text in package.items():
        assert not re.search(r"(import|from) lowgear", text), name
        back = text.replace("from robot_policy import LowgearError", "from lowgear import LowgearError")
        assert back.replace("from robot_policy", "from lowgear.policy").startswith(ours[name])
    assert "robot_policy" not in sys.modules


def test_an_older_lowgear_on_the_path_is_not_asked(tmp_path, numpy_only):
    made = export_numpy(ExportRequest(source_of(policy_of(), tmp_path), "robot", episodes=1))
    write_files(made.files, tmp_path / "export")
    (tmp_path / "export" / "lowgear.py").write_text("raise RuntimeError('imported')")
    done = run([tmp_path / "export" / "controller.py"], numpy_only, tmp_path)
    assert done.stdout.count("gear ") == 5, done.stderr
