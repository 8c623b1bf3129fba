"""Whole episodes step by step, against a controller that is stepped by hand."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import envs
from lowgear.evaluation.evaluate import play, starts
from lowgear.evaluation.record import Episode, record, respond
from lowgear.policy.controller import Controller, boltzmann
from lowgear.policy.file import Policy
from tests.fixtures.probes import Counting, Valley
from tests.fixtures.weights import KNOWN, random_policy

HEADER = replace(KNOWN, obs_dim=2, act_dim=1, layout=(("", 2),), action_low=(-1.0,), action_high=(1.0,))
ARRAYS = ("observation", "due", "asked", "left", "choice", "values", "action", "reward")
LENGTHS = (13, 8, 30)  # of the environments' episodes


def policy(seed: int = 0, **changes: object) -> Policy:
    return random_policy(replace(HEADER, **changes), seed)


def by_hand(one: Policy, env: Counting, choose=None) -> list[dict[str, np.ndarray]]:
    """All environments at once, step by step, until the last of their first episodes has ended."""
    stepped = Controller.from_policies([one], env.num_envs)
    observation, rows = env.reset(list(range(env.num_envs))), []
    for _ in range(max(env.lengths)):
        row = {"observation": observation, "due": stepped.due[0], "left": stepped.left[0]}
        row["values"] = stepped.values(observation[None])[0]
        row["asked"] = stepped.pick(observation[None], choose)[0]
        row["values"] = np.where(row["asked"][:, None], row["values"], np.nan)
        row["choice"], row["action"] = stepped.choice[0], stepped.act(observation[None])[0]
        step = env.step(row["action"])
        row["reward"] = step.reward
        stepped.advance((step.terminated | step.truncated)[None])
        observation = step.observation
        rows.append(row)
    columns = {name: np.stack([row[name] for row in rows]) for name in ARRAYS}
    return [{name: columns[name][:length, e] for name in ARRAYS} for e, length in enumerate(env.lengths)]


def assert_recorded(found: Episode, expected: dict[str, np.ndarray]) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), expected[name], err_msg=name)


@pytest.mark.parametrize("forced", [None, 0, 1])
def test_the_first_episode_of_each_environment_as_by_hand(forced: int | None) -> None:
    one = policy(forced_gear=forced)
    episodes = record(one, Counting(LENGTHS), range(3))
    for found, expected in zip(episodes, by_hand(one, Counting(LENGTHS)), strict=True):
        assert_recorded(found, expected)
    assert [episode.steps for episode in episodes] == list(LENGTHS)
    assert all(episode.ended for episode in episodes)
    assert [episode.success for episode in episodes] == [None] * 3
    for episode in episodes:
        assert episode.due[0]
        np.testing.assert_array_equal(episode.asked, episode.due if forced is None else np.zeros_like(episode.due))
        np.testing.assert_array_equal(np.isnan(episode.values).all(axis=1), ~episode.asked)
        if forced is not None:
            assert set(episode.gear) == {forced}
        assert {name: getattr(episode, name).dtype for name in ARRAYS} == {
            name: np.dtype({"due": bool, "asked": bool, "left": np.int32, "choice": np.int32}.get(name, np.float32))
            for name in ARRAYS
        }


def test_a_sampled_master_draws_from_its_own_seed() -> None:
    one, generator = policy(), np.random.default_rng((3, 4))
    tame = replace(one, weights=one.weights._replace(master=[(0 * w, 0 * b) for w, b in one.weights.master]))
    free = replace(tame, weights=tame.weights._replace(tariff=tame.weights.tariff._replace(each=0 * np.ones((1, 6)))))
    expected = by_hand(free, Counting(LENGTHS), lambda values: boltzmann(values, generator.random((1, 3), np.float32)))
    episodes = record(free, Counting(LENGTHS), range(3), master="boltzmann", chance_seed=(3, 4))
    for found, wanted in zip(episodes, expected, strict=True):
        assert_recorded(found, wanted)
    picks = np.concatenate([episode.choice[episode.asked] for episode in episodes])
    assert len(set(picks.tolist())) > 2  # equal values: any choice is as likely as another
    other = record(free, Counting(LENGTHS), range(3), master="boltzmann", chance_seed=(3, 5))
    assert [e.choice.tolist() for e in other] != [e.choice.tolist() for e in episodes]


def test_figures_of_an_episode_by_hand() -> None:
    (episode,) = record(policy(), Counting([13]), [0])
    steps = np.bincount(episode.choice % 2, minlength=2)
    assert episode.gear.tolist() == (episode.choice % 2).tolist()
    assert episode.gear_steps.tolist() == steps.tolist()
    assert episode.total == sum(range(1, 14))
    flops = steps @ HEADER.cost.gear_flops + episode.asked.sum() * HEADER.cost.pick_flops
    assert episode.flops_per_step == pytest.approx(flops / 13)
    forced = record(policy(forced_gear=1), Counting([13]), [0])[0]
    assert forced.flops_per_step == HEADER.cost.gear_flops[1]


def test_what_is_recorded_is_what_is_evaluated() -> None:
    header = replace(HEADER, obs_dim=1, layout=(("", 1),), action_low=(-2.0,), action_high=(2.0,))
    one = random_policy(header)
    episodes = record(one, envs.wrap(Valley, 4), starts(7, 4))
    played = play([one], envs.wrap(Valley, 4), 4, "greedy", 7)
    np.testing.assert_allclose([episode.total for episode in episodes], played.returns[0], rtol=1e-6)
    np.testing.assert_array_equal([episode.steps for episode in episodes], played.lengths[0])
    np.testing.assert_array_equal([episode.asked.sum() for episode in episodes], played.picks[0])
    np.testing.assert_array_equal([episode.gear_steps for episode in episodes], played.gear_steps[0])


def test_an_episode_that_goes_on_is_cut() -> None:
    whole = record(policy(), Counting(LENGTHS), range(3))
    cut = record(policy(), Counting(LENGTHS), range(3), steps_at_most=10)
    assert [episode.steps for episode in cut] == [10, 8, 10]
    assert [episode.ended for episode in cut] == [False, True, False]
    for found, long in zip(cut, whole, strict=True):
        short = long.until(10)
        assert short.ended == found.ended
        assert_recorded(short, {name: getattr(found, name) for name in ARRAYS})
    assert whole[0].until(13).ended
    assert not whole[0].until(12).ended


def test_success_is_that_of_the_last_step() -> None:
    episodes = record(policy(), Counting([3, 5], wins=(3,)), range(2))
    assert [episode.success for episode in episodes] == [True, False]
    (cut,) = record(policy(), Counting([5], wins=(3,)), [0], steps_at_most=3)
    assert (cut.success, cut.ended) == (True, False)


@pytest.mark.parametrize("forced", [None, 1])
def test_a_response_is_what_the_same_observations_gave_in_an_environment(forced: int | None) -> None:
    one = policy(seed=2, forced_gear=forced)
    (episode,) = record(one, Counting([30]), [0])
    found = respond(one, episode.observation)
    expected = {name: getattr(episode, name) for name in ARRAYS} | {"reward": np.zeros(30, np.float32)}
    assert_recorded(found, expected)
    assert (found.ended, found.success) == (False, None)
