"""Gears of every kind in C, ONNX and NumPy: as the controller, and as a plain loop that shares no code with either."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lowgear.evaluation.record import respond
from lowgear.export import compiler
from lowgear.export.c_format import run_self_test, weight_bytes
from lowgear.export.c_library import state_bytes
from lowgear.export.check import (
    ExportedController,
    StateBefore,
    action_error,
    compare,
    gear_action,
    require_equal,
)
from lowgear.export.layers import quantise
from lowgear.export.numpy_format import export_numpy
from lowgear.export.onnx_format import OnnxController, session
from lowgear.export.onnx_model import onnx_files
from lowgear.export.source import ExportRequest
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.policy.gears import FROZEN_ACTIVATIONS, Gear
from tests.export.test_c_bad_input import SANITIZE
from tests.fixtures.exports import compile_c, reset, write_c
from tests.fixtures.kinds import ALONE, KINDS, Loop, policy_of_kind
from tests.fixtures.policies import STEPS, episodes_of, source_of
from tests.fixtures.weights import ACT, HEADER

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
ALL = KINDS | {
    "every activation": replace(HEADER, gears=FROZEN),
    "sixteen layers": replace(HEADER, gears=(Gear("network", (3,) * 16), Gear("network", (9, 2, 7)))),
    "linear, alone": replace(ALONE, gears=(Gear("frozen", (), None, "clip", 1),)),
    "rectified and clipped": replace(ALONE, gears=(Gear("frozen", (3, 4), "leaky_relu", "clip", 1),)),
}
EVERY = pytest.mark.parametrize("kind", ALL)


def observations_of(policy: Policy, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(steps, policy.header.obs_dim)).astype(np.float32)


def policy_of(kind: str, seed: int = 0) -> Policy:
    """With a master that uses all its gears on random observations."""
    return policy_of_kind(ALL[kind], seed, bias=3.0 if ALL[kind].sees_action else 0.0)


def assert_every_gear(exported: ExportedController, policy: Policy) -> None:
    """What each gear does, wherever the master would go."""
    header, network = policy.header, Controller.from_policies([policy])
    last_action = np.linspace(-0.5, 0.7, header.act_dim, dtype=np.float32)
    for gear in range(len(header.gears)) if header.forced_gear is None else [header.forced_gear]:
        state = StateBefore(gear, 1, last_action, False)
        for observation in observations_of(policy, 30, gear):
            step = exported.step_from(state, observation)
            expected = gear_action(network, gear, observation, state)
            assert step.gear == gear
            assert action_error(policy, step.action, policy.bounds.scale(expected)) < 1e-5


@EVERY
def test_c_acts_as_the_network_and_as_a_plain_loop(kind: str, tmp_path: Path, gcc: str) -> None:
    policy = policy_of(kind)
    library, loop = compile_c(policy, tmp_path, gcc), Loop(policy)
    checked = require_equal(compare(library, episodes_of(policy)), "robot.c")
    assert (checked.steps, checked.ties) == (2 * STEPS, 0)
    assert_every_gear(library, policy)
    state = library.init()
    for episode in range(4):  # one after the other, with a state that nobody but the C touches
        for observation in observations_of(policy, 60, episode):
            gear, expected, _ = loop.step(observation)
            found, action = library.step(state, observation)
            assert found == gear
            np.testing.assert_allclose(action, policy.bounds.scale(expected.astype(np.float32)), atol=4e-5)
        loop.begin()
        reset(library, state)


@pytest.mark.parametrize("kind", ["hold", "every kind", "every activation", "imported"])
def test_int8_acts_as_its_network(kind: str, tmp_path: Path, gcc: str) -> None:
    policy = policy_of(kind)
    library = compile_c(policy, tmp_path, gcc, "int8")
    require_equal(compare(library, episodes_of(quantise(policy, "int8"))), "robot.c")
    assert "0 wrong gears, 0 wrong actions" in run_self_test(tmp_path, "robot", gcc)


def compiles_clean(kind: str, folder: Path, cc: str, options: list[str]) -> None:
    """Freestanding, and with a self-test that passes, with its own mathematics and that of libm."""
    write_c(policy_of(kind), folder)
    flags = [*compiler.STRICT, "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", *options]
    source = [folder / "robot.c"]
    compiler.build(cc, [*flags, "-ffreestanding", "-c"], source, folder / "robot.o")
    for extra in ([], ["-DROBOT_LIBM"]):
        program = compiler.build(cc, [*flags, "-DROBOT_SELF_TEST", *extra], source, folder / "test")
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert "0 wrong gears, 0 wrong actions" in done.stdout


@EVERY
def test_c_compiles_clean(kind: str, tmp_path: Path, each_compiler: str) -> None:
    compiles_clean(kind, tmp_path, each_compiler, ["-O0"])


@pytest.mark.slow
@EVERY
def test_c_is_clean_under_sanitizers(kind: str, tmp_path: Path, each_compiler: str) -> None:
    compiles_clean(kind, tmp_path, each_compiler, [*SANITIZE, "-fsanitize=float-cast-overflow"])


@pytest.mark.parametrize("kind", ["hold", "hold, no dial", "every kind", "every activation", "linear, alone"])
def test_nan_is_read_as_0_and_the_last_action_stays_sound(kind: str, tmp_path: Path, gcc: str) -> None:
    policy = policy_of(kind)
    library, loop = compile_c(policy, tmp_path, gcc), Loop(policy)
    state, random = library.init(), np.random.default_rng(0)
    for observation in observations_of(policy, 200):
        bad = np.where(random.random(len(observation)) < 0.3, np.float32(np.nan), observation)
        gear, expected, _ = loop.step(np.nan_to_num(bad, nan=0.0))
        found, action = library.step(state, bad)
        assert found == gear
        np.testing.assert_allclose(action, policy.bounds.scale(expected.astype(np.float32)), atol=4e-5)
        if policy.header.sees_action:
            np.testing.assert_allclose(list(state.last_action), expected, atol=2e-5)
    low, high = np.float32(policy.header.action_low), np.float32(policy.header.action_high)
    worse = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0, 1])
    for _ in range(500):
        _, action = library.step(state, random.choice(worse, policy.header.obs_dim))
        assert ((low <= action) & (action <= high)).all()
        assert np.abs(list(getattr(state, "last_action", [0]))).max() <= 1


def test_the_state_is_as_large_as_the_docs_say() -> None:
    assert state_bytes(ALONE) == 16
    assert state_bytes(KINDS["hold, forced"]) == 16
    assert state_bytes(KINDS["hold"]) == 16 + 4 * ACT


def test_the_source_of_a_frozen_gear_cannot_leave_its_comment(tmp_path: Path, gcc: str) -> None:
    odd = replace(ALONE, gears=(replace(ALONE.gears[0], source="*/ int y; /* \\\n??/"),))
    files = write_c(policy_of_kind(odd), tmp_path)
    compiler.build(gcc, [*compiler.STRICT, "-Wcomment", "-c"], [tmp_path / "robot.c"], tmp_path / "robot.o")
    assert b"int y" in files["robot.c"]
    assert b"*/ int y" not in files["robot.c"] + files["robot.h"]


@EVERY
def test_onnx_acts_as_the_network(kind: str) -> None:
    policy = policy_of(kind)
    controller = OnnxController(policy, onnx_files(policy))
    checked = require_equal(compare(controller, episodes_of(policy)), "onnx")
    assert checked.largest_action_error < 1e-5
    assert_every_gear(controller, policy)


@EVERY
def test_numpy_acts_as_the_network(kind: str, tmp_path: Path) -> None:
    made = export_numpy(ExportRequest(source_of(policy_of(kind), tmp_path), "robot", episodes=1))
    assert made.report["checked"]["wrong_gears"] == 0
    assert made.report["checked"]["largest_action_error"] < 1e-5


def test_bytes_of_constants_are_those_of_the_arrays() -> None:
    alone = policy_of_kind(ALONE)  # 4 observations that are clipped, 4 and 3 units, 2 actions; rows padded to 4
    assert weight_bytes(alone, "float32") == 4 * (2 * 4 + (4 + 1) * 4 + (4 + 1) * 4 + (3 + 1) * 4)
    assert weight_bytes(alone, "int8") == 4 * (2 * 4 + (4 + 1) * 4) + (4 + 3) * 4 + 2 * 2 * 4 * 4  # the first stays


def test_onnx_runs_alone_with_its_state_in_and_out() -> None:
    policy = policy_of("hold")
    files = onnx_files(policy)
    assert sorted(files) == ["controller.onnx", "gear1.onnx", "gear2.onnx", "master.onnx"]
    runs, master, loop = session(files["controller.onnx"]), session(files["master.onnx"]), Loop(policy)
    position = np.float32([policy.header.dial.position(policy.header.cost_coefficient)])
    held = 0
    for episode in range(3):
        loop.begin()
        choice, left = np.array([-1]), np.array([0])  # which begins an episode, whatever the last action is
        last_action = np.full((1, ACT), 0.5, np.float32)
        for t, observation in enumerate(observations_of(policy, 60, episode)):
            due = left[0] == 0
            seen = {"observation": observation[None], "last_action": last_action, "position": position}
            picked = master.run(None, seen | {"start": np.array([t == 0])})[0]
            action, gear, choice, left, last_action = runs.run(None, seen | {"choice": choice, "left": left})
            number, expected, _ = loop.step(observation)
            assert gear[0] == number
            assert not due or picked[0] == choice[0]
            np.testing.assert_allclose(last_action[0], expected, atol=2e-5)
            np.testing.assert_allclose(action[0], policy.bounds.scale(expected.astype(np.float32)), atol=4e-5)
            held += number == 0
    assert held > 20


def test_onnx_reads_silu_of_large_numbers() -> None:
    policy = policy_of_kind(replace(ALONE, gears=(Gear("frozen", (6, 5), "silu", "clip", 1),)))
    (episode,) = episodes_of(policy, 1)
    large = respond(policy, episode.observation * np.float32(1e4))
    assert np.abs(large.action).min() < 1
    assert compare(OnnxController(policy, onnx_files(policy)), [large]).largest_action_error < 1e-5
