"""Generated C: compiles clean, acts as the network, keeps to its names."""

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.export import compiler
from lowgear.export.c_format import run_self_test
from lowgear.export.check import compare, require_equal
from lowgear.export.layers import quantise
from lowgear.export.plain import check_name, default_name
from tests.fixtures.exports import compile_c, reset, set_cost_coefficient, write_c
from tests.fixtures.policies import HEADER, KINDS, STEPS, episodes_of, policy_of


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_acts_as_the_network(kind, weights, tmp_path, gcc):
    policy = policy_of(KINDS[kind])
    library = compile_c(policy, tmp_path, gcc, weights)
    found = compare(library, episodes_of(quantise(policy, weights)))
    checked = require_equal(found, "robot.c")
    assert checked.steps == 2 * STEPS
    assert (checked.picks == 0) == (policy.header.forced_gear is not None)
    assert checked.largest_action_error < 1e-5
    assert "0 wrong gears, 0 wrong actions" in run_self_test(tmp_path, "robot", gcc)
    fixed = ("no dial, one period", "equal ends", "learned prices, equal ends", "small-only", "large-only")
    assert (library.function("set_cost_coefficient") is None) == (kind in fixed)


@pytest.mark.parametrize(
    "kind", ["dial", "dial from below 0", "learned prices", "no dial, one period", "large-only", "relu"]
)
def test_compiles_clean_everywhere(kind, tmp_path, each_compiler):
    write_c(policy_of(KINDS[kind]), tmp_path)
    write_c(policy_of(KINDS[kind]), tmp_path, "int8", "narrow")
    flags = [*compiler.STRICT, "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes"]
    for name in ("robot", "narrow"):
        source = [tmp_path / f"{name}.c"]
        test = f"-D{name.upper()}_SELF_TEST"
        for extra in (["-O3", "-march=native"], ["-Os", "-ffreestanding", "-c"]):
            compiler.build(
                each_compiler, [*flags, *extra, *([] if "-c" in extra else [test])], source, tmp_path / "out"
            )
        libm = compiler.build(each_compiler, [*flags, "-O2", test, f"-D{name.upper()}_LIBM"], source, tmp_path / "libm")
        assert subprocess.run([libm], capture_output=True, check=False).returncode == 0


def test_every_symbol_is_prefixed_and_nothing_is_needed(tmp_path, gcc):
    write_c(policy_of(), tmp_path)
    source = compiler.build(
        gcc, [*compiler.STRICT, "-Os", "-ffreestanding", "-c"], [tmp_path / "robot.c"], tmp_path / "o"
    )
    lines = subprocess.run(["nm", str(source)], capture_output=True, text=True, check=True).stdout.splitlines()
    symbols = {line.split()[-1]: line.split()[-2] for line in lines}
    public = {symbol for symbol, kind in symbols.items() if kind == "T"}
    assert public == {f"robot_{what}" for what in ("init", "reset", "step", "gear", "set_cost_coefficient")}
    assert {symbol for symbol, kind in symbols.items() if kind == "U"} <= {"memcpy", "memset"}
    assert not {kind for kind in symbols.values() if kind in "dDbBC"}  # no memory of its own
    text = (tmp_path / "robot.c").read_text() + (tmp_path / "robot.h").read_text()
    assert all(name.startswith("ROBOT_") for name in re.findall(r"#define (\w+)", text) if name.isupper())


def test_only_the_chosen_gear_and_the_mean_head_are_there(tmp_path):
    small = replace(HEADER, forced_gear=0)
    text = write_c(policy_of(small), tmp_path)["robot.c"].decode()
    assert "robot_gear0_0_weight" in text
    assert "robot_gear1" not in text
    assert "robot_master" not in text
    policy = policy_of(KINDS["wide"])
    wide = write_c(policy, tmp_path)["robot.c"].decode()
    last = re.search(r"robot_gear1_2_weight\[(\d+)\]", wide)
    assert last is not None
    assert int(last[1]) == 64 * 8  # six outputs padded to eight, not twelve


def test_the_dial_turns_within_its_ends(tmp_path, gcc):
    policy = policy_of()
    library = compile_c(policy, tmp_path, gcc)
    state = library.init()
    assert state.position == pytest.approx(0.0, abs=1e-6)
    for coefficient in np.geomspace(0.001, 0.1, 50):
        assert set_cost_coefficient(library, state, float(coefficient)) == 0
        assert state.position == pytest.approx(policy.header.dial.position(float(coefficient)), abs=1e-6)
        assert state.cost_coefficient == pytest.approx(coefficient, rel=1e-6)
    assert abs(state.position) <= 1
    for wrong in (0.0, 0.0009, 0.11, -1.0, float("nan"), float("inf")):
        before = state.position, state.cost_coefficient
        assert set_cost_coefficient(library, state, wrong) == -1
        assert (state.position, state.cost_coefficient) == before


def test_a_dial_from_below_0_turns_within_its_ends(tmp_path, gcc):
    policy = policy_of(KINDS["dial from below 0"])
    dial = policy.header.dial
    library = compile_c(policy, tmp_path, gcc)
    state = library.init()
    assert state.position == pytest.approx(dial.position(-0.001), abs=2e-6)
    for coefficient in (*np.linspace(-0.01, 0.1, 50), 0.0, 1e-5, -1e-5, dial.low * (1 + 5e-7), dial.high * (1 + 5e-7)):
        assert set_cost_coefficient(library, state, float(coefficient)) == 0
        assert state.position == pytest.approx(dial.position(float(coefficient)), abs=2e-6)
        assert abs(state.position) <= 1
        assert state.cost_coefficient == pytest.approx(coefficient, rel=1e-6)
    for wrong in (-0.011, 0.11, -1.0, float("nan"), float("inf"), float("-inf")):
        before = state.position, state.cost_coefficient
        assert set_cost_coefficient(library, state, wrong) == -1
        assert (state.position, state.cost_coefficient) == before
    for coefficient in (-0.01, 0.0, 0.002, 0.1):
        (episode,) = episodes_of(policy.at(coefficient), 1)
        state = library.init()
        assert set_cost_coefficient(library, state, coefficient) == 0
        gears = [library.step(state, observation)[0] for observation in episode.observation]
        np.testing.assert_array_equal(gears, episode.gear)


@pytest.mark.parametrize("kind", ["wide", "learned prices, three gears, wide, relu"])
def test_a_setting_of_the_dial_picks_as_the_network_does_there(kind, tmp_path, gcc):
    policy = policy_of(KINDS[kind])
    library = compile_c(policy, tmp_path, gcc)
    for coefficient in (0.001, 0.03, 0.1):
        (episode,) = episodes_of(policy.at(coefficient), 1)
        state = library.init()
        assert set_cost_coefficient(library, state, coefficient) == 0
        gears = [library.step(state, observation)[0] for observation in episode.observation]
        np.testing.assert_array_equal(gears, episode.gear)


def test_reset_asks_the_master_and_leaves_the_dial(tmp_path, gcc):
    policy = policy_of()
    library = compile_c(policy, tmp_path, gcc)
    state = library.init()
    set_cost_coefficient(library, state, 0.05)
    position = state.position
    library.step(state, np.ones(5, np.float32))
    assert state.left > 0
    reset(library, state)
    assert (state.left, state.position) == (0, position)


def test_two_states_do_not_disturb_each_other(tmp_path, gcc):
    policy = policy_of()
    library = compile_c(policy, tmp_path, gcc)
    episodes = episodes_of(policy)
    states = [library.init(), library.init()]
    for t in range(STEPS):
        for state, episode in zip(states, episodes, strict=True):
            gear, action = library.step(state, episode.observation[t])
            assert gear == episode.gear[t]
            assert action == pytest.approx(episode.action[t], abs=1e-5)


def test_names():
    assert default_name("walker-stand") == "walker_stand"
    assert default_name("gym:Pendulum-v1") == "pendulum_v1"
    assert default_name("gym:2D-thing") == "task_2d_thing"
    assert check_name("Robot_2") == "Robot_2"
    for bad in ("2robot", "my-robot", "", "robot step", "_x", "robot;", "rôbot"):
        with pytest.raises(LowgearError, match="cannot begin a C identifier"):
            check_name(bad)


def test_a_task_cannot_end_the_comment_it_stands_in(tmp_path, gcc):
    header = replace(HEADER, task="gym:x*/ int y; /*", layout=(("*/\n", 5),))
    files = write_c(policy_of(header), tmp_path)
    compiler.build(gcc, [*compiler.STRICT, "-c"], [tmp_path / "robot.c"], tmp_path / "o")
    assert b"*/ int y" not in files["robot.c"] + files["robot.h"]
