"""Episodes that end once they succeed: EnvPool's, Gymnasium's, and vectors, which can't."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from tests.fixtures.goals import drive, toward
from tests.fixtures.probes import Countdown, Meadow, Valley

REACH = find("envpool:FetchReach-v1")


def test_a_fetch_that_reaches_its_goal_starts_anew() -> None:
    env = envs.make(REACH, 4, end_on_success=True)
    seen, found = drive(env, 10, 60)
    lengths, age = [], np.zeros(4, int)
    desired = slice(*env.spec.desired_goal)
    for before, step in zip(seen, found, strict=True):
        age += 1
        np.testing.assert_array_equal(step.terminated, step.success)
        assert not step.truncated.any()
        np.testing.assert_array_equal(step.last_observation[:, desired], before[:, desired])
        for i in range(4):
            moved = (step.observation[i, desired] != step.last_observation[i, desired]).any()
            assert moved == step.terminated[i]  # a new episode has a new goal, and only that
            if step.terminated[i]:
                lengths.append(int(age[i]))
                distance = np.linalg.norm(step.last_observation[i, 10:13] - step.last_observation[i, desired])
                assert distance <= 0.05 + 1e-6
                start = step.observation[i, 10:13]
                np.testing.assert_allclose(start, seen[0][i, 10:13], atol=0.02)  # back where episodes begin
                age[i] = 0
    assert len(lengths) > 8
    assert max(lengths) < 50
    env.close()


def test_without_it_a_fetch_goes_on_for_fifty_steps() -> None:
    env = envs.make(REACH, 4)
    _, found = drive(env, 10, 100)
    for number, step in enumerate(found, start=1):
        assert step.truncated.tolist() == [number % 50 == 0] * 4
        assert not step.terminated.any()
    assert found[48].success.all()  # and stays at its goal
    env.close()


def test_a_fetch_that_misses_its_goal_is_cut_off_by_time() -> None:
    env = envs.make(REACH, 4, end_on_success=True)
    _, found = drive(env, -10, 60)  # away from it
    missed = ~np.any([step.success for step in found], axis=0)
    assert missed.any()
    for number, step in enumerate(found, start=1):
        assert (step.truncated[missed] == (number == 50)).all()
        assert not step.terminated[missed].any()
    env.close()


def test_an_episode_after_an_early_end_has_its_whole_time() -> None:
    env = envs.make(REACH, 1, end_on_success=True)
    observation, step = env.reset([3]), None
    for _ in range(49):
        step = env.step(toward(env, observation, 10))
        observation = step.observation
        if step.terminated[0]:
            break
    assert step.terminated[0]
    for number in range(1, 51):  # away, from the goal of the new episode
        step = env.step(toward(env, step.observation, -10))
        assert not step.success[0]
        assert step.truncated[0] == (number == 50)
    env.close()


def test_a_fetch_that_succeeds_when_its_time_is_up_ends_for_real() -> None:
    # The same episode twenty times, but each waits a step longer than the one before until it sets off.
    env = envs.make(REACH, 20, end_on_success=True)
    observation, first = env.reset([7] * 20), np.zeros(20, int)
    for number in range(1, 51):
        action = toward(env, observation, 10) * (np.arange(20) + 30 < number)[:, None]
        step = env.step(action)
        observation = step.observation
        first[step.success & (first == 0)] = number
    assert (first == 50).any()
    assert (first == 0).any()
    np.testing.assert_array_equal(step.terminated, step.success)
    np.testing.assert_array_equal(step.terminated[first == 50], True)
    np.testing.assert_array_equal(step.truncated, first == 0)
    env.close()


def test_success_at_the_time_limit_is_a_real_end() -> None:
    class Late(Meadow):
        steps = 4

        def step(self, action):
            seen, reward, terminated, truncated, _ = super().step(action)
            return seen, reward, terminated, truncated, {"is_success": truncated}

    env = envs.wrap(Late(), end_on_success=True)
    _, found = drive(env, 0, 8)
    assert [bool(step.terminated[0]) for step in found] == [False, False, False, True] * 2
    assert not any(step.truncated[0] for step in found)


def make_meadow(form: str, **options):
    if form == "registered":
        return envs.make(find("gym:Meadow-v0"), 2, **options)
    if form == "one":
        return envs.wrap(Meadow(), **options)
    return envs.wrap(Meadow, num_envs=2, **options)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    gymnasium.register("Meadow-v0", Meadow)
    yield
    del gymnasium.registry["Meadow-v0"]


@pytest.mark.parametrize("form", ["one", "factory", "registered"])
def test_a_gymnasium_environment_ends_where_it_succeeds(form: str) -> None:
    env = make_meadow(form, end_on_success=True)
    seen, found = drive(env, 20, 40)
    ends = 0
    for before, step in zip(seen, found, strict=True):
        np.testing.assert_array_equal(step.terminated, step.success)
        np.testing.assert_array_equal(step.last_observation[:, 4:6], before[:, 4:6])
        for i in np.flatnonzero(step.terminated):
            ends += 1
            assert np.linalg.norm(step.last_observation[i, 2:4] - step.last_observation[i, 4:6]) <= Meadow.near
            assert (step.observation[i, :4] == 0).all()  # in the middle again
            assert (step.observation[i, 4:6] != before[i, 4:6]).all()
    assert ends > 3 * env.num_envs
    env.close()


@pytest.mark.parametrize("form", ["one", "factory", "registered"])
def test_a_gymnasium_environment_goes_on_without(form: str) -> None:
    env = make_meadow(form)
    _, found = drive(env, 20, 40)
    assert not any(step.terminated.any() for step in found)
    assert [bool(step.truncated.all()) for step in found] == ([False] * 19 + [True]) * 2
    assert found[18].success.all()
    env.close()


def test_time_limits_are_known_through_the_wrapper() -> None:
    env = envs.wrap(gymnasium.wrappers.TimeLimit(Meadow(), 5), end_on_success=True)
    assert env.spec.max_episode_steps == 5
    _, found = drive(env, 0, 10)
    assert [bool(step.truncated[0]) for step in found] == ([False] * 4 + [True]) * 2
    assert env.spec.name == "Meadow"


def test_a_vector_ends_its_own_episodes() -> None:
    vector = SyncVectorEnv([Meadow, Meadow], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(LowgearError, match=r"vector.*pass a function that makes one"):
        envs.wrap(vector, end_on_success=True)
    assert envs.wrap(vector).num_envs == 2


def test_without_goals_nothing_is_a_success() -> None:
    """Infos say what they like: only a goal environment's `is_success` is known to be meant."""

    class Lucky(Valley):
        def step(self, action):
            *told, info = super().step(action)
            return *told, info | {"success": self._step == 3}

    env = envs.wrap(Lucky(), end_on_success=True)
    env.reset([0])
    steps = [env.step(np.zeros((1, 1), np.float32)) for _ in range(6)]
    assert not any(step.terminated[0] for step in steps)


def test_a_vector_without_goals_is_taken_whatever_its_observations() -> None:
    vector = SyncVectorEnv([Countdown], autoreset_mode=AutoresetMode.SAME_STEP)  # a Dict, but of no goals
    assert envs.wrap(vector, end_on_success=True).num_envs == 1


def test_a_task_without_success_is_left_alone() -> None:
    env = envs.make(find("MountainCarContinuous-v0"), 2, end_on_success=True)
    env.reset([0, 1])
    step = env.step(np.zeros((2, 1), np.float32))
    assert step.success is None
    assert not (step.terminated | step.truncated).any()
    env.close()
