"""The dial: where a coefficient stands, what a position costs, and which ranges there are."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.policy import dial
from lowgear.policy.dial import Dial

DIAL = Dial(0.001, 0.1)


def test_ends_middle_and_quarter_by_hand() -> None:
    assert DIAL.turns
    assert DIAL.ratio == pytest.approx(100)
    assert DIAL.middle == pytest.approx(0.01)
    assert (DIAL.position(0.001), DIAL.position(0.1)) == (-1.0, 1.0)
    assert DIAL.position(0.01) == pytest.approx(0, abs=1e-12)
    assert DIAL.position(0.001 * math.sqrt(10)) == pytest.approx(-0.5)  # a quarter of the way, in even steps of the log


@pytest.mark.parametrize("ends", [DIAL, Dial(0.3, 0.31), Dial(1e-9, 1e6)])
def test_position_and_price_undo_each_other(ends: Dial) -> None:
    for position in np.linspace(-1, 1, 21):
        coefficient = dial.price(position, ends.low, ends.ratio)
        assert ends.low * (1 - 1e-9) <= coefficient <= ends.high * (1 + 1e-9)
        assert ends.position(coefficient) == pytest.approx(position, abs=1e-9)
    assert dial.price(-1, ends.low, ends.ratio) == ends.low
    assert dial.price(1, ends.low, ends.ratio) == pytest.approx(ends.high)


@pytest.mark.parametrize("value", [0.0, 0.02])
def test_equal_ends_have_one_setting_in_the_middle(value: float) -> None:
    ends = Dial(value, value)
    assert not ends.turns
    assert ends.ratio == 1
    assert ends.position(value) == 0
    assert ends.settings(5) == [value]
    assert [dial.price(position, value, ends.ratio) for position in (-1, 0, 1)] == [value] * 3


@pytest.mark.parametrize("coefficient", [0.00099, 0.101, 0.0, -0.01, math.nan, math.inf])
def test_outside_names_the_value_and_the_range(coefficient: float) -> None:
    with pytest.raises(LowgearError, match=rf"{coefficient:g} is outside .* 0\.001 to 0\.1$"):
        DIAL.position(coefficient)
    with pytest.raises(LowgearError, match=r"0\.01 to 0\.01$"):
        Dial(0.01, 0.01).position(coefficient)


def test_an_end_that_was_rounded_is_still_the_end() -> None:
    for end, position in ((DIAL.low, -1.0), (DIAL.high, 1.0)):
        assert DIAL.position(float(np.float32(end))) == pytest.approx(position, abs=1e-7)
        for off in (1 - 5e-7, 1 + 5e-7):
            assert abs(DIAL.position(end * off)) <= 1
    with pytest.raises(LowgearError, match="outside"):
        DIAL.position(DIAL.high * (1 + 1e-5))


@pytest.mark.parametrize("count", [2, 3, 5, 8])
@pytest.mark.parametrize("ends", [DIAL, Dial(0.01 / 30, 0.1), Dial(0.3, 0.7)])  # the last two have inexact ratios
def test_settings_are_even_steps_with_both_ends(ends: Dial, count: int) -> None:
    found = ends.settings(count)
    assert len(found) == count
    assert (found[0], found[-1]) == ends  # exactly
    steps = [b / a for a, b in itertools.pairwise(found)]
    assert steps == pytest.approx([ends.ratio ** (1 / (count - 1))] * (count - 1))
    assert [ends.position(value) for value in found] == pytest.approx(np.linspace(-1, 1, count).tolist())


def test_a_single_setting_is_the_middle() -> None:
    assert DIAL.settings(1) == [DIAL.middle]


def test_price_of_arrays_is_each_ones_own() -> None:
    low, ratio = np.array([0.001, 0.02, 0.0], np.float32), np.array([100, 1, 1], np.float32)
    expected = [[0.001, 0.02, 0], [0.01, 0.02, 0], [0.1, 0.02, 0]]
    for numpy in (np, jnp):
        position = numpy.array([[-1.0], [0.0], [1.0]], numpy.float32)
        found = dial.price(position, numpy.asarray(low)[None], numpy.asarray(ratio)[None])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_span_holds_every_coefficient() -> None:
    assert dial.span([0.03, 0.001, 0.1]) == Dial(0.001, 0.1)
    assert dial.span([0.02]) == Dial(0.02, 0.02)
    assert dial.span([0.0]) == dial.span([0.0, 0.0]) == Dial(0.0, 0.0)  # free compute is one price as good as any


def test_a_span_from_nothing_is_an_error_with_a_remedy() -> None:
    with pytest.raises(LowgearError, match=r"from 0 to 0\.5.*above 0.*0\.0005,0\.5") as caught:
        dial.span([0.0, 0.5])
    assert "\n" not in str(caught.value)
