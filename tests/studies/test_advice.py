"""Controllers cut out of others, and what is said of scores whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.policy.controller import Controller, chooser
from lowgear.policy.gears import gears_of
from lowgear.studies.advice import (
    Judge,
    Measured,
    Option,
    choose,
    most_promising,
    options,
    period_options,
    undecided,
)
from lowgear.studies.advise import still_rising
from lowgear.studies.cut import alone, cut
from tests.fixtures.weights import KNOWN, OBS, random_policy

DISCOUNT = 0.99
THREE = replace(KNOWN, gears=(3, 5, 9), cost_unit=0.01, cost_coefficient=0.02)


def agent(seed=0):
    """A policy of three gears whose tariff is the true one."""
    policy = random_policy(THREE, seed)
    each = np.array([THREE.cost.tariff(THREE.periods, DISCOUNT)], np.float32)
    return replace(policy, weights=policy.weights._replace(tariff=policy.weights.tariff._replace(each=each)))


def pick(policy, seen):
    controller = Controller.from_policies([policy], len(seen))
    controller.pick(seen[None], chooser("greedy", np.random.default_rng(0)))
    return controller.gear[0], controller.act(seen[None])[0], controller.choice[0]


@pytest.fixture
def seen():
    return np.random.default_rng(0).normal(size=(500, OBS)).astype(np.float32)


def test_all_of_a_controller_cut_out_of_it_is_the_same(seen):
    whole = cut(agent(), (0, 1, 2), (0, 1, 2), DISCOUNT)
    for mine, its in zip(pick(agent(), seen), pick(whole, seen), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert whole.header == agent().header


def test_where_the_whole_picks_what_is_left_so_does_the_cut(seen):
    """At no price, so that the tariffs of both say the same."""
    header = replace(agent().header, dial=THREE.dial._replace(low=-0.1), cost_coefficient=0.0)
    policy = replace(agent(), header=header)
    left = cut(policy, (0, 2), (1, 2), DISCOUNT)
    gear, action, choice = pick(policy, seen)
    kept, acted, chosen = pick(left, seen)
    period = choice // 3
    among = (gear != 1) & (period > 0)
    assert among.any()
    np.testing.assert_array_equal(kept[among], np.where(gear[among] == 2, 1, 0))
    np.testing.assert_array_equal(chosen[among] // 2, period[among] - 1)
    np.testing.assert_array_equal(acted[among], action[among])


def test_the_dearest_step_costs_as_much_as_before():
    policy, left = agent(), cut(agent(), (1, 2), (0,), DISCOUNT)
    assert left.header.gears == gears_of((5, 9))
    assert left.header.periods == (2,)
    assert left.header.relative_coefficient == pytest.approx(policy.header.relative_coefficient)
    prices = [p.header.cost_coefficient * p.header.cost.gear_costs[-1] for p in (policy, left)]
    assert prices[0] == pytest.approx(prices[1])
    assert left.header.dial.holds(left.header.cost_coefficient)


def test_a_gear_alone_never_asks(seen):
    gear, _, _ = pick(alone(agent(), 1), seen)
    assert set(gear) == {1}


def test_widths_pairs_and_all():
    assert [option.gears for option in options(3, 2)] == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert [option.gears for option in options(2, 1)] == [(0,), (1,), (0, 1)]
    assert period_options(Option((0, 1), (0, 1))) == [Option((0, 1), (0,)), Option((0, 1), (1,))]
    assert period_options(Option((0, 1), (0,))) == []


def measured(option, mean, flops, noise=1.0, setting=None, seeds=4, episodes=20):
    """Scores of a known mean; each option's noise is its own."""
    draw = np.random.default_rng((*option.gears, len(option.periods), int(10 * (setting or 0))))
    return Measured(
        option, setting, mean + noise * draw.normal(size=(seeds, episodes)), np.full((seeds, episodes), flops)
    )


WIDTHS = [Option((0,)), Option((1,)), Option((2,))]
PAIR = Option((0, 2), (0, 1))
RANDOM = np.zeros(20)


def judge(*means, noise=1.0):
    widths = [measured(*one, noise) for one in zip(WIDTHS, means, (0.01, 0.1, 1.0), strict=True)]
    return Judge(widths, RANDOM, keep=0.95), widths


def test_what_certainly_keeps_enough_for_least_is_chosen():
    held, widths = judge(50, 90, 100)
    pair = [
        measured(PAIR, 99, 0.3, setting=0.1),
        measured(PAIR, 98, 0.2, setting=1.0),
        measured(PAIR, 70, 0.05, setting=3.0),
    ]
    judged = [*(held.judge([one]) for one in widths), held.judge(pair)]
    assert held.learned
    assert [one.verdict for one in judged] == ["loses", "loses", "keeps", "keeps"]
    chosen = choose(judged)
    assert (chosen.option, chosen.setting) == (PAIR, 1.0)  # the cheapest of its settings that keeps enough
    mean, low, high = chosen.kept
    assert low < 0.98 < high
    assert mean == pytest.approx(0.98, abs=0.02)
    assert chosen.flops == pytest.approx((0.2, 0.2, 0.2))


def test_what_noise_hides_is_unclear_and_not_claimed():
    held, widths = judge(95, 95, 100, noise=60.0)
    others = [one for one in widths if one is not held.best]
    assert [held.judge([one]).verdict for one in others] == ["unclear", "unclear"]


def test_agents_that_have_not_learned_are_told():
    held, widths = judge(0, 0, 0)
    assert not held.learned
    assert all(held.judge([one]).verdict == "unclear" for one in widths)
    still, all_alike = judge(0, 0, 0, noise=0.0)  # as success rates often are at first
    assert not still.learned
    assert np.isnan(still.judge([all_alike[0]]).kept[0])


def test_of_two_that_cost_the_same_the_simpler_is_chosen():
    held, widths = judge(98, 99, 100)
    pair = held.judge([measured(PAIR, 99.5, 0.0, setting=1.0)])
    assert choose([held.judge([widths[0]]), pair]).option == WIDTHS[0]


def test_what_is_not_certain_is_no_choice_and_the_most_promising_of_it_is_known():
    """A pair that keeps all of it on average, and a cheaper one that does not; both too noisy to tell."""
    held, widths = judge(10, 20, 100)
    good = measured(PAIR, 110, 0.2, noise=40.0, setting=1.0)
    worse = measured(Option((0, 1), (0, 1)), 88, 0.05, noise=40.0, setting=1.0)
    judged = [*(held.judge([one]) for one in widths), held.judge([good]), held.judge([worse])]
    assert [one.verdict for one in judged] == ["loses", "loses", "keeps", "unclear", "unclear"]
    chosen = choose(judged)
    assert chosen.option == WIDTHS[2]
    unclear = undecided(judged, chosen)
    assert [one.option for one in unclear] == [PAIR, Option((0, 1), (0, 1))]
    pair, cheaper = unclear
    assert pair.kept[0] > 0.95 > cheaper.kept[0]
    assert most_promising(unclear, 0.95) is pair
    assert most_promising(unclear, 0.5) is cheaper  # both keep so much on average
    assert most_promising(unclear, 9.0) is pair  # neither does
    assert most_promising([], 0.95) is None
    assert undecided(judged, unclear[1]) == []


def logged(steps, **scores):
    return {"kind": "train", "steps": steps, "episodes": 2, "success": None, "scored_by": "return"} | scores


@pytest.mark.parametrize("told", [{}, {"success": 0.0}])
def test_returns_that_grow_late_are_still_rising_whether_success_is_told_or_not(told):
    lines = [logged(steps, **told, **{"return": float(steps)}) for steps in range(100, 1001, 100)]
    assert still_rising(lines, 1000, gain=1000.0) is True  # 250 steps apart
    assert still_rising(lines, 1000, gain=10_000.0) is False
    assert still_rising(lines[:7], 1000, gain=1000.0) is None
    assert still_rising(lines, 1000, gain=0.0) is None


def test_agents_with_goals_rise_by_their_success():
    rates = {800: 0.2, 1000: 0.6}
    lines = [logged(steps, success=rate, scored_by="success", **{"return": -50.0}) for steps, rate in rates.items()]
    assert still_rising([logged(700, success=0.2, scored_by="success", **{"return": 0.0}), *lines], 1000, 0.6) is True
