"""ONNX models in the real ONNX Runtime: each gear, the master, and the controller that shifts by itself."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.export.check import compare, require_equal
from lowgear.export.onnx_format import OnnxController, export_onnx, session
from lowgear.export.onnx_model import OPSET, onnx_files
from lowgear.export.source import ExportRequest
from tests.fixtures.policies import HEADER, KINDS, episodes_of, policy_of, source_of

onnx = pytest.importorskip("onnx", reason="the extra `export` is not installed")


@pytest.mark.parametrize("kind", KINDS)
def test_acts_as_the_network(kind):
    policy = policy_of(KINDS[kind])
    checked = require_equal(compare(OnnxController(policy, onnx_files(policy)), episodes_of(policy)), "onnx")
    assert checked.largest_action_error < 1e-5


def test_the_controller_runs_alone_with_its_state_in_and_out():
    policy = policy_of(KINDS["three gears"])
    (episode,) = episodes_of(policy, 1)
    runs = session(onnx_files(policy)["controller.onnx"])
    choice, left = np.zeros(1, np.int64), np.zeros(1, np.int64)
    position = np.float32([policy.header.dial.position(policy.header.cost_coefficient)])
    for t, observation in enumerate(episode.observation):
        inputs = {"observation": observation[None], "choice": choice, "left": left, "position": position}
        action, gear, choice, left = runs.run(["action", "gear", "next_choice", "next_left"], inputs)
        assert gear[0] == episode.gear[t]
        np.testing.assert_allclose(action[0], episode.action[t], atol=1e-5)


@pytest.mark.parametrize("kind", ["dial from below 0", "learned prices, dial from 0"])
def test_all_along_a_dial_it_picks_as_the_network(kind):
    policy = policy_of(KINDS[kind])
    files = onnx_files(policy)
    for coefficient in policy.header.dial.settings(5):
        turned = policy.at(coefficient)
        require_equal(compare(OnnxController(turned, files), episodes_of(turned, 1)), "onnx")


def test_files_say_their_opset_and_only_the_chosen_gear_is_inside_a_branch(tmp_path):
    policy = policy_of(KINDS["dial"])
    made = export_onnx(ExportRequest(source_of(policy, tmp_path), "robot", episodes=1))
    assert sorted(made.files) == ["controller.onnx", "gear0.onnx", "gear1.onnx", "master.onnx"]
    assert made.report["opset"] == OPSET
    assert made.report["gears_alone_error"] < 1e-5
    model = onnx.load_from_string(made.files["controller.onnx"])
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", OPSET)]
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("If") == 2
    assert "Gemm" not in kinds  # every product is in a branch


def test_a_policy_that_never_shifts_is_one_gear():
    assert list(onnx_files(policy_of(KINDS["large-only"]))) == ["gear1.onnx"]


def test_bad_observations_give_the_actions_of_readable_ones():
    policy = policy_of(KINDS["three gears"])
    bad = np.array([[np.nan, np.inf, -np.inf] + [0.5] * (policy.header.obs_dim - 3)], np.float32)
    good = np.array([[0, 1e6, -1e6] + [0.5] * (policy.header.obs_dim - 3)], np.float32)
    for name, content in onnx_files(policy).items():
        runs = session(content)
        others = {
            "choice": np.zeros(1, np.int64),
            "left": np.zeros(1, np.int64),
            "position": np.zeros(1, np.float32),
        }
        inputs = {entry.name: others.get(entry.name) for entry in runs.get_inputs()}
        found, wanted = (runs.run(None, inputs | {"observation": seen}) for seen in (bad, good))
        for one, other in zip(found, wanted, strict=True):
            assert np.isfinite(one).all(), name
            np.testing.assert_array_equal(one, other)


def test_names_of_observations_and_actions_are_in_the_models_metadata():
    names = {"observation_names": ("angle", "speed/2", "a", "b", "c"), "action_names": ("torque",)}
    policy = policy_of(replace(HEADER, **names))
    for data in onnx_files(policy).values():
        found = session(data).get_modelmeta().custom_metadata_map
        assert found == {"observation_names": "angle,speed_2,a,b,c", "action_names": "torque"}
    assert session(onnx_files(policy_of())["gear0.onnx"]).get_modelmeta().custom_metadata_map == {}
