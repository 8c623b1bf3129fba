"""Seeds together at each setting, against numbers worked out by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lowgear.report.settings import (
    CHEAPEST_NOTE,
    OWN_NOTE,
    Evaluation,
    agent_lines,
    aggregate,
    best,
    cheapest,
    headline,
    named,
    wilson,
)
from lowgear.report.timing import StepTimes
from tests.fixtures import reports
from tests.fixtures.reports import BASELINES, TWO_DIALS, dial, report
from tests.fixtures.runs import relative_rows, row, rows


def evaluated(agents: list[dict[str, Any]]) -> Evaluation:
    return aggregate(report(agents))


def means(agents: list[dict[str, Any]]) -> dict[str, list[tuple[float, float, float, int]]]:
    """Coefficient, score, FLOPs and number of seeds of each setting."""
    return {
        line[0].label: [(s.coefficient, s.score.mean, s.flops, s.score.seeds) for s in line]
        for line in evaluated(agents).lines()
    }


def test_means_and_spreads_over_seeds() -> None:
    evaluation = evaluated(rows(0.001, 0.1))
    found = evaluation.settings
    assert (evaluation.kind, evaluation.seeds, evaluation.scores, evaluation.left_out) == ("return", 2, 8, ())
    assert [(s.variant, s.coefficient, s.dial, s.score.mean) for s in found] == [
        ("asymmetric", 0.001, True, 90.5),
        ("asymmetric", 0.1, True, 87.5),
        ("small-only", 0.0, False, 40.5),
        ("large-only", 0.0, False, 94.5),
    ]
    assert found[0].score.std == pytest.approx(math.sqrt(0.5))
    assert (found[0].mean_low, found[0].mean_high) == (90.0, 91.0)
    assert [agent.agent for agent in found[0].agents] == [0, 1]
    assert found[1].large_share == pytest.approx(0.1)
    assert (found[0].period, found[2].period) == (8.0, None)


def test_seeds_are_together_by_relative_coefficient_where_they_have_one() -> None:
    found = evaluated(relative_rows(-1.0, 10.0)).settings
    # Units of 0.002 and 0.003: each seed has a price of its own, and the mean of them stands for the setting.
    assert [(s.variant, s.coefficient, s.relative, s.score.mean, s.score.seeds) for s in found] == [
        ("asymmetric", pytest.approx(-0.0025), -1.0, 90.5, 2),
        ("asymmetric", pytest.approx(0.025), 10.0, 87.5, 2),
        ("small-only", 0.0, None, 40.5, 2),
        ("large-only", 0.0, None, 94.5, 2),
    ]
    dear = found[1]
    assert dear.price == "λ 0.025 (relative 10)"
    assert (dear.is_of(0, 0.02), dear.is_of(1, 0.03)) == (True, True)
    assert not any(dear.is_of(agent, price) for agent, price in ((0, 0.03), (0, 0.025), (1, 0.02), (2, 0.02)))
    assert evaluated(rows(0.001, 0.1)).settings[1].price == "λ 0.1"


def test_evaluations_from_before_relative_coefficients_are_read() -> None:
    before = [{key: value for key, value in each.items() if key != "relative_coefficient"} for each in rows(0.001, 0.1)]
    assert evaluated(before) == evaluated(rows(0.001, 0.1))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_counted_and_left_out(bad: float) -> None:
    agents = rows(0.001, 0.1)
    agents[0]["return_mean"] = bad
    found = evaluated(agents)
    assert found.left_out == (0,)
    assert (found.settings[0].score.mean, found.settings[0].score.seeds) == (91.0, 1)


def test_the_cheapest_setting_keeps_95_per_cent_of_the_best() -> None:
    agents = [row(0, "asymmetric", c, s, share) for c, s, share in ((0.001, 100, 0.5), (0.01, 95, 0.3), (0.1, 94, 0.1))]
    found = evaluated(agents).settings
    assert best(found).coefficient == 0.001
    assert cheapest(found).coefficient == 0.01


def test_negative_returns_lose_a_twentieth_at_most() -> None:
    agents = [
        row(0, "asymmetric", c, s, share) for c, s, share in ((0.001, -100, 0.5), (0.01, -105, 0.3), (0.1, -106, 0))
    ]
    assert cheapest(evaluated(agents).settings).coefficient == 0.01


def test_a_summary_names_each_variant_once_or_twice() -> None:
    found = evaluated(rows(0.001, 0.1)).settings
    assert [(note, s.variant, s.coefficient) for note, s in named(found)] == [
        ("", "small-only", 0.0),
        ("", "large-only", 0.0),
        ("best score", "asymmetric", 0.001),
        ("cheapest that keeps 95% of the best", "asymmetric", 0.1),
    ]


def test_a_task_without_goals_is_judged_by_its_return_though_it_tells_of_success() -> None:
    found = evaluated([reports.row(0, "asymmetric", 0.1, -30.0, 200.0, success_rate=0.5, scored_by="return")])
    assert (found.kind, found.settings[0].score.mean) == ("return", -30.0)


def test_a_success_rate_takes_the_place_of_the_return() -> None:
    found = evaluated([reports.row(0, "asymmetric", 0.1, -30.0, 200.0, success_rate=0.5)])
    assert (found.kind, found.settings[0].score.mean) == ("success rate", 0.5)
    (agent,) = found.settings[0].agents
    assert (agent.low, agent.high) == pytest.approx((0.2993, 0.7007), abs=1e-4)


def test_means_of_two_dials_at_each_coefficient() -> None:
    assert means(TWO_DIALS) == {
        "asymmetric (dial)": [(0.001, 99.0, 800.0, 2), (0.01, 93.0, 320.0, 2), (0.1, 70.0, 150.0, 2)]
    }


def test_agents_of_one_coefficient_are_points() -> None:
    found = means(BASELINES)
    assert found["small-only"] == [(0.0, 60.0, 60.0, 2)]
    assert found["large-only"] == [(0.0, 97.0, 1000.0, 2)]
    assert found["fixed-cost"] == [(0.005, 91.0, 420.0, 1), (0.05, 80.0, 180.0, 2)]


def test_each_agents_line_is_ordered_by_coefficient() -> None:
    lines = agent_lines(evaluated([*TWO_DIALS, *BASELINES]).lines()[0])
    assert [[(score.agent, score.score) for score in line] for line in lines] == [
        [(0, 98.0), (0, 90.0), (0, 80.0)],
        [(1, 100.0), (1, 96.0), (1, 60.0)],
    ]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_left_out_of_the_mean_of_a_dial(bad: float) -> None:
    agents = [*dial(0, {0.1: (80.0, 100.0), 0.01: (bad, 300.0)}), *dial(1, {0.1: (60.0, 200.0), 0.01: (96.0, 340.0)})]
    assert means(agents)["asymmetric (dial)"] == [(0.01, 96.0, 340.0, 1), (0.1, 70.0, 150.0, 2)]


def test_coefficients_that_were_rounded_still_meet() -> None:
    agents = [reports.row(0, "fixed-cost", 0.3, 1, 2), reports.row(1, "fixed-cost", 0.1 * 3, 3, 4)]
    assert means(agents)["fixed-cost"] == [(0.3, 2.0, 3.0, 2)]


def test_intervals_are_in_the_units_of_the_axes() -> None:
    (setting,) = evaluated([reports.row(0, "asymmetric", 0.1, 80.0, 200.0)]).settings
    (agent,) = setting.agents
    assert (agent.low, agent.high, agent.flops_ci95) == (78.0, 82.0, pytest.approx(10.0))
    unknown = {"return_ci95": math.nan, "flops_reduction_ci95": math.nan}
    (setting,) = evaluated([reports.row(0, "asymmetric", 0.1, 80.0, 200.0, **unknown)]).settings
    (agent,) = setting.agents
    assert (agent.low, agent.high, agent.flops_ci95) == (80.0, 80.0, 0.0)


def test_wilson_has_a_width_where_all_episodes_succeed() -> None:
    assert wilson(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_flops_of_the_large_gear_come_from_the_first_row_that_tells() -> None:
    unknown = reports.row(0, "asymmetric", 0.1, 1.0, math.nan)
    assert evaluated([unknown, reports.row(1, "asymmetric", 0.1, 1.0, 250.0)]).large_flops == 1000.0
    assert evaluated([]).large_flops is None


def test_the_setting_that_is_deployed_is_marked_and_spoken_of() -> None:
    found = aggregate(report(rows(0.001, 0.1)), {0: 0.1, 1: 0.1}).settings
    assert [(s.coefficient, s.own, s.mixed) for s in found if s.variant == "asymmetric"] == [
        (0.001, False, False),
        (0.1, True, False),
    ]
    assert [note for note, s in named(found) if s.variant == "asymmetric"] == [
        "best score",
        f"{CHEAPEST_NOTE}, {OWN_NOTE}",
    ]
    of_dial = [s for s in found if s.variant == "asymmetric"]
    assert headline(of_dial).coefficient == 0.1
    assert headline(evaluated(rows(0.001, 0.1)).settings[:2]).coefficient == 0.1  # the cheapest near the best


def test_agents_that_were_tuned_apart_are_together_where_they_are_deployed() -> None:
    tuned = [*rows(0.001, 0.1), row(0, "asymmetric", 0.02, 89.0, 0.2), row(1, "asymmetric", 0.05, 90.0, 0.15)]
    found = aggregate(report(tuned), {0: 0.02, 1: 0.05})
    asymmetric = [s for s in found.settings if s.variant == "asymmetric"]
    assert [(s.coefficient, s.score.seeds) for s in asymmetric if not s.mixed] == [(0.001, 2), (0.1, 2)]
    (own,) = (s for s in asymmetric if s.own)
    assert (own.score.mean, own.score.seeds, own.price) == (89.5, 2, "λ 0.02 to 0.05")
    assert own.is_of(0, 0.02)
    assert not own.is_of(0, 0.05)
    assert own.gear_share == pytest.approx((0.825, 0.175))
    assert all(own not in line for line in found.lines())
    # One that stands where the frontier was played belongs to both.
    found = aggregate(report(rows(0.001, 0.1)), {0: 0.001, 1: 0.1})
    assert [(s.score.seeds, s.own) for s in found.settings if s.variant == "asymmetric"] == [
        (2, True),
        (2, False),
        (2, False),
    ]


def test_one_seed_has_the_interval_of_its_episodes() -> None:
    one = row(0, "asymmetric", 0.1, 90.0, 0.3) | {"return_interval": (88.0, 91.0)}
    (setting,) = evaluated([one]).settings
    assert (setting.mean_low, setting.mean_high) == (88.0, 91.0)
    assert evaluated([row(0, "asymmetric", 0.1, 90.0, 0.3)]).settings[0].mean_low == 89.5


def test_a_step_takes_what_its_gears_and_its_picks_take() -> None:
    times = StepTimes((1.0, 10.0), 4.0, "a slow machine")
    small, large = (evaluated([row(0, "asymmetric", 0.1, 90.0, share)]).settings[0] for share in (0.0, 1.0))
    assert (times.of(small), times.of(large)) == (1.5, 10.5)  # picks hold for 8 steps
    (alone,) = evaluated([row(0, "large-only", 0.0, 90.0, 1.0)]).settings
    assert times.of(alone) == 10.0
    assert times.of(replace(small, period=0.0)) == 1.0  # as a file may say
    assert times.of(replace(small, gear_share=None)) is None
