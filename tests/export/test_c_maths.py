"""The generated tanh, exp and asinh against the true ones, as compiled."""

import ctypes

import numpy as np
import pytest

from lowgear.export import compiler
from lowgear.export.c_activations import activation_source
from lowgear.export.c_maths import ASINH_ERROR, EXP_ERROR, TANH_ERROR, asinh_source
from lowgear.policy.gears import FROZEN_ACTIVATIONS
from lowgear.policy.networks import ACTIVATE

WRAP = """
static float m_exp2(float x) { return m_exp(m_below(x)); }
static float m_elu2(float x) { return m_elu(x, m_exp2(x)); }
static float m_silu2(float x) { return m_silu(x, m_exp2(x)); }
#define APPLY(f) void apply_##f(const float *x, float *y, int n) { int i; for (i = 0; i < n; ++i) y[i] = m_##f(x[i]); }
APPLY(relu)
APPLY(elu2)
APPLY(silu2)
APPLY(leaky_relu)
APPLY(exp2)
void apply_tanh(const float *x, float *y, int n) { int i; for (i = 0; i < n; ++i) y[i] = m_tanh(m_limit(x[i])); }
void apply_asinh(const float *x, float *y, int n) { int i; for (i = 0; i < n; ++i) y[i] = m_asinh(x[i]); }
"""


@pytest.fixture(params=[["-O0"], ["-O3", "-march=native", "-ffp-contract=fast"]], ids=["plain", "fast"])
def maths(request, tmp_path, each_compiler):
    source = tmp_path / "m.c"
    source.write_text("#include <stdint.h>\n" + activation_source("m", FROZEN_ACTIVATIONS) + asinh_source("m") + WRAP)
    path = compiler.build(each_compiler, ["-std=c99", *compiler.SHARED, *request.param], [source], tmp_path / "m.so")
    library = ctypes.CDLL(str(path))

    def apply(what, x):
        x = np.ascontiguousarray(x, np.float32)
        y, pointer = np.empty_like(x), ctypes.POINTER(ctypes.c_float)
        library[f"apply_{what}"](x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), len(x))
        return y

    return apply


def test_tanh_is_within_its_bound_for_every_float(maths):
    bits = np.arange(0, 0x7F800000, 997, dtype=np.uint32)  # every 997th float from 0 to infinity
    x = np.concatenate([bits.view(np.float32), -bits.view(np.float32), np.linspace(-9, 9, 1_000_001, dtype=np.float32)])
    y = maths("tanh", x)
    assert np.abs(y.astype(np.float64) - np.tanh(x.astype(np.float64))).max() <= TANH_ERROR
    assert maths("tanh", [np.inf, -np.inf]) == pytest.approx([1, -1], abs=TANH_ERROR)
    assert np.isnan(maths("tanh", [np.nan]))[0]


def test_exp_is_within_its_bound_for_every_float_up_to_0(maths):
    bits = np.arange(0, np.float32(87).view(np.uint32), 101, dtype=np.uint32)  # every 101st float from -87 to 0
    x = np.concatenate([-bits.view(np.float32), np.linspace(-87, 0, 1_000_001, dtype=np.float32)])
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(maths("exp2", x) - exact) / exact).max() <= EXP_ERROR
    beyond = np.append(np.geomspace(87.001, 3e38, 1000), np.inf)
    for far in (beyond, -beyond, [np.nan]):
        np.testing.assert_array_equal(maths("exp2", far), maths("exp2", [-87.0])[0])


@pytest.mark.parametrize("activation", ["relu", "elu", "silu", "leaky_relu"])
def test_activations_are_those_of_the_networks(maths, activation):
    function = f"{activation}2" if activation in ("elu", "silu") else activation
    ends = np.float32([0, -0.0, 1e-45, -1e-45, 1e37, -1e37])
    x = np.concatenate([ends, np.linspace(-100, 100, 400_001, dtype=np.float32), np.geomspace(-1e-9, -1e9, 10_001)])
    x = x.astype(np.float32)
    exact = ACTIVATE[activation](x.astype(np.float64))
    size = np.maximum(np.abs(exact), 1.0 if activation == "elu" else 1e-29)  # elu takes 1 from what is near it
    assert (np.abs(maths(function, x) - exact) / size).max() <= 4e-7
    assert np.isnan(maths(function, [np.nan]))[0]


def test_asinh_is_within_its_bound_wherever_a_dial_can_stand(maths):
    # A coefficient is up to a thousand knees of its dial, times the ratio of its ends.
    above = np.concatenate([[0.0], np.geomspace(1e-6, 1e9, 200_001), np.linspace(0, 3, 100_001)])
    x = np.concatenate([above, -above]).astype(np.float32)
    exact = np.arcsinh(x.astype(np.float64))
    error = np.abs(maths("asinh", x).astype(np.float64) - exact) / np.maximum(1, np.abs(exact))
    assert error.max() <= ASINH_ERROR
    np.testing.assert_array_equal(maths("asinh", -x), -maths("asinh", x))
