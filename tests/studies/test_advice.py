"""Controllers cut out of others, and what is said of scores whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.policy.controller import Controller, chooser
from lowgear.policy.gears import gears_of
from lowgear.studies import advise
from lowgear.studies.advice import Judge, Measured, Option, choose, options, period_options
from lowgear.studies.advise import Request, words
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
    chosen = choose(judged, 0.95)
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
    assert choose([held.judge([widths[0]]), pair], 0.95).option == WIDTHS[0]


def report(verdict="keeps", gears=(8, 128), learned=True, **others):
    chosen = {
        "gears": list(gears),
        "periods": [2, 5] if len(gears) > 1 else [],
        "relative_coefficient": 1.0,
        "score": [99.0, 98.0, 100.0],
        "kept": [0.99, 0.97, 1.01],
        "flops": [0.2, 0.1, 0.3],
        "verdict": verdict,
    }
    cheaper = chosen | {"gears": [8], "flops": [0.01, 0.01, 0.01], "verdict": "unclear"}
    found = {"steps": 2048, "keep": 0.95, "best_width": 128, "learned": learned, "still_rising": False}
    return found | {"options": [cheaper, chosen], "periods": [], "chosen": chosen} | others


def test_the_words_say_what_is_not_known():
    sure = " ".join(words(report()))
    assert "Worth training: gears 8,128. Kept 99% [97%, 101%] of what 128 units alone gain" in sure
    assert "Cheaper, and undecided: 8." in sure
    assert "Not certain" not in sure
    assert "Not certain: the interval does not clear 95%" in " ".join(words(report(verdict="unclear")))
    own = " ".join(words(report(gears=(128,))))
    assert "Nothing cheaper than 128 units alone, the best width, certainly keeps 95%" in own
    assert "Worth training" not in own
    assert "still rising" in " ".join(words(report(still_rising=True)))
    (nothing,) = words(report(learned=False))
    assert nothing.startswith("Cannot tell: after 2,048 steps")


def test_the_command_trains_what_is_advised():
    from lowgear.config.tasks import find

    request = Request(find("gym:Pendulum-v1"), (8, 32, 128), (2, 5), (0, 1, 2), 2048, 20, 0.95, ("batch=64",))
    command = advise.command(request, report())
    assert command == (
        "lowgear train gym:Pendulum-v1 --gears 8,128 --period 2,5 --steps 20480 --seeds 0-2 "
        "--variants asymmetric,small-only,large-only --set batch=64"
    )
    assert "--gears 32,128" in advise.command(request, report(gears=(32,)))
    assert "--gears 8,128" in advise.command(request, report(gears=(128,)))
    assert advise.command(request, report(learned=False)) is None
