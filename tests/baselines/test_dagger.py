from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines import clone, dagger
from lowgear.baselines.clone import CloneSettings
from lowgear.baselines.dagger import DaggerSettings
from lowgear.evaluation import evaluate
from lowgear.policy.controller import Controller
from tests.fixtures.probes import Counting
from tests.fixtures.teachers import teacher, valley, valley_demonstrations

QUICK = CloneSettings(learning_rate=1e-2, updates=50, held_out=0.2)


def long_episodes(num_envs):
    return Counting([40] * num_envs)


def test_labels_are_as_many_as_asked_for_and_the_teachers():
    policy = teacher()
    _, (data,) = dagger.fit([policy], long_episodes, 3, [0], DaggerSettings(103, 4, 3, None, QUICK))
    assert len(data) == 103
    assert data.trajectories == 12
    wanted = Controller.from_policies([policy]).act_with(1, data.observations[None])[0]
    np.testing.assert_allclose(data.actions, wanted, rtol=1e-6)


def test_what_short_episodes_cannot_hold_goes_to_longer_ones_and_never_beyond():
    def mixed(num_envs):
        return Counting(([2, 40] * num_envs)[:num_envs])

    _, (data,) = dagger.fit([teacher()], mixed, 3, [0], DaggerSettings(60, 3, 2, None, QUICK))
    assert sorted(np.diff(data.bounds).tolist()) == [2, 2, 2, 18, 18, 18]
    _, (few,) = dagger.fit([teacher()], lambda n: Counting([2] * n), 3, [0], DaggerSettings(60, 3, 2, None, QUICK))
    assert len(few) == 12


def test_the_teacher_acts_first_and_the_student_afterwards():
    seen = []

    class Watched(Counting):
        def step(self, actions):
            seen.append(actions.copy())
            return super().step(actions)

    policy = teacher()
    dagger.fit(
        [policy], lambda n: Watched([10] * n), 3, [0], DaggerSettings(20, 2, 1, None, replace(QUICK, held_out=0.0))
    )
    observations = np.array([[[0, k] for k in range(10)]], np.float32)
    wanted = Controller.from_policies([policy]).act_with(1, observations)[0]
    np.testing.assert_allclose(np.concatenate(seen[:10]), wanted, rtol=1e-6)
    assert not np.allclose(np.concatenate(seen[10:]), wanted, atol=1e-3)


def test_the_last_student_is_a_clone_of_all_that_was_labelled():
    students, data = dagger.fit([teacher()], long_episodes, 3, [4], DaggerSettings(60, 3, 2, None, QUICK))
    cloned = clone.fit(data, 3, [4], QUICK)
    np.testing.assert_array_equal(
        students.policies[0].weights.gears[0][0][0], cloned.policies[0].weights.gears[0][0][0]
    )
    assert students.policies[0].header.variant == "dagger"
    assert students.history["round_return"].tolist() == [[820.0]] * 3


def test_a_student_learns_the_same_alone_and_in_company():
    settings = DaggerSettings(30, 2, 2, None, QUICK)
    alone, _ = dagger.fit([teacher(obs_dim=1)], valley, 3, [4], settings)
    company, _ = dagger.fit([teacher(obs_dim=1, seed=3), teacher(obs_dim=1)], valley, 3, [1, 4], settings)
    np.testing.assert_allclose(
        alone.policies[0].weights.gears[0][0][0], company.policies[1].weights.gears[0][0][0], atol=1e-5
    )


def test_equal_data_means_as_many_labels_from_as_many_episodes():
    whole = valley_demonstrations(25, 50)
    assert dagger.at_equal_data(whole, QUICK) == DaggerSettings(1250, 5, 5, None, QUICK)
    parts = replace(whole, truncated=np.zeros(25, np.bool_))
    assert dagger.at_equal_data(parts, QUICK) == DaggerSettings(1250, 5, 5, 50, QUICK)
    assert dagger.at_equal_data(valley_demonstrations(5, 50), QUICK).episodes == 2


def test_labels_are_from_random_places_or_from_the_start():
    starts = {}
    for length in (5, None):
        _, (data,) = dagger.fit([teacher()], long_episodes, 3, [0], DaggerSettings(30, 2, 3, length, QUICK))
        assert np.diff(data.bounds).tolist() == [5] * 6
        starts[length] = set(data.observations[data.bounds[:-1], 1].tolist())
    assert starts[None] == {0}
    assert len(starts[5]) > 2


def test_students_learn_the_valley():
    better = replace(clone.MODERN, learning_rate=5e-3, updates=3000)
    (master,) = clone.fit([valley_demonstrations(40, 20)], 32, [0], better).policies
    students, _ = dagger.fit([master] * 2, valley, 16, [0, 1], DaggerSettings(400, 2, 10, None, better))
    returns = evaluate.play_policies([*students.policies], valley, 20, "greedy", 0).returns.mean(axis=1)
    assert (returns > 18).all()  # of 20


@pytest.mark.parametrize(
    ("settings", "seeds", "message"),
    [
        (DaggerSettings(10, 0, 1), [0], "0 rounds"),
        (DaggerSettings(10, 5, 1), [0], "one episode a round"),
        (DaggerSettings(10, 5, 5), [0], "10 labels are not one for each"),
        (DaggerSettings(), [0, 1], "1 teachers for 2 seeds"),
    ],
)
def test_bad_settings_are_errors(settings, seeds, message):
    with pytest.raises(LowgearError, match=message):
        dagger.fit([teacher()], long_episodes, 3, seeds, settings)
