"""Scores of any scale, as people read them."""

import math

import pytest

from lowgear.evaluation.numbers import duration, score, score_pair


@pytest.mark.parametrize(
    ("mean", "half", "written"),
    [
        (812.34, 3.21, "812.3 ± 3.2"),
        (5.234, 0.1, "5.23 ± 0.10"),
        (-0.0012, 0.0001, "-0.00120 ± 0.00010"),
        (-0.0, 0.0, "0 ± 0"),
        (-0.01, 20.0, "0.0 ± 20.0"),  # never minus zero
        (123456.7, 1000.0, "123,457 ± 1,000"),
        (1e-8, 1e-9, "1.00e-08 ± 1.00e-09"),
        (math.nan, 0.0, "nan ± 0"),
    ],
)
def test_small_and_large_scores_keep_their_digits(mean, half, written):
    assert score_pair(mean, half) == written


def test_one_score_and_a_time():
    assert [score(value) for value in (-0.02, 0.0, 77.77, -1e6)] == ["-0.0200", "0", "77.8", "-1,000,000"]
    assert [duration(seconds) for seconds in (4.4, 200, 7200)] == ["4 s", "3 min", "2.0 h"]
