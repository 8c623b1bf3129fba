"""Whatever a sensor says, actions are finite and within bounds; sanitizers find nothing."""

import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lowgear.export import compiler
from lowgear.policy.file import Policy
from tests.fixtures.exports import compile_c, write_c
from tests.fixtures.kinds import EVERY_KIND, policy_of_kind
from tests.fixtures.policies import BOUNDED, HEADER, KINDS, policy_of

SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
FUZZ = """
#include "robot.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    float low = strtof(argv[1], 0), high = strtof(argv[2], 0);
    uint32_t bits = 1u;
    long k;
    int i, gear;
    robot_state state;
    float *observation = malloc(sizeof(float) * ROBOT_OBSERVATION_SIZE); /* on the heap: a step too far is seen */
    float *action = malloc(sizeof(float) * ROBOT_ACTION_SIZE);
    (void)argc;
    robot_init(&state);
    for (k = 0; k < 20000; ++k) {
        for (i = 0; i < ROBOT_OBSERVATION_SIZE; ++i) {
            bits = bits * 1664525u + 1013904223u;
            memcpy(&observation[i], &bits, sizeof bits); /* any bits at all */
        }
        gear = robot_step(&state, observation, action);
        if (gear < 0 || gear >= ROBOT_GEARS)
            return 2;
        for (i = 0; i < ROBOT_ACTION_SIZE; ++i)
            if (!(action[i] >= low && action[i] <= high))
                return 3;
    }
    free(observation);
    free(action);
    return 0;
}
"""


@pytest.mark.parametrize("kind", ["dial", "relu", "every kind"])
def test_any_bits_under_sanitizers(kind, tmp_path, each_compiler):
    policy = policy_of(KINDS[kind]) if kind in KINDS else policy_of_kind(EVERY_KIND, bias=3.0)
    write_c(policy, tmp_path)
    (tmp_path / "fuzz.c").write_text(FUZZ)
    sources = [tmp_path / "robot.c", tmp_path / "fuzz.c"]
    program = compiler.build(each_compiler, ["-std=c99", *SANITIZE], sources, tmp_path / "fuzz")
    bounds = [str(max(map(abs, policy.header.action_high)) * sign) for sign in (-1, 1)]
    done = subprocess.run([program, *bounds], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_the_self_test_under_sanitizers(weights, tmp_path, each_compiler):
    write_c(policy_of(KINDS["other bounds"]), tmp_path, weights)
    flags = [*compiler.STRICT, *SANITIZE, "-DROBOT_SELF_TEST"]
    program = compiler.build(each_compiler, flags, [tmp_path / "robot.c"], tmp_path / "test")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 actions out of bounds" in done.stdout


def test_the_self_test_fails_where_it_should(tmp_path, gcc):
    text = write_c(policy_of(), tmp_path)["robot.c"].decode()
    mark = "robot_gear0_2_bias[4] = {\n    "
    assert mark in text
    (tmp_path / "robot.c").write_text(text.replace(mark, mark + "0.01f + "))
    program = compiler.build(gcc, ["-DROBOT_SELF_TEST"], [tmp_path / "robot.c"], tmp_path / "test")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert " 0 wrong actions" not in done.stdout


@pytest.mark.parametrize("kind", ["dial", "learned prices", "three gears", "small-only", "relu", "other bounds"])
def test_bad_observations_act_within_bounds(kind, tmp_path, gcc):
    policy = policy_of(KINDS[kind])
    library = compile_c(policy, tmp_path, gcc)
    low, high = np.float32(policy.header.action_low), np.float32(policy.header.action_high)
    rng, state = np.random.default_rng(0), library.init()
    bad = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0, 1])
    for _ in range(500):
        _, action = library.step(state, rng.choice(bad, policy.header.obs_dim))
        assert np.isfinite(action).all()
        assert ((low <= action) & (action <= high)).all()


def test_nan_is_read_as_zero_and_infinity_as_the_limit(tmp_path, gcc):
    policy = policy_of()
    library = compile_c(policy, tmp_path, gcc)
    observation = np.float32([0.3, -0.2, 0.5, 1.0, -1.0])
    broken, mended = observation.copy(), observation.copy()
    broken[1], mended[1] = np.nan, 0.0
    broken[3], mended[3] = -np.inf, -1e6
    states = library.init(), library.init()
    for _ in range(30):
        one, two = (library.step(state, x) for state, x in zip(states, (broken, mended), strict=True))
        assert one[0] == two[0]
        np.testing.assert_array_equal(one[1], two[1])
        assert (states[0].choice, states[0].left) == (states[1].choice, states[1].left)


def test_infinity_through_a_rectifier_reaches_one_number_of_the_action(tmp_path, gcc):
    header = replace(HEADER, **BOUNDED, gears=(2, 3), activation="relu", forced_gear=0, variant="small-only")
    policy, ones = policy_of(header), partial(np.ones, dtype=np.float32)
    last = np.array([[[1, 1, 0, 0], [1, -1, 0, 0]]], np.float32)  # the second number is infinity minus infinity
    layers = [(ones((1, 5, 2)), ones((1, 2))), (ones((1, 2, 2)), ones((1, 2))), (last, ones((1, 4)))]
    policy = replace(policy, weights=policy.weights._replace(gears=(layers, policy.weights.gears[1])))
    library = compile_c(policy, tmp_path, gcc)
    observation = np.array([0.1, 0.1, np.inf, 0.1, 0.1], np.float32)
    _, action = library.step(library.init(), observation)
    assert np.isfinite(action).all()


def test_weights_that_overflow_still_act_within_bounds(tmp_path, gcc):
    policy = policy_of()
    huge = tuple([(weight * np.float32(1e37), bias) for weight, bias in layers] for layers in policy.weights.gears)
    policy = Policy(policy.header, policy.weights._replace(gears=huge))
    library = compile_c(policy, tmp_path, gcc)
    state = library.init()
    for scale in (1.0, 1e3, 1e38):
        _, action = library.step(state, np.float32([scale, -scale, scale, -scale, scale]))
        assert np.abs(action).max() <= 1
