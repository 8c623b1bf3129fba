"""The generated tanh and logarithm against the true ones, as compiled."""

import ctypes

import numpy as np
import pytest

from lowgear.export import compiler
from lowgear.export.c_maths import LOG_ERROR, TANH_ERROR, log_source, tanh_source

WRAP = """
void apply_tanh(const float *x, float *y, int n) { int i; for (i = 0; i < n; ++i) y[i] = m_tanh(m_limit(x[i])); }
void apply_log(const float *x, float *y, int n) { int i; for (i = 0; i < n; ++i) y[i] = m_log(x[i]); }
"""


@pytest.fixture(params=[["-O0"], ["-O3", "-march=native", "-ffp-contract=fast"]], ids=["plain", "fast"])
def maths(request, tmp_path, each_compiler):
    source = tmp_path / "m.c"
    source.write_text(tanh_source("m") + log_source("m") + WRAP)
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


def test_the_logarithm_is_good_enough_for_the_dial(maths):
    for ratio in (1.001, 2.0, 300.0, 1e6):
        x = np.geomspace(1, ratio, 10_001).astype(np.float32)
        position = maths("log", x).astype(np.float64) / np.log(ratio)
        exact = np.log(x.astype(np.float64)) / np.log(ratio)
        assert np.abs(position - exact).max() * 2 <= LOG_ERROR * max(1, 0.2 / np.log(ratio))
