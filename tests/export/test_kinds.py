"""Gears of every kind in C, ONNX and NumPy: as the controller, and as a plain loop that shares no code with either."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lowgear.export import compiler
from lowgear.export.c_format import run_self_test, weight_bytes
from lowgear.export.check import compare, require_equal
from lowgear.export.layers import quantise
from lowgear.export.numpy_format import export_numpy
from lowgear.export.onnx_format import OnnxController
from lowgear.export.onnx_model import onnx_files
from lowgear.export.source import ExportRequest
from lowgear.policy.file import Policy
from lowgear.policy.gears import FROZEN_ACTIVATIONS, Gear
from tests.fixtures.exports import compile_c, reset, write_c
from tests.fixtures.kinds import ALONE, KINDS, Loop, policy_of_kind
from tests.fixtures.policies import STEPS, episodes_of, source_of
from tests.fixtures.weights import HEADER

FROZEN = tuple(
    Gear("frozen", (6, 5), activation, squash, heads, clips)
    for activation, squash, heads, clips in zip(
        FROZEN_ACTIVATIONS,
        ("clip", "tanh", "tanh", "clip", "tanh"),
        (1, 2, 1, 2, 2),
        (True, False, True, True, False),
        strict=True,
    )
)
ALL = {kind: header for kind, header in KINDS.items() if not header.sees_action} | {
    "every activation": replace(HEADER, gears=FROZEN),
    "sixteen layers": replace(HEADER, gears=(Gear("network", (3,) * 16), Gear("network", (9, 2, 7)))),
    "linear, alone": replace(ALONE, gears=(Gear("frozen", (), None, "clip", 1),)),
    "rectified and clipped": replace(ALONE, gears=(Gear("frozen", (3, 4), "leaky_relu", "clip", 1),)),
}
EVERY = pytest.mark.parametrize("kind", ALL)


def policy_of(kind: str, seed: int = 0) -> Policy:
    """With a master that uses all its gears on random observations."""
    return policy_of_kind(ALL[kind], seed, bias=3.0 if ALL[kind].sees_action else 0.0)


@pytest.mark.parametrize("weights", ["float32", "int8"])
@EVERY
def test_c_acts_as_the_network(kind: str, weights: str, tmp_path: Path, gcc: str) -> None:
    policy = policy_of(kind)
    library = compile_c(policy, tmp_path, gcc, weights)
    episodes = episodes_of(quantise(policy, weights))
    checked = require_equal(compare(library, episodes), "robot.c")
    assert checked.steps == 2 * STEPS
    assert checked.ties == 0
    assert "0 wrong gears, 0 wrong actions" in run_self_test(tmp_path, "robot", gcc)


@EVERY
def test_c_is_a_plain_loop(kind: str, tmp_path: Path, gcc: str) -> None:
    """Two episodes, one after the other, with a state that nobody but the C touches."""
    policy = policy_of(kind, 1)
    library, loop = compile_c(policy, tmp_path, gcc), Loop(policy)
    state = library.init()
    for episode in range(2):
        for observation in np.random.default_rng(episode).normal(size=(60, policy.header.obs_dim)).astype(np.float32):
            gear, expected, _ = loop.step(observation)
            found, action = library.step(state, observation)
            assert found == gear
            np.testing.assert_allclose(action, policy.bounds.scale(expected.astype(np.float32)), atol=4e-5)
        loop.begin()
        reset(library, state)


@EVERY
def test_c_compiles_clean(kind: str, tmp_path: Path, each_compiler: str) -> None:
    write_c(policy_of(kind), tmp_path)
    flags = [*compiler.STRICT, "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes"]
    source = [tmp_path / "robot.c"]
    compiler.build(each_compiler, [*flags, "-Os", "-ffreestanding", "-c"], source, tmp_path / "robot.o")
    test = [*flags, "-O1", "-g", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    for extra in ([], ["-DROBOT_LIBM"]):
        program = compiler.build(each_compiler, [*test, "-DROBOT_SELF_TEST", *extra], source, tmp_path / "test")
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


@EVERY
def test_onnx_acts_as_the_network(kind: str) -> None:
    policy = policy_of(kind)
    checked = require_equal(compare(OnnxController(policy, onnx_files(policy)), episodes_of(policy)), "onnx")
    assert checked.largest_action_error < 1e-5


@EVERY
def test_numpy_acts_as_the_network(kind: str, tmp_path: Path) -> None:
    made = export_numpy(ExportRequest(source_of(policy_of(kind), tmp_path), "robot", episodes=1))
    assert made.report["checked"]["wrong_gears"] == 0
    assert made.report["checked"]["largest_action_error"] < 1e-5


def test_bytes_of_constants_are_those_of_the_arrays() -> None:
    alone = policy_of_kind(ALONE)  # 4 observations that are clipped, 4 and 3 units, 2 actions; rows padded to 4
    assert weight_bytes(alone, "float32") == 4 * (2 * 4 + (4 + 1) * 4 + (4 + 1) * 4 + (3 + 1) * 4)
    assert weight_bytes(alone, "int8") == 4 * 2 * 4 + (4 + 4 + 3) * 4 + 3 * 2 * 4 * 4
