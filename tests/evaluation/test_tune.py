"""The search on controllers whose return and FLOPs along the dial are known."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.evaluation.tune import BATCH, SETTINGS, Demand, DialSearch
from lowgear.policy.dial import Dial
from tests.fixtures.weights import HEADER, random_policy

DIAL = Dial(0.001, 1.0)
LARGE = HEADER.cost.gear_flops[-1]
ALIKE = np.full(BATCH, 1000.0)  # lengths of episodes


def controller():
    return random_policy(replace(HEADER, dial=DIAL, cost_coefficient=DIAL.middle))


def run(demand, returns, flops, episodes=64, noise=0.0, paired_noise=0.0, flops_noise=0.0, seed=0, other=None):
    """Search with return and FLOPs given as functions of the position; starts vary by `paired_noise` for all alike."""
    search = DialSearch(controller(), demand, episodes, other)
    rounds = 0
    while wanted := search.next_batches():
        rounds += 1
        assert rounds < 200, "the search does not end"
        for place, batch in wanted:
            position = DIAL.position(search.settings[place])
            starts = np.random.default_rng((seed, batch)).normal(size=BATCH) * paired_noise
            own = np.random.default_rng((seed, place, batch, 1)).normal(size=BATCH) * noise
            spent = np.random.default_rng((seed, place, batch, 2)).normal(flops(position), flops_noise, BATCH)
            search.add(place, returns(position) + starts + own, spent, ALIKE)
    return search.result()


def falling(position):
    """From 1000 at the low end to 800 at the high one."""
    return 900 - 100 * position


def cheaper(position):
    """From the large gear's FLOPs to a fifth of them."""
    return LARGE * (0.6 - 0.4 * position)


def test_the_cheapest_setting_that_keeps_the_share():
    found = run(Demand(keep_return=0.949), falling, cheaper)
    # 950 is at position -0.5, one of the settings; the next one returns 943.75.
    assert found.meets
    assert found.certain
    assert found.score_mean == pytest.approx(950)
    assert found.cost_coefficient == pytest.approx(DIAL.settings(SETTINGS)[8])
    assert found.best_score == pytest.approx(1000)
    assert found.flops_reduction == pytest.approx(0.2)
    # Five coarse settings and three or four halvings, a batch each: noise-free pairs settle at once. The one that is
    # found, and the best it is paired with, are played to the limit of eight batches.
    assert found.episodes == 64
    assert found.episodes_in_all <= (9 + 2 * 7) * BATCH


@pytest.mark.parametrize(("episodes", "sizes"), [(2, [2]), (8, [8]), (20, [8, 8, 4])])
def test_no_more_episodes_are_played_than_asked_for(episodes, sizes):
    search = DialSearch(controller(), Demand(keep_return=1.0, reference=1000.0), episodes)
    assert search.sizes == sizes
    played = {}
    while wanted := search.next_batches():
        for place, batch in wanted:
            played[place] = played.get(place, 0) + sizes[batch]
            swings = np.tile([100.0, -100.0], BATCH)[: sizes[batch]]
            search.add(place, 1000.0 + swings, np.full(sizes[batch], cheaper(0)), ALIKE[: sizes[batch]])
    assert max(played.values()) == episodes == search.result().episodes


def test_a_reference_sets_the_bar():
    found = run(Demand(keep_return=0.9, reference=1000.0), falling, cheaper)
    assert found.score_mean == pytest.approx(900)
    assert found.demanded == pytest.approx(900)


def test_negative_returns_may_grow_by_the_share():
    found = run(Demand(keep_return=0.9), lambda position: falling(position) - 1100, cheaper)
    # From -100 to -300: nine tenths of -100 means -110.
    assert found.demanded == pytest.approx(-110)
    assert -110 <= found.score_mean <= -110 + 200 / (SETTINGS - 1)


def test_the_best_setting_within_the_flops():
    found = run(Demand(max_flops=0.5), falling, cheaper)
    # Half of the large gear's FLOPs is at position 0.25, one of the settings.
    assert found.meets
    assert found.flops_reduction == pytest.approx(0.5)
    assert found.score_mean == pytest.approx(875)


def test_a_whole_dial_that_meets_gives_its_cheap_end():
    found = run(Demand(keep_return=0.5), falling, cheaper)
    assert found.cost_coefficient == DIAL.high
    assert found.episodes_in_all == (5 + 2 * 7) * BATCH
    assert run(Demand(max_flops=1.5), falling, cheaper).cost_coefficient == DIAL.low


@pytest.mark.parametrize("demand", [Demand(keep_return=0.9, reference=2000.0), Demand(max_flops=0.1)])
def test_where_none_meets_the_nearest_is_named(demand):
    found = run(demand, falling, cheaper)
    assert not found.meets
    assert found.cost_coefficient == (DIAL.low if demand.max_flops is None else DIAL.high)


@pytest.mark.parametrize(
    ("keep", "more"),
    [(0.94, 4), (0.96, 4), (0.95, 8)],  # at 0.95 a setting ties: it plays to the limit, and so may the one before it
)
def test_starts_that_all_settings_share_cost_few_episodes(keep, more):
    calm = run(Demand(keep_return=keep), falling, cheaper)
    shared = run(Demand(keep_return=keep), falling, cheaper, paired_noise=100.0)
    own = run(Demand(keep_return=keep), falling, cheaper, noise=100.0)
    assert shared.episodes_in_all <= calm.episodes_in_all + more * BATCH
    assert own.episodes_in_all > shared.episodes_in_all


@pytest.mark.parametrize("seed", range(5))
def test_noise_moves_the_answer_by_little_and_the_limit_holds(seed):
    found = run(Demand(keep_return=0.95), falling, cheaper, noise=60.0, seed=seed)
    assert abs(falling(DIAL.position(found.cost_coefficient)) - 950) < 20  # two points of the best
    assert found.episodes <= 64


def test_before_a_cliff_the_search_goes_on_between_settings():
    cliff = DIAL.position(DIAL.settings(257)[101]) - 1e-9  # between two of the settings, five eighths after the first
    found = run(Demand(keep_return=0.95), lambda position: 1000.0 if position < cliff else 500.0, cheaper)
    assert found.cost_coefficient == pytest.approx(DIAL.settings(257)[100])


def test_below_0_it_goes_on_between_settings_too():
    dial = Dial(-1.0, 10.0)
    cliff = dial.position(dial.settings(257)[21]) - 1e-9  # both settings around it are below 0
    policy = random_policy(replace(HEADER, dial=dial, cost_coefficient=0.1))
    search = DialSearch(policy, Demand(keep_return=0.95), 64)
    while wanted := search.next_batches():
        for place, _ in wanted:
            position = dial.position(search.settings[place])
            score = 1000.0 if position < cliff else 500.0
            search.add(place, np.full(BATCH, score), np.full(BATCH, cheaper(position)), ALIKE)
    found = search.result()
    assert found.cost_coefficient == pytest.approx(dial.settings(257)[20])
    assert found.cost_coefficient < 0


def test_a_close_call_is_said_to_be_one():
    swings = np.tile([100.0, -100.0], BATCH // 2)
    flat = run(Demand(keep_return=1.0, reference=1000.0), lambda _: 1000.0 + swings, cheaper, episodes=16)
    assert not flat.certain
    assert flat.episodes <= 16


def test_a_setting_that_fails_now_and_then_is_found_out():
    """At the dial's middle and beyond, one episode in twenty-four loses everything, none of the first eight."""
    search = DialSearch(controller(), Demand(keep_return=0.97), 64)
    played = 0
    while wanted := search.next_batches():
        for place, batch in wanted:
            position = DIAL.position(search.settings[place])
            scores = np.full(BATCH, 1000.0 - position)
            if position > -1e-9 and batch % 3 == 2:
                scores[3] = 0.0
            search.add(place, scores, np.full(BATCH, cheaper(position)), ALIKE)
            played += BATCH
    found = search.result()
    assert found.meets
    assert DIAL.settings(SETTINGS)[0] < found.cost_coefficient < DIAL.middle
    assert found.episodes == 64
    assert played == found.episodes_in_all


def beside(level, noise, seed=0):
    """Batches of another policy's returns, from starts that vary for all alike."""
    return [level + np.random.default_rng((seed, batch)).normal(size=BATCH) * noise for batch in range(8)]


def test_a_share_of_another_policys_return_is_kept_from_the_same_starts():
    # 97% of 950 is 921.5, reached a little below position -0.2; starts vary by ten times the difference.
    found = run(Demand(keep_return=0.97), falling, cheaper, paired_noise=200, other=beside(950, 200))
    assert found.meets
    assert found.certain
    assert found.best_score == pytest.approx(950 + np.mean(beside(0, 200)))
    demanded = 0.97 * found.best_score
    assert found.demanded == pytest.approx(demanded)
    assert demanded <= found.score_mean < demanded + 10


def test_what_must_be_sure_is_dearer():
    noisy = {"noise": 60, "other": beside(950, 0)}
    by_mean = run(Demand(keep_return=0.97), falling, cheaper, **noisy)
    surely = run(Demand(keep_return=0.97, surely=True), falling, cheaper, **noisy)
    assert surely.certain
    assert surely.score_mean > by_mean.score_mean
    assert surely.flops_reduction < by_mean.flops_reduction
    never = run(Demand(keep_return=1.0, surely=True), falling, cheaper, other=beside(1001, 0))
    assert not never.meets


def test_a_limit_is_surely_kept():
    """Where episodes differ in what they cost, one that is met on average would be passed in every other evaluation."""
    passed = 0
    for seed in range(20):
        found = run(Demand(max_flops=0.5), falling, cheaper, flops_noise=0.2 * LARGE, seed=seed)
        assert found.meets
        assert found.certain
        passed += cheaper(DIAL.position(found.cost_coefficient)) > 0.5 * LARGE
    assert passed <= 2


def test_a_limit_that_is_passed_now_and_then_is_found_out():
    """Below the dial's middle one episode in six needs the large gear throughout, none of the first eight."""
    search = DialSearch(controller(), Demand(max_flops=0.3), 48)
    while wanted := search.next_batches():
        for place, batch in wanted:
            position = DIAL.position(search.settings[place])
            flops = np.full(BATCH, 0.2 * LARGE)
            if position < -1e-9 and batch % 3 == 2:
                flops[:4] = LARGE
            search.add(place, np.full(BATCH, 1000.0 - position), flops, ALIKE)
    found = search.result()
    assert found.meets
    assert found.cost_coefficient >= DIAL.middle - 1e-12
    assert found.flops_reduction == pytest.approx(0.8)
    assert found.episodes == 48


def test_limits_hold_for_steps_not_for_episodes():
    """Half of the episodes are ten times as long as the others, and spend more in each step."""
    lengths = np.tile([100.0, 1000.0], BATCH // 2)
    spent = np.tile([0.1 * LARGE, 0.25 * LARGE], BATCH // 2)
    found = {}
    for limit in (0.2, 0.245):
        search = DialSearch(controller(), Demand(max_flops=limit), 48)
        while wanted := search.next_batches():
            for place, _ in wanted:
                search.add(place, np.full(BATCH, 1.0), spent, lengths)
        found[limit] = search.result()
    assert [one.meets for one in found.values()] == [False, True]
    assert found[0.2].flops_reduction == pytest.approx(1 - (100 * 0.1 + 1000 * 0.25) / 1100)
