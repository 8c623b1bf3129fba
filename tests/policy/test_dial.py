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
SIGNED = Dial(-1.0, 10.0)


def test_ends_middle_and_quarter_by_hand() -> None:
    assert DIAL.turns
    assert DIAL.middle == pytest.approx(0.01)
    assert (DIAL.position(0.001), DIAL.position(0.1)) == (-1.0, 1.0)
    assert DIAL.position(0.01) == pytest.approx(0, abs=1e-6)
    # A quarter of the way, in even steps of the log: asinh differs from it by less than a millionth.
    assert DIAL.position(0.001 * math.sqrt(10)) == pytest.approx(-0.5, abs=1e-6)


def test_a_dial_from_below_0_by_hand() -> None:
    # The knee is a hundredth of 10: asinh(-10), asinh(1) and asinh(100) are -2.998223, 0.881374 and 5.298342.
    ends = Dial(-1.0, 10.0)
    assert ends.knee == pytest.approx(0.1)
    assert (ends.position(-1.0), ends.position(10.0)) == (-1.0, 1.0)
    assert ends.position(0.0) == pytest.approx(2 * 2.998223 / 8.296565 - 1, abs=1e-6)
    assert ends.position(0.1) == pytest.approx(2 * (2.998223 + 0.881374) / 8.296565 - 1, abs=1e-6)
    assert ends.middle == pytest.approx(0.1 * math.sinh((5.298342 - 2.998223) / 2), rel=1e-5)
    free = Dial(0.0, 2.0)
    assert free.knee == pytest.approx(0.02)
    assert (free.position(0.0), free.position(0.02 * math.sinh(5.298342 / 2))) == (-1.0, pytest.approx(0, abs=1e-6))


def test_a_dial_in_another_unit_has_the_same_positions() -> None:
    ends = Dial(-1.0, 10.0)
    dear = ends.times(1000)
    assert dear == Dial(-1000, 10_000)
    for coefficient in (-0.5, 0.0, 0.1, 3.0):
        assert dear.position(1000 * coefficient) == pytest.approx(ends.position(coefficient), abs=1e-12)
    assert dear.settings(7) == pytest.approx([1000 * value for value in ends.settings(7)])


@pytest.mark.parametrize("ends", [DIAL, Dial(0.3, 0.31), Dial(1e-9, 1e6), SIGNED, Dial(0.0, 2.0), Dial(-5.0, 1e-4)])
def test_position_and_price_undo_each_other(ends: Dial) -> None:
    for position in np.linspace(-1, 1, 21):
        coefficient = dial.price(position, *ends)
        assert ends.low - 1e-9 * abs(ends.low) <= coefficient <= ends.high * (1 + 1e-9)
        assert ends.position(coefficient) == pytest.approx(position, abs=1e-9)
    assert dial.price(-1, *ends) == pytest.approx(ends.low)
    assert dial.price(1, *ends) == pytest.approx(ends.high)


@pytest.mark.parametrize("value", [0.0, 0.02])
def test_equal_ends_have_one_setting_in_the_middle(value: float) -> None:
    ends = Dial(value, value)
    assert not ends.turns
    assert ends.position(value) == 0
    assert ends.settings(5) == [value]
    assert [dial.price(position, *ends) for position in (-1, 0, 1)] == pytest.approx([value] * 3)


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
@pytest.mark.parametrize("ends", [DIAL, Dial(0.01 / 30, 0.1), Dial(0.3, 0.7), SIGNED])  # some have inexact ratios
def test_settings_are_even_steps_with_both_ends(ends: Dial, count: int) -> None:
    found = ends.settings(count)
    assert len(found) == count
    assert (found[0], found[-1]) == ends  # exactly
    if ends.low > 0:
        steps = [b / a for a, b in itertools.pairwise(found)]
        assert steps == pytest.approx([(ends.high / ends.low) ** (1 / (count - 1))] * (count - 1), rel=1e-5)
    assert [ends.position(value) for value in found] == pytest.approx(np.linspace(-1, 1, count).tolist(), abs=1e-9)


@pytest.mark.parametrize("ends", [DIAL, SIGNED, Dial(0.0, 2.0)])
def test_between_two_settings_is_midway_along_the_dial(ends: Dial) -> None:
    found = ends.settings(9)
    assert [ends.between(one, other) for one, other in itertools.pairwise(found[::2])] == pytest.approx(found[1::2])
    assert ends.between(ends.high, ends.low) == pytest.approx(ends.middle)


def test_a_single_setting_is_the_middle() -> None:
    assert DIAL.settings(1) == [DIAL.middle]


def test_price_of_arrays_is_each_ones_own() -> None:
    low, high = np.array([0.001, 0.02, 0.0, -1.0], np.float32), np.array([0.1, 0.02, 0.0, 10.0], np.float32)
    expected = [[0.001, 0.02, 0, -1], [0.01, 0.02, 0, SIGNED.middle], [0.1, 0.02, 0, 10]]
    for numpy in (np, jnp):
        position = numpy.array([[-1.0], [0.0], [1.0]], numpy.float32)
        found = dial.price(position, numpy.asarray(low)[None], numpy.asarray(high)[None], numpy)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_span_holds_every_coefficient() -> None:
    assert dial.span([0.03, 0.001, 0.1]) == Dial(0.001, 0.1)
    assert dial.span([0.02]) == Dial(0.02, 0.02)
    assert dial.span([0.0]) == dial.span([0.0, 0.0]) == Dial(0.0, 0.0)  # free compute is one price as good as any


def test_a_span_may_begin_at_0_or_below() -> None:
    assert dial.span([0.5, 0.0]) == Dial(0.0, 0.5)
    assert dial.span([0.5, -0.5, 0.1]) == Dial(-0.5, 0.5)


@pytest.mark.parametrize(
    ("ends", "inside", "outside"),
    [
        (SIGNED, (-1.0, -1.0000005, 0.0, 0.1, 10.0, 10.000005), (-1.00001, 10.0001, math.nan, math.inf, -math.inf)),
        (Dial(0.0, 2.0), (0.0, 1e-30, 2.0), (-1e-9, 2.1)),
        (Dial(-2.0, -1.0), (), (-2.0, -1.5, -1.0, 0.0)),  # no dial: nothing is above 0
        (Dial(-1.0, 0.0), (), (-1.0, -0.5, 0.0)),
        (Dial(-1.0, -1.0), (), (-1.0,)),
        (Dial(1.0, -1.0), (), (-1.0, 0.0, 1.0)),
        (Dial(-math.inf, 1.0), (), (0.0,)),
        (Dial(math.nan, 1.0), (), (0.0, 1.0)),
    ],
)
def test_what_a_dial_holds(ends: Dial, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    for coefficient in inside:
        assert ends.holds(coefficient)
        assert -1 <= ends.position(coefficient) <= 1
    for coefficient in outside:
        assert not ends.holds(coefficient)
        with pytest.raises(LowgearError, match="outside"):
            ends.position(coefficient)
