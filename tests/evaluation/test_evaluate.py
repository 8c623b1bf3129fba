"""Many episodes at once: whose count, what is charged, and how sure the means are."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.evaluation.evaluate import Played, play, slots_for, starts, summarise
from lowgear.policy import cost
from lowgear.policy.cost import CostModel
from lowgear.policy.file import Policy
from tests.fixtures.probes import Counting
from tests.fixtures.weights import PLAIN, random_weights

HEADER = replace(PLAIN, obs_dim=2, act_dim=1, gears=(4, 8), master_units=32)
COST = HEADER.cost


def policies(*forced):
    return [
        Policy(replace(HEADER, forced_gear=gear), random_weights(1, seed, HEADER)) for seed, gear in enumerate(forced)
    ]


def test_every_environment_plays_its_share_so_short_episodes_do_not_count_twice():
    # Two slots for each of two controllers; the first slot's episodes are short, the second's long.
    env = Counting([3, 30, 3, 30])
    played = play(policies(0, 1), env, 4, "greedy", 0)
    assert played.lengths.tolist() == [[3, 30, 3, 30]] * 2
    assert played.returns[0].tolist() == [6, 465, 6, 465]
    assert played.success is None


def test_an_episode_succeeds_by_its_last_step_alone():
    # Slots of 3 and 5 steps for each of two controllers; the fifth step is no success, the third of the longer is one.
    played = play(policies(0, 1), Counting([3, 5, 3, 5], wins=(3,)), 4, "greedy", 0)
    assert played.success.tolist() == [[1, 0, 1, 0]] * 2
    assert summarise(played, 0, COST)["success_rate"] == 0.5


def test_the_same_starts_for_every_controller():
    env = Counting([3, 5, 3, 5])
    play(policies(0, 1), env, 2, "greedy", 7)
    assert env.seeds == starts(7, 2) * 2
    assert env.seeds[0] != env.seeds[1]
    assert starts(7, 5)[:2] == starts(7, 2)
    assert not set(starts(7, 5)) & set(starts(8, 5))


def test_shares_picks_and_price():
    env = Counting([12, 12, 12])
    played = play(policies(0, 1, None), env, 2, "greedy", 0)
    small, large, free = (summarise(played, agent, COST) for agent in range(3))
    assert small["gear_share"] == [1.0, 0.0]
    assert large["large_share"] == 1.0
    assert small["period_mean"] is None  # the master is never asked, and not charged
    assert large["flops_per_step"] == cost.policy_flops(2, 1, 8)
    assert large["flops_reduction"] == 0.0
    assert small["flops_reduction"] == pytest.approx(1 - cost.policy_flops(2, 1, 4) / cost.policy_flops(2, 1, 8))
    assert free["period_mean"] == pytest.approx(12 / 3)  # picks at steps 0, 5 and 10
    share = free["large_share"]
    by_hand = (
        share * cost.policy_flops(2, 1, 8)
        + (1 - share) * cost.policy_flops(2, 1, 4)
        + cost.master_flops(2, 2, 32) * 3 / 12
    )
    assert free["flops_per_step"] == pytest.approx(by_hand)


def test_interval_by_hand():
    env = Counting([1, 2])
    played = play(policies(0), env, 2, "greedy", 0)  # returns 1 and 3
    found = summarise(played, 0, COST)
    assert found["return_mean"] == 2.0
    assert found["return_std"] == pytest.approx(2**0.5)
    assert found["return_ci95"] == pytest.approx(12.706)  # Student's t for one degree of freedom


def test_reduction_and_its_interval_by_hand():
    # Two episodes of one agent: 10 steps with 5 picks, 40 steps with 10; a fifth and a half of them in the large gear.
    played = Played(
        returns=np.array([[1.0, 2.0]]),
        lengths=np.array([[10.0, 40.0]]),
        picks=np.array([[5.0, 10.0]]),
        gear_steps=np.array([[[8.0, 2.0], [20.0, 20.0]]]),
        success=np.array([[0.0, 1.0]]),
    )
    found = summarise(played, 0, CostModel((10, 100), 4))
    assert found["flops_per_step"] == pytest.approx((300 + 2240) / 50)  # steps count alike, episodes do not
    assert found["flops_reduction"] == pytest.approx(1 - 50.8 / 100)
    # 30 and 56 FLOPs a step, 20.8 below that and 5.2 above; by 10 and 40 of on average 25 steps 8.32 each.
    assert found["flops_reduction_ci95"] == pytest.approx(12.706 * 8.32 / 100)
    assert found["period_mean"] == pytest.approx(50 / 15)
    assert found["gear_share"] == pytest.approx([28 / 50, 22 / 50])
    assert found["success_rate"] == 0.5


def test_one_episode_has_no_interval():
    found = summarise(play(policies(None), Counting([12]), 1, "greedy", 0), 0, COST)
    assert (found["return_ci95"], found["flops_reduction_ci95"]) == (0.0, 0.0)


def test_boltzmann_mixes_where_greedy_stays():
    env, header = Counting([400]), replace(HEADER, master_units=4)
    policy = Policy(header, random_weights(1, 0, header))
    greedy, mixed = (summarise(play([policy], env, 3, master, 0), 0, header.cost) for master in ("greedy", "boltzmann"))
    assert greedy["large_share"] != mixed["large_share"]
    assert 0.02 < mixed["large_share"] < 0.98


def test_slots():
    assert slots_for(1, 200) == 64
    assert slots_for(1, 5) == 5
    assert slots_for(100, 5) == 1
