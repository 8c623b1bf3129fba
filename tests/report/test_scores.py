"""The averages of a frontier against numbers worked out by hand."""

import math

import pytest

from lowgear.report.scores import Mean, agent_lines, large_flops, mean_lines, read, wilson
from tests.fixtures.reports import BASELINES, TWO_DIALS, dial, row


def test_means_of_two_dials_at_each_coefficient() -> None:
    (line,) = mean_lines(read(TWO_DIALS, 20))
    assert (line.variant, line.dial, line.agents) == ("asymmetric", True, 2)
    assert line.means == (Mean(0.001, 99.0, 800.0, 2), Mean(0.01, 93.0, 320.0, 2), Mean(0.1, 70.0, 150.0, 2))


def test_agents_of_one_coefficient_are_points() -> None:
    found = {line.variant: line for line in mean_lines(read(BASELINES, 20))}
    assert not any(line.dial for line in found.values())
    assert found["small-only"].means == (Mean(0.0, 60.0, 60.0, 2),)
    assert found["large-only"].means == (Mean(0.0, 97.0, 1000.0, 2),)
    assert found["fixed-cost"].means == (Mean(0.005, 91.0, 420.0, 1), Mean(0.05, 80.0, 180.0, 2))


def test_each_agents_line_is_ordered_by_coefficient() -> None:
    lines = agent_lines(read([*TWO_DIALS, *BASELINES], 20), "asymmetric")
    assert [[score.coefficient for score in line] for line in lines] == [[0.001, 0.01, 0.1]] * 2
    assert agent_lines(read(BASELINES, 20), "fixed-cost") == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_left_out_of_the_mean(bad: float) -> None:
    agents = [*dial(0, {0.1: (80.0, 100.0), 0.01: (bad, 300.0)}), *dial(1, {0.1: (60.0, 200.0), 0.01: (96.0, 340.0)})]
    (line,) = mean_lines(read(agents, 20))
    assert line.means == (Mean(0.01, 96.0, 340.0, 1), Mean(0.1, 70.0, 150.0, 2))
    assert [len(agent) for agent in agent_lines(read(agents, 20), "asymmetric")] == [1, 2]


def test_coefficients_that_were_rounded_still_meet() -> None:
    (line,) = mean_lines(read([row(0, "fixed-cost", 0.3, 1, 2), row(1, "fixed-cost", 0.1 * 3, 3, 4)], 20))
    assert [mean.agents for mean in line.means] == [2]


def test_intervals_are_in_the_units_of_the_axes() -> None:
    (score,) = read([row(0, "asymmetric", 0.1, 80.0, 200.0)], 20)
    assert (score.low, score.high) == (78.0, 82.0)
    assert score.flops_ci95 == pytest.approx(10.0)
    (score,) = read([row(0, "asymmetric", 0.1, 80.0, 200.0, return_ci95=math.nan, flops_reduction_ci95=math.nan)], 20)
    assert (score.low, score.high, score.flops_ci95) == (80.0, 80.0, 0.0)


def test_success_rate_takes_the_place_of_return() -> None:
    (score,) = read([row(0, "asymmetric", 0.1, -30.0, 200.0, success_rate=0.5)], 100)
    assert score.score == 0.5
    assert (score.low, score.high) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_wilson_has_a_width_where_all_episodes_succeed() -> None:
    assert wilson(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_large_flops_from_the_first_row_that_tells() -> None:
    assert large_flops([row(0, "asymmetric", 0.1, 1.0, math.nan), row(1, "asymmetric", 0.1, 1.0, 250.0)]) == 1000.0
    assert large_flops([]) is None
