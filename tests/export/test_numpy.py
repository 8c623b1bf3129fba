"""The NumPy export acts without JAX, and so does the runtime it is made of."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from lowgear.export.form import Request
from lowgear.export.numpy_format import export_numpy
from tests.fixtures.policies import FORMS, policy_of, source_of, stored

BLOCKED = """
import sys
sys.modules["jax"] = None
sys.modules["envpool"] = None
sys.modules["gymnasium"] = None
"""
RUN = """
import json
import numpy as np
from controller import Controller
controller = Controller("robot.safetensors")
rows = [controller.step(row) for row in np.load("observations.npy")]
print(json.dumps([[gear, action.tolist()] for action, gear in rows]))
"""


def python(code, folder):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_importing_the_runtime_pulls_in_no_jax(tmp_path):
    done = python("import lowgear.policy.controller, sys; assert 'jax' not in sys.modules", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["dial", "learned prices", "no dial, one period", "small-only", "other bounds"])
def test_it_acts_where_there_is_no_jax(form, tmp_path):
    policy = policy_of(FORMS[form])
    made = export_numpy(Request(source_of(policy, tmp_path), "robot", episodes=1))
    assert made.report["checked"]["wrong_gears"] == 0
    for name, data in made.files.items():
        (tmp_path / name).write_bytes(data)
    (episode,) = stored(policy, 1)
    np.save(tmp_path / "observations.npy", episode.observation)
    done = python(BLOCKED + RUN, tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [gear for gear, _ in found] == episode.gear.tolist()
    np.testing.assert_allclose([action for _, action in found], episode.action, atol=1e-5)


def test_the_program_runs_as_it_is(tmp_path):
    made = export_numpy(Request(source_of(policy_of(), tmp_path), "robot", episodes=1))
    for name, data in made.files.items():
        (tmp_path / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "controller.py")], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("gear ") == 5, done.stderr
