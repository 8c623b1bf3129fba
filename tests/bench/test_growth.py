"""benchmarks/growth.py: the laws it fits, their words and the order of its cases. What it measures is too slow here."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def growth():
    path = Path(__file__).parents[2] / "benchmarks" / "growth.py"
    spec = importlib.util.spec_from_file_location("growth", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("a", "b"), [(3e-4, 0.97), (2.0, 0.0), (5e-6, 1.8), (1.0, -0.5)])
def test_an_exact_power_law_comes_back(growth, a, b):
    x = np.array([1, 2, 4, 8, 16])
    law = growth.power_law(x, a * x**b)
    assert law.a == pytest.approx(a)
    assert law.b == pytest.approx(b, abs=1e-9)
    assert law.worst < 1e-9


@pytest.mark.parametrize(("a", "b"), [(300e6, 250.0), (5e8, 0.0), (1e9, -3.0)])
def test_an_exact_line_comes_back(growth, a, b):
    x = [10_000, 100_000, 1_000_000]
    law = growth.straight_line(x, [a + b * size for size in x])
    assert law.a == pytest.approx(a)
    assert law.b == pytest.approx(b, abs=1e-4)
    assert law.worst < 1e-9


def test_the_worst_point_is_told(growth):
    x = np.arange(1, 11)
    off = np.where(x == 5, 1.5, 1.0)
    assert 0.2 < growth.power_law(x, 2 * x * off).worst < 0.5
    assert 0.2 < growth.straight_line(x, (7 + 2 * x) * off).worst < 0.5


def test_laws_in_words(growth):
    lines = [{"x": x, "step_s": 1e-3 * x**0.97, "memory_bytes": 300e6 + 250 * x} for x in (1, 10, 100)]
    assert growth.in_words("replay", *growth.laws_of(lines)) == (
        "time of a step ∝ replay^0.97 (within 0%), memory 300 MB + 0.25 kB a step (within 0%)"
    )


def test_families_take_turns(growth):
    assert growth.in_turn({"p": (1, 2, 3), "q": (10,), "r": ("a", "b")}) == [
        *(("p", 0, 1), ("q", 0, 10), ("r", 0, "a")),
        *(("p", 1, 2), ("r", 1, "b")),
        ("p", 2, 3),
    ]


def test_a_warm_start_follows_its_empty_one(growth):
    order = [x for family, _, x in growth.in_turn(growth.FAMILIES) if family == "start-up"]
    assert order == ["empty", "warm"] * 3
    assert len(growth.in_turn(growth.FAMILIES)) == sum(map(len, growth.FAMILIES.values()))
