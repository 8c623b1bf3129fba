"""Saved policies at play: the same weights at several settings of a dial, periods, and groups too large for one."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.evaluation import evaluate, tune
from lowgear.evaluation.evaluate import Played, at_settings, play, play_policies, summarise
from lowgear.policy.dial import Dial
from tests.fixtures.faulty import making
from tests.fixtures.probes import Counting, Valley, Wander
from tests.fixtures.weights import VALLEY as HEADER
from tests.fixtures.weights import thrifty


def assert_same(found, expected):
    for name in ("returns", "lengths", "picks", "gear_steps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_each_policy_is_set_along_its_dial_and_one_without_stays():
    fixed = thrifty(replace(HEADER, dial=Dial(0.02, 0.02), cost_coefficient=0.02))
    found = at_settings([thrifty(), fixed], 3)
    assert [number for number, _ in found] == [0, 0, 0, 1]
    assert [policy.header.cost_coefficient for _, policy in found] == pytest.approx([0.001, 0.01, 0.1, 0.02])
    named = at_settings([fixed, thrifty()], [0.05])
    assert [(number, policy.header.cost_coefficient) for number, policy in named] == [(0, 0.02), (1, 0.05)]


def test_the_same_weights_play_differently_at_the_two_ends_of_their_dial():
    policies = [thrifty().at(value) for value in (0.001, 0.1)]
    forced = thrifty(replace(HEADER, variant="large-only", forced_gear=1))
    env = envs.wrap(Valley, 6)
    played = play([*policies, forced], env, 4, "greedy", 0)
    cheap, dear, large = (summarise(played, agent, HEADER.cost) for agent in range(3))
    # Episodes of 20 steps: the large gear in 10 picks of 2 steps, the small one in 4 of 5.
    assert (cheap["gear_share"], cheap["period_mean"]) == ([0.0, 1.0], 2.0)
    assert (dear["gear_share"], dear["period_mean"]) == ([1.0, 0.0], 5.0)
    cost = HEADER.cost
    assert cheap["flops_per_step"] == pytest.approx(cost.gear_flops[1] + cost.pick_flops / 2)
    assert dear["flops_per_step"] == pytest.approx(cost.gear_flops[0] + cost.pick_flops / 5)
    # With the master out of the way the large gear does the same, and no pick is charged.
    assert large["return_mean"] == cheap["return_mean"] != dear["return_mean"]
    assert (large["period_mean"], large["flops_reduction"]) == (None, 0.0)
    assert cheap["flops_reduction"] < 0


def test_success_that_a_task_without_goals_tells_of_is_counted_beside_its_return():
    policy = thrifty(replace(HEADER, obs_dim=2))
    played = play_policies([policy.at(0.001), policy.at(0.1)], lambda count: envs.wrap(Wander, count), 6, "greedy", 0)
    assert played.success is not None
    assert 0 < played.success.mean() < 1
    assert (summarise(played, 0, HEADER.cost)["scored_by"], played.scored_by) == ("return", "return")
    np.testing.assert_array_equal(tune.scores(played), played.returns)
    assert play([thrifty()], envs.wrap(Valley), 1, "greedy", 0).success is None


def test_a_group_that_nobody_tells_of_success_had_none(monkeypatch):
    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 1)
    told = iter([None, np.ones((1, 2))])

    def played(*_):
        return Played(*(np.ones((1, 2)) for _ in range(3)), np.ones((1, 2, 2)), next(told), {}, "return")

    monkeypatch.setattr(evaluate, "play", played)
    found = play_policies([thrifty(), thrifty()], lambda count: Counting([3] * count), 2, "greedy", 0)
    assert found.success.tolist() == [[0, 0], [1, 1]]


def test_picks_end_with_the_episode():
    header = replace(HEADER, obs_dim=2)
    played = play([thrifty(header).at(0.1)], Counting([12]), 2, "greedy", 0)
    assert played.picks.tolist() == [[3, 3]]  # of 5, 5 and 2 steps


def test_groups_play_from_the_same_starts_as_one(monkeypatch):
    # Weights differ, so that a policy in the wrong place would be noticed.
    policies = [thrifty(seed=seed).at(value) for seed in range(3) for value in (0.001, 0.1)][:5]
    counts, seeds, heard = [], [], []

    def make_env(count):
        env = envs.wrap(Valley, count)
        counts.append(count)
        reset, close = env.reset, env.close
        monkeypatch.setattr(env, "reset", lambda given: (seeds.append(list(given)), reset(given))[1])
        monkeypatch.setattr(env, "close", lambda: (heard.append("closed"), close())[1])
        return env

    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 2)
    played = play_policies(policies, make_env, 3, "greedy", 7, lambda count: heard.append(count))
    assert counts == [2, 2, 1]
    assert {seed for group in seeds for seed in group} == {seeds[0][0]}
    assert heard == [1] * 6 + ["closed"] + [1] * 6 + ["closed"] + [1] * 3 + ["closed"]
    assert played.returns.shape == (5, 3)
    assert played.gear_steps.shape == (5, 3, 2)
    assert played.success is None
    assert_same(played, play(policies, envs.wrap(Valley, 5), 3, "greedy", 7))
    assert len({tuple(returns) for returns in played.returns}) == 5


def test_one_group_uses_the_room_there_is(monkeypatch):
    counts = []

    def make_env(count):
        counts.append(count)
        return envs.wrap(Valley, count)

    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 8)
    policies = [thrifty().at(value) for value in (0.001, 0.1)]
    played = play_policies(policies, make_env, 6, "greedy", 0)
    assert counts == [8]  # four environments for each
    assert_same(played, play(policies, envs.wrap(Valley, 8), 6, "greedy", 0))


def test_starts_are_the_same_in_any_company_for_the_same_slots(monkeypatch):
    counts = []

    def make_env(count):
        counts.append(count)
        return envs.wrap(Valley, count)

    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 4)
    policies = [thrifty(seed=seed).at(0.001) for seed in range(3)]
    together = play_policies(policies, make_env, 4, "greedy", 7, slots=2)
    assert counts == [4, 2]
    for place, policy in enumerate(policies):
        alone = play_policies([policy], make_env, 4, "greedy", 7, slots=2)
        np.testing.assert_array_equal(alone.returns[0], together.returns[place])
    # Left alone, one policy takes all the room there is, and so meets other starts.
    assert not np.array_equal(play_policies(policies[:1], make_env, 4, "greedy", 7).returns[0], together.returns[0])
    assert counts[-1] == 4


def test_an_environment_is_closed_whatever_happens():
    closed = []

    class Breaks(Counting):
        def step(self, actions):  # noqa: ARG002
            raise RuntimeError("broke")

        def close(self):
            closed.append(True)

    with pytest.raises(RuntimeError, match="broke"):
        play_policies([thrifty(replace(HEADER, obs_dim=2))], lambda count: Breaks([5] * count), 1, "greedy", 0)
    assert closed == [True]


def test_success_is_joined_over_groups(monkeypatch):
    class Succeeds(Counting):
        """Every episode of the first environment succeeds."""

        def __init__(self, lengths):
            super().__init__(lengths)
            self.spec = replace(self.spec, has_success=True)

        def step(self, actions):
            step = super().step(actions)
            return step._replace(success=(step.terminated | step.truncated) & (np.arange(self.num_envs) == 0))

    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 2)
    policies = [thrifty(replace(HEADER, obs_dim=2))] * 3
    played = play_policies(policies, lambda count: Succeeds([5] * count), 2, "greedy", 0)
    assert played.success.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_a_policy_whose_environment_fails_is_missing_and_the_others_score_as_they_would(monkeypatch):
    monkeypatch.setattr(evaluate, "ENVIRONMENTS_AT_MOST", 4)  # two policies at a time, in two environments each
    policies = [thrifty(seed=seed) for seed in range(3)]
    well = play_policies(policies, making([""]), 3, "boltzmann", 0, slots=2)
    for ways in (["", "", "", "raise"], ["", "", "loop", ""]):
        found = play_policies(policies, making(ways, at=70), 3, "boltzmann", 0, slots=2, may_miss=True)
        assert list(found.missing) == [1]
        assert f"(environment {3 if 'raise' in ways else 2}, seed " in found.missing[1]
        for name in ("returns", "lengths", "picks", "gear_steps"):
            np.testing.assert_array_equal(getattr(found, name)[[0, 2]], getattr(well, name)[[0, 2]])
        assert np.isnan(found.returns[1]).all()
    with pytest.raises(LowgearError, match="motor is unplugged"):
        play_policies(policies, making(["raise"]), 3, "greedy", 0)
