"""Policies with gears of every kind at play: evaluated, recorded and tuned, against a plain loop."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import envs
from lowgear.evaluation.evaluate import play, play_policies, starts, summarise
from lowgear.evaluation.record import record, respond
from lowgear.evaluation.tune import Demand, search
from lowgear.policy.file import Policy, PolicyHeader
from tests.fixtures.kinds import ALONE, EVERY_KIND, KINDS, Loop, policy_of_kind
from tests.fixtures.probes import Counting, Valley

SMALL = {"obs_dim": 1, "act_dim": 1, "layout": (("", 1),), "action_low": (-2.0,), "action_high": (2.0,)}


def on_valley(header: PolicyHeader, seed: int = 0) -> Policy:
    return policy_of_kind(replace(header, task="gym:Valley", **SMALL), seed, bias=2.0 if header.sees_action else 0.0)


def by_hand(policy: Policy, seed: int, steps: int = 20) -> tuple[list[int], list[np.ndarray], list[bool], float]:
    """Gears, actions, whether the master was asked, and the return of one episode in Valley itself."""
    env, loop = Valley(), Loop(policy)
    observation, _ = env.reset(seed=seed)
    gears, actions, asked, total = [], [], [], 0.0
    for _ in range(steps):
        gear, action, was_asked = loop.step(observation.astype(np.float64))
        observation, reward, *_ = env.step(2 * action)
        gears.append(gear)
        actions.append(action)
        asked.append(was_asked)
        total += reward
    return gears, actions, asked, total


@pytest.mark.parametrize("header", KINDS.values(), ids=KINDS)
def test_episodes_are_those_of_a_plain_loop(header: PolicyHeader) -> None:
    policy, seeds = on_valley(header), starts(3, 4)
    played = play([policy], envs.wrap(Valley, 4), 4, "greedy", 3)
    recorded = record(policy, envs.wrap(Valley, 4), seeds)
    for number, (seed, episode) in enumerate(zip(seeds, recorded, strict=True)):
        gears, actions, asked, total = by_hand(policy, seed)
        assert episode.gear.tolist() == gears
        assert episode.asked.tolist() == asked
        np.testing.assert_allclose(episode.action, actions, atol=2e-5)
        np.testing.assert_array_equal(episode.last_action[1:], episode.action[:-1])
        assert not episode.last_action[0].any()
        held = np.flatnonzero([header.gears[gear].kind == "hold" for gear in gears])
        np.testing.assert_array_equal(episode.action[held], episode.last_action[held])
        assert 0 not in held
        assert played.returns[0, number] == pytest.approx(total, abs=1e-3)
        np.testing.assert_array_equal(played.gear_steps[0, number], np.bincount(gears, minlength=len(header.gears)))
        assert played.picks[0, number] == sum(asked)


def test_what_is_held_costs_nothing() -> None:
    policy = on_valley(EVERY_KIND)
    row = summarise(play([policy], envs.wrap(Valley, 8), 8, "greedy", 0), 0, policy.header.cost)
    cost = policy.header.cost
    assert 0 < row["gear_share"][0] < 1
    expected = np.dot(row["gear_share"], cost.gear_flops) + cost.pick_flops / row["period_mean"]
    assert row["flops_per_step"] == pytest.approx(expected)
    assert row["flops_reduction"] == pytest.approx(1 - expected / cost.gear_flops[-1])


def test_a_single_gear_has_no_picks() -> None:
    policy = on_valley(ALONE)
    row = summarise(play([policy], envs.wrap(Valley, 2), 2, "greedy", 0), 0, policy.header.cost)
    assert (row["gear_share"], row["period_mean"], row["flops_reduction"]) == ([1.0], None, 0.0)


def test_episodes_side_by_side_begin_anew_each_for_itself() -> None:
    """Environments that end at different times: what is held never comes from the episode before."""
    counting = {"obs_dim": 2, "act_dim": 1, "layout": (("", 2),), "action_low": (-1.0,), "action_high": (1.0,)}
    policy = policy_of_kind(replace(KINDS["hold, no dial"], **counting), bias=1000.0)
    together = play([policy], Counting((3, 7, 4)), 6, "greedy", 0)
    # Nothing is worth more than to hold, but the first five steps of an episode, or all of a shorter one, need a gear.
    assert together.gear_steps[0, :, 0].tolist() == [0, 2, 0, 0, 2, 0]
    assert together.lengths[0].tolist() == [3, 7, 4, 3, 7, 4]


def test_a_sampled_master_never_holds_at_an_episodes_start() -> None:
    policy = on_valley(EVERY_KIND)
    episodes = record(policy, envs.wrap(Valley, 32), starts(0, 32), master="boltzmann")
    assert min(int(episode.gear[0]) for episode in episodes) > 0
    assert any((episode.gear == 0).any() for episode in episodes)
    assert all(np.isneginf(episode.values[0, :: len(policy.header.gears)]).all() for episode in episodes)


def test_responding_to_observations_holds_too() -> None:
    policy = on_valley(KINDS["hold and one gear"])
    seen = np.random.default_rng(0).normal(size=(30, 1)).astype(np.float32)
    episode, loop = respond(policy, seen), Loop(policy)
    for t, observation in enumerate(seen):
        gear, action, _ = loop.step(observation.astype(np.float64))
        assert episode.gear[t] == gear
        np.testing.assert_allclose(episode.action[t], action, atol=2e-5)


def test_dials_of_such_policies_can_be_tuned() -> None:
    policy = on_valley(EVERY_KIND)
    (found,) = search(
        [policy], Demand(max_flops=3.0), lambda n: envs.wrap(Valley, n), "greedy", seed=0, episodes_at_most=8
    )
    assert found.meets
    played = play_policies([policy.at(found.cost_coefficient)], lambda n: envs.wrap(Valley, n), 8, "greedy", 1)
    flops = summarise(played, 0, policy.header.cost)["flops_per_step"]
    assert flops <= 3.2 * policy.header.cost.gear_flops[-1]
