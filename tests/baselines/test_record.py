import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines.record import Amount, play, record, segment
from lowgear.policy.controller import Controller
from tests.fixtures.probes import Counting
from tests.fixtures.teachers import teacher


def counting(lengths):
    return lambda num_envs: Counting(lengths[:num_envs])


def test_whole_episodes_are_kept_with_their_ends_and_returns():
    (found,) = record([teacher()], counting([3, 5, 3, 5]), Amount(4, None))
    assert found.bounds.tolist() == [0, 3, 8, 11, 16]
    assert found.episode_returns.tolist() == [6, 15, 6, 15]
    assert found.terminated.tolist() == [True, False, True, False]
    assert found.truncated.tolist() == [False, True, False, True]
    assert found.observations[:8].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [1, 3], [1, 4]]
    assert found.last_observations.tolist() == [[0, 3], [1, 5], [2, 3], [3, 5]]
    assert found.rewards[:3].tolist() == [1, 2, 3]


def test_actions_are_the_teachers_mean_actions():
    policy = teacher()
    (found,) = record([policy], counting([4]), Amount(1, None))
    expected = Controller.from_policies([policy], 4).act_with(1, found.observations[None])[0]
    np.testing.assert_allclose(found.actions, expected, rtol=1e-6)


def test_cuts_are_consecutive_from_random_places():
    (found,) = record([teacher()], lambda n: Counting([30] * n), Amount(12, 5))
    assert np.diff(found.bounds).tolist() == [5] * 12
    starts = found.observations[found.bounds[:-1], 1]
    assert len(set(starts)) > 3
    for i, start in enumerate(starts):
        assert found.observations[5 * i : 5 * i + 5, 1].tolist() == [start + k for k in range(5)]
        assert found.last_observations[i, 1] == start + 5
    assert found.episode_returns.tolist() == [465] * 12


def test_a_cut_knows_whether_it_reached_the_end():
    ((episode,),) = play([teacher()], [teacher()], Counting([4]), 1, [(0,)])
    seen = {}
    for seed in range(20):
        part = segment(episode, 3, np.random.default_rng(seed))
        seen[part.observations[0, 1]] = (part.terminated, part.last_observation.tolist())
    assert seen == {0: (False, [0, 3]), 1: (True, [0, 4])}


def test_short_episodes_are_kept_whole_and_count_once():
    (found,) = record([teacher()], lambda n: Counting([2, 9][:n]), Amount(2, 5))
    assert np.diff(found.bounds).tolist() == [2, 5]


def test_the_same_seed_gives_the_same_and_another_gives_others():
    first, again, other = (
        record([teacher()], lambda n: Counting([30] * n), Amount(6, 5), seed=seed)[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.observations, again.observations)
    assert not np.array_equal(first.observations, other.observations)


def test_others_act_while_the_teacher_labels():
    actor, labeller = teacher(units=3, seed=5), teacher(units=4, seed=6)
    ((episode,),) = play([actor], [labeller], Counting([5]), 1, [(0,)])
    acted, labels = (
        Controller.from_policies([policy]).act_with(1, episode.observations[None])[0] for policy in (actor, labeller)
    )
    np.testing.assert_allclose(episode.actions, labels, atol=1e-6)
    assert not np.allclose(episode.actions, acted)


def test_a_policy_whose_master_picks_is_no_teacher():
    policy = teacher(variant="asymmetric", forced_gear=None)
    with pytest.raises(LowgearError, match="asymmetric policy is no teacher"):
        record([policy], counting([3]))


def test_a_teacher_may_have_other_units():
    policy = teacher(activation="relu")
    (found,) = record([policy], counting([4]), Amount(1, None))
    expected = Controller.from_policies([policy]).act_with(1, found.observations[None])[0]
    np.testing.assert_allclose(found.actions, expected, rtol=1e-6)


@pytest.mark.parametrize("amount", [Amount(0, 5), Amount(5, 0)])
def test_nothing_cannot_be_recorded(amount):
    with pytest.raises(LowgearError, match="1 or more"):
        record([teacher()], counting([3]), amount)


def test_teachers_of_different_widths_do_not_label_together():
    teachers = [teacher(units=4), teacher(units=5)]
    with pytest.raises(LowgearError, match=r"do not mix: gears \(2, 4\) and \(2, 5\)"):
        play(teachers, teachers, Counting([3, 3]), 1, [(0,), (1,)])
