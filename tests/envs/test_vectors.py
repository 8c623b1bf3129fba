"""Vectors of Gymnasium environments as they are: every autoreset mode gives the same transitions."""

import time
from contextlib import closing
from typing import Any

import envpool
import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from lowgear import LowgearError, envs
from lowgear.envs.own import from_module
from lowgear.envs.protocol import BatchEnv
from lowgear.envs.vectors import AnyVectorEnv
from tests.fixtures.probes import Countdown, Wander

SEEDS = [3, 1, 4, 1, 5]
MODES = list(AutoresetMode)


def played(env: BatchEnv, steps: int = 40) -> list[Any]:
    """Everything that five environments give, from the same seeds and actions."""
    rng = np.random.default_rng(0)
    found: list[Any] = [env.reset(SEEDS)]
    for _ in range(steps):
        step = env.step(rng.uniform(-1, 1, (len(SEEDS), 1)).astype(np.float32))
        found += [*step[:5], step.success]
    env.close()
    return found


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def vector(mode: AutoresetMode, num_envs: int = 5) -> VectorEnv:
    return SyncVectorEnv([Wander] * num_envs, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_gives_the_same_transitions(mode: AutoresetMode) -> None:
    expected = played(envs.wrap(Wander, num_envs=5))
    ended = np.array(expected[3::6]) | np.array(expected[4::6])
    assert ended.sum() > 20
    assert (ended.any(axis=1) & ~ended.all(axis=1)).any()  # some end while others go on
    assert_same(played(envs.wrap(vector(mode))), expected)


@pytest.mark.slow
def test_environments_in_processes_of_their_own() -> None:
    with closing(AsyncVectorEnv([Wander] * 5, context="spawn", autoreset_mode=AutoresetMode.NEXT_STEP)) as made:
        assert_same(played(envs.wrap(made), 12), played(envs.wrap(Wander, num_envs=5), 12))


def test_processes_that_reset_twice_are_refused() -> None:
    made = AsyncVectorEnv.__new__(AsyncVectorEnv)
    made.metadata, made.shared_memory = {"autoreset_mode": AutoresetMode.NEXT_STEP}, False
    made.closed = True
    with pytest.raises(LowgearError, match="make it with shared_memory=True"):
        AnyVectorEnv("Arm", made)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("mode", MODES)
def test_a_function_that_makes_vectors_of_any_size(mode: AutoresetMode, size: int) -> None:
    env = envs.wrap(lambda: vector(mode, size), num_envs=5)
    assert env.num_envs == 5
    assert_same(played(env), played(envs.wrap(Wander, num_envs=5)))


def counted(num_envs: int) -> VectorEnv:
    return vector(AutoresetMode.DISABLED, num_envs)


def too_few(num_envs: int) -> VectorEnv:
    return vector(AutoresetMode.DISABLED, num_envs - 1)


def endless() -> VectorEnv:
    return SyncVectorEnv([lambda: Countdown(10**6)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)


def test_a_function_that_takes_num_envs_is_asked_once() -> None:
    assert_same(played(from_module("tests.envs.test_vectors:counted", 5, False)), played(envs.wrap(Wander, num_envs=5)))
    with pytest.raises(LowgearError, match="too_few made 4 environments when it was asked for 5"):
        from_module("tests.envs.test_vectors:too_few", 5, False)


def test_a_vector_that_is_named_is_given_a_time_limit() -> None:
    env = from_module("tests.envs.test_vectors:endless", 3, False, max_episode_steps=4)
    env.reset([0, 1, 2])
    actions = np.zeros((3, 2), np.float32)
    cut = [env.step(actions) for _ in range(8)]
    assert [step.truncated.tolist() for step in cut] == [[k % 4 == 3] * 3 for k in range(8)]
    column = int(np.flatnonzero(cut[0].observation[0] == 1)[0])
    assert cut[3].last_observation[:, column].tolist() == [4, 4, 4]
    assert cut[3].observation[:, column].tolist() == [0, 0, 0]
    env.close()


def test_a_vector_that_resets_all_at_once_is_refused() -> None:
    class Forgetful(SyncVectorEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:  # noqa: ARG002
            return super().reset(seed=seed)

    env = envs.wrap(Forgetful([Wander] * 5, autoreset_mode=AutoresetMode.NEXT_STEP))
    with pytest.raises(
        LowgearError, match=r"Wander is a vector whose reset takes no options\['reset_mask'\].*SAME_STEP"
    ):
        played(env)


class Sleepy(Wander):
    """Does not return from its third step."""

    def step(self, action: Any) -> Any:
        self.taken = getattr(self, "taken", 0) + 1
        while self.taken == 3:
            time.sleep(0.01)
        return super().step(action)


@pytest.mark.parametrize("count", [2, 3])
def test_a_vector_that_hangs_is_told_of_and_ended(count: int) -> None:
    env = envs.wrap(lambda: SyncVectorEnv([Sleepy] * 2, autoreset_mode=AutoresetMode.DISABLED), num_envs=count)
    env.limit_s = 0.3
    env.reset(SEEDS[:count])
    actions = np.zeros((count, 1), np.float32)
    env.step(actions)
    env.step(actions)
    with pytest.raises(LowgearError, match=r"Sleepy did not return for 0.3 s at step 3 \(2 environments"):
        env.step(actions)


def test_a_vector_must_say_how_it_resets() -> None:
    made = vector(AutoresetMode.SAME_STEP)
    del made.metadata["autoreset_mode"]
    with pytest.raises(LowgearError, match=r"set metadata\['autoreset_mode'\]"):
        envs.wrap(made)


def test_a_pool_of_envpool_is_refused() -> None:
    with pytest.raises(LowgearError, match=r"pool of EnvPool.*envpool:ID"):
        envs.wrap(envpool.make_gymnasium("Pendulum-v1", num_envs=2))


def test_a_vectors_names_and_time_limit_are_its_environments() -> None:
    made = SyncVectorEnv([lambda: gymnasium.wrappers.TimeLimit(Wander(), 3)] * 2)
    spec = envs.wrap(made).spec
    assert (spec.observation_names, spec.action_names) == (("place", "steps left"), ("push",))
    assert (spec.name, spec.max_episode_steps) == ("Wander", 3)
