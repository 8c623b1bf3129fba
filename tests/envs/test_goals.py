"""What goals pay: by hand, as EnvPool pays it, and as a Gymnasium environment says when it is asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs.goals import Asked, Distance
from tests.fixtures.probes import Meadow

# Distances of 0, 5 (the threshold itself), a bit less, a bit more, and 13.
ACHIEVED = np.array([[1, 1], [3, 4], [3, 3.99], [3, 4.01], [5, 12]], np.float32)
DESIRED = np.array([[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]], np.float32)


@pytest.mark.parametrize("numbers", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
def test_distance_by_hand(numbers) -> None:
    achieved, desired = numbers(ACHIEVED), numbers(DESIRED)
    sparse, dense = Distance(5.0), Distance(5.0, sparse=False)
    np.testing.assert_array_equal(sparse.reward(achieved, desired), [0, 0, 0, -1, -1])
    np.testing.assert_allclose(dense.reward(achieved, desired), [0, -5, -4.992, -5.008, -13], rtol=1e-4)
    for rule in (sparse, dense):
        assert rule.on_device
        np.testing.assert_array_equal(rule.reached(achieved, desired), [True, True, True, False, False])
        assert rule.reward(achieved, desired).dtype == np.float32
        # Other axes are kept, and one goal may be asked of many steps.
        shape = rule.reward(achieved.reshape(5, 1, 2), desired.reshape(1, 5, 2)).shape
        assert shape == rule.reached(achieved.reshape(5, 1, 2), desired.reshape(1, 5, 2)).shape == (5, 5)
    assert (sparse.bounds, dense.bounds) == ((-1, 0), None)


def test_distance_is_the_same_on_the_device() -> None:
    rng = np.random.default_rng(0)
    achieved, desired = rng.normal(size=(2, 4, 500, 3)).astype(np.float32)
    for rule in (Distance(1.5), Distance(1.5, sparse=False)):
        clear = np.abs(np.linalg.norm(achieved - desired, axis=-1) - 1.5) > 1e-5
        for ask in (rule.reward, rule.reached):
            np.testing.assert_allclose(jax.jit(ask)(achieved, desired)[clear], ask(achieved, desired)[clear], rtol=1e-5)


def played(name: str, num_envs: int, steps: int):
    """Rule, achieved, desired, reward and success of random steps."""
    env = envs.make(find(f"envpool:{name}"), num_envs)
    env.reset(range(num_envs))
    rng = np.random.default_rng(0)
    found = []
    for _ in range(steps):
        # Held: a Fetch that trembles stays where it is.
        action = rng.uniform(-1, 1, (num_envs, env.spec.act_dim)).astype(np.float32)
        for _ in range(5):
            step = env.step(action)
            goals = (
                step.last_observation[:, slice(*where)] for where in (env.spec.achieved_goal, env.spec.desired_goal)
            )
            found.append((*goals, step.reward, step.success))
    env.close()
    return env.goal_rule, *(np.concatenate(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("name", "sparse"), [("FetchReach-v1", True), ("FetchPush-v1", True), ("FetchReachDense-v1", False)]
)
def test_distance_is_what_envpool_pays(name: str, sparse: bool) -> None:
    rule, achieved, desired, reward, success = played(name, 48, 12)
    assert rule == Distance(0.05, sparse)
    # EnvPool computes in float64 and we see float32: so near the threshold either may be right.
    distance = np.linalg.norm(achieved.astype(np.float64) - desired, axis=-1)
    clear = np.abs(distance - 0.05) > 1e-6
    assert clear.mean() > 0.99
    np.testing.assert_allclose(rule.reward(achieved, desired)[clear], reward[clear], atol=1e-6)
    np.testing.assert_array_equal(rule.reached(achieved, desired)[clear], success[clear])
    assert {False, True} == set(success.tolist())


@pytest.mark.parametrize(
    "name", ["HandReachDense-v0", "HandManipulateBlockDense-v1", "HandManipulatePenRotateDense-v1"]
)
def test_a_rule_that_is_offered_is_the_environments_own(name: str) -> None:
    """A hand that turns things is judged by angles too, which no distance between goals tells."""
    rule, achieved, desired, reward, _ = played(name, 16, 4)
    assert rule is not None or "Manipulate" in name
    if rule is not None:
        np.testing.assert_allclose(rule.reward(achieved, desired), reward, atol=1e-5)


def test_who_has_a_rule() -> None:
    assert isinstance(envs.wrap(Meadow()).goal_rule, Asked)
    assert isinstance(envs.wrap(Meadow, num_envs=3).goal_rule, Asked)
    vector = SyncVectorEnv([Meadow, Meadow], autoreset_mode=AutoresetMode.SAME_STEP)
    assert isinstance(envs.wrap(vector).goal_rule, Asked)
    assert envs.make(find("walker-stand"), 1).goal_rule is None
    assert envs.make(find("gym:Pendulum-v1"), 1).goal_rule is None
    assert envs.make(find("dmc:walker-stand"), 1).goal_rule is None
    assert envs.make(find("envpool:PointMaze_UMaze-v3"), 1).goal_rule is None  # it has goals, and does not say how near

    class Mute(Meadow):
        compute_reward = property()

    assert envs.wrap(Mute()).goal_rule is None


class Calls(Meadow):
    """Counts what it is asked, and may take single pairs only."""

    def __init__(self, single=False) -> None:
        self.asked, self.single = [], single

    def compute_reward(self, achieved, desired, info):
        self.asked.append((np.shape(achieved), len(info) if isinstance(info, list) else info))
        if self.single and np.linalg.norm(achieved - desired) > self.near:  # no axis: one number for all
            return -1.0
        return 0.0 if self.single else super().compute_reward(achieved, desired, info)


def pairs(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Half of them near each other."""
    rng = np.random.default_rng(1)
    achieved = rng.uniform(-1, 1, (*shape, 2)).astype(np.float32)
    moved = rng.uniform(-0.12, 0.12, achieved.shape).astype(np.float32)
    return achieved, achieved + moved


def test_many_pairs_are_one_question() -> None:
    env = Calls()
    rule = Asked("meadow", env)
    assert not rule.on_device
    assert rule.bounds is None
    achieved, desired = pairs(3, 50)
    reward = rule.reward(achieved, desired)
    assert (reward.shape, reward.dtype) == ((3, 50), np.float32)
    np.testing.assert_array_equal(reward, Distance(0.1).reward(achieved, desired))
    assert {-1.0, 0.0} == set(reward.ravel().tolist())
    assert env.asked == [((2, 2), 2), ((150, 2), 150)]  # whether it takes many, then all; an info for each
    rule.reward(achieved, desired)
    assert env.asked[2:] == [((150, 2), 150)]
    np.testing.assert_array_equal(rule.reached(achieved, desired), reward == 0)
    # One goal for many steps.
    np.testing.assert_array_equal(
        rule.reward(achieved, desired[:1, :1]), Distance(0.1).reward(achieved, desired[:1, :1])
    )


def test_an_environment_of_single_pairs_is_asked_one_by_one() -> None:
    env = Calls(single=True)
    achieved, desired = pairs(4, 5)
    reward = Asked("meadow", env).reward(achieved, desired)
    np.testing.assert_array_equal(reward, Distance(0.1).reward(achieved, desired))
    assert {-1.0, 0.0} == set(reward.ravel().tolist())
    assert (reward.shape, reward.dtype) == ((4, 5), np.float32)
    assert [asked for asked in env.asked if asked[0] == (2,)] == [((2,), {})] * 20


def test_an_environment_that_raises_is_named() -> None:
    class Broken(Meadow):
        def compute_reward(self, achieved, desired, info):  # noqa: ARG002
            return info["distance"]

    rule = envs.wrap(Broken()).goal_rule
    for ask in (rule.reward, rule.reached):
        with pytest.raises(LowgearError, match=r"Broken: compute_reward.*KeyError.*'distance'.*empty info") as caught:
            ask(*pairs(3))
        assert "\n" not in str(caught.value)
