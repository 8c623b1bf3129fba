"""Seeds together at each setting, against numbers worked out by hand."""

import math
from typing import Any

import pytest

from lowgear.report.settings import best, cheapest, group, named
from tests.fixtures.runs import row, rows


def settings(agents: list[dict[str, Any]]) -> Any:
    return group({"agents": agents})


def test_means_and_spreads_over_seeds() -> None:
    found, left_out = settings(rows(0.001, 0.1))
    assert left_out == 0
    assert [(s.variant, s.coefficient, s.dial, s.score.mean) for s in found] == [
        ("asymmetric", 0.001, True, 90.5),
        ("asymmetric", 0.1, True, 87.5),
        ("small-only", 0.0, False, 40.5),
        ("large-only", 0.0, False, 94.5),
    ]
    assert found[0].score.std == pytest.approx(math.sqrt(0.5))
    assert (found[0].mean_low, found[0].mean_high) == (90.0, 91.0)
    assert found[0].agents == (0, 1)
    assert found[1].large_share == pytest.approx(0.1)
    assert (found[0].period, found[2].period) == (8.0, None)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_counted_and_left_out(bad: float) -> None:
    agents = rows(0.001, 0.1)
    agents[0]["return_mean"] = bad
    found, left_out = settings(agents)
    assert left_out == 1
    assert (found[0].score.mean, found[0].score.seeds) == (91.0, 1)


def test_the_cheapest_setting_keeps_95_per_cent_of_the_best() -> None:
    agents = [row(0, "asymmetric", c, s, share) for c, s, share in ((0.001, 100, 0.5), (0.01, 95, 0.3), (0.1, 94, 0.1))]
    found, _ = settings(agents)
    assert best(found).coefficient == 0.001
    assert cheapest(found).coefficient == 0.01


def test_negative_returns_lose_a_twentieth_at_most() -> None:
    agents = [
        row(0, "asymmetric", c, s, share) for c, s, share in ((0.001, -100, 0.5), (0.01, -105, 0.3), (0.1, -106, 0))
    ]
    assert cheapest(settings(agents)[0]).coefficient == 0.01


def test_a_summary_names_each_variant_once_or_twice() -> None:
    found, _ = settings(rows(0.001, 0.1))
    assert [(note, s.variant, s.coefficient) for note, s in named(found)] == [
        ("", "small-only", 0.0),
        ("", "large-only", 0.0),
        ("best score", "asymmetric", 0.001),
        ("cheapest that keeps 95% of the best", "asymmetric", 0.1),
    ]


def test_a_success_rate_takes_the_place_of_the_return() -> None:
    found, _ = settings([row(0, "asymmetric", 0.1, -30.0, 0.5) | {"success_rate": 0.75}])
    assert found[0].score.mean == 0.75
