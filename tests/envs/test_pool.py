"""EnvPool behind the protocol: the 16 tasks, seeds, ends, and arrays that stay the caller's."""

import envpool
import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find, published_tasks

# Plain EnvPool, the reference here, builds Gymnasium spaces from float64 bounds; the adapter builds none.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")


def random_actions(env: envs.BatchEnv, steps: int, seed: int = 0) -> np.ndarray:
    shape = (steps, env.num_envs, env.spec.act_dim)
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("name", list(published_tasks()))
def test_sizes_and_types_of_every_published_task(name: str) -> None:
    task = find(name)
    env = envs.make(task, 2)
    assert (env.spec.obs_dim, env.spec.act_dim) == (task.obs_dim, task.act_dim)
    assert sum(size for _, size in env.spec.layout) == task.obs_dim
    first = env.reset([1, 2])
    step = env.step(np.zeros((2, env.spec.act_dim), np.float32))
    for observation in (first, step.observation, step.last_observation):
        assert observation.shape == (2, task.obs_dim)
        assert observation.dtype == np.float32
    assert step.reward.dtype == np.float32
    assert step.reward.shape == step.terminated.shape == step.truncated.shape == (2,)
    assert step.terminated.dtype == step.truncated.dtype == np.bool_
    assert env.spec.has_success == (step.success is not None) == task.hindsight
    env.close()


def test_layouts_are_documented_in_order() -> None:
    walker = envs.make(find("walker-stand"), 1).spec
    assert walker.layout == (("orientations", 14), ("height", 1), ("velocity", 9))
    finger = envs.make(find("finger-spin"), 1).spec
    assert finger.layout == (
        ("position", 4),
        ("velocity", 3),
        ("touch", 2),
    )  # EnvPool's two extra keys are gone
    fish = envs.make(find("fish-swim"), 1).spec  # dm_control's order; EnvPool's has target last
    assert fish.layout == (("joint_angles", 7), ("upright", 1), ("target", 3), ("velocity", 13))
    push = envs.make(find("FetchPush-v1"), 1).spec
    assert push.layout == (("observation", 25), ("achieved_goal", 3), ("desired_goal", 3))
    assert (push.achieved_goal, push.desired_goal) == ((25, 28), (28, 31))
    assert envs.make(find("Swimmer-v3"), 1).spec.layout == (("", 8),)


def test_fields_land_where_the_layout_says() -> None:
    env = envs.make(find("FetchPush-v1"), 2)
    pool = envpool.make_gymnasium("FetchPush-v1", num_envs=2, seed=[5, 6])
    first = env.reset([5, 6])
    raw, _ = pool.reset()
    np.testing.assert_allclose(first[:, :25], raw["observation"], rtol=1e-6)
    np.testing.assert_allclose(first[:, 25:28], raw["achieved_goal"], rtol=1e-6)
    np.testing.assert_allclose(first[:, 28:31], raw["desired_goal"], rtol=1e-6)


def test_every_step_is_a_transition_of_envpool() -> None:
    """Against plain EnvPool with its auto-reset steps thrown out: the same episodes, number for number.

    Walker2d falls over at different times in different environments, so resets and steps are interleaved.
    """
    num_envs, steps = 4, 60
    env = envs.make(find("Walker2d-v3"), num_envs)
    observation = env.reset([7, 8, 9, 10])
    actions = random_actions(env, steps)
    ours = [[] for _ in range(num_envs)]
    for action in actions:
        step = env.step(action)
        for i in range(num_envs):
            ours[i].append((observation[i], step.reward[i], step.terminated[i], step.last_observation[i]))
        observation = step.observation
    ends = sum(bool(terminated) for rows in ours for _, _, terminated, _ in rows)
    assert ends >= 4
    for i, seed in enumerate([7, 8, 9, 10]):
        pool = envpool.make_gymnasium("Walker2d-v3", num_envs=1, seed=[seed])
        last, _ = pool.reset()
        for k, (before, reward, terminated, after) in enumerate(ours[i]):
            np.testing.assert_array_equal(before, last[0].astype(np.float32))
            raw, raw_reward, raw_terminated, _, _ = pool.step(actions[k, i : i + 1])
            np.testing.assert_array_equal(after, raw[0].astype(np.float32))
            assert (reward, terminated) == (raw_reward[0], raw_terminated[0])
            last = pool.step(actions[k, i : i + 1])[0] if terminated else raw  # the auto-reset step, thrown out


def test_time_limit_truncates_and_never_terminates() -> None:
    env = envs.make(find("FetchSlide-v1"), 3)
    env.reset([0, 1, 2])
    for k, action in enumerate(random_actions(env, 101)):
        step = env.step(action)
        ended = (k + 1) % 50 == 0
        assert step.truncated.tolist() == [ended] * 3
        assert not step.terminated.any()
        differs = (step.observation != step.last_observation).any(axis=1)
        assert differs.tolist() == [ended] * 3


def test_termination_is_no_truncation() -> None:
    env = envs.make(find("MountainCarContinuous-v0"), 2)
    observation = env.reset([0, 1])
    for _ in range(400):
        step = env.step(np.sign(observation[:, 1:2]))  # push along with the velocity: reaches the flag
        observation = step.observation
        if step.terminated.any():
            break
    assert step.terminated.any()
    assert not step.truncated[step.terminated].any()
    assert (step.reward[step.terminated] > 90).all()
    assert (step.last_observation[step.terminated, 0] >= 0.45).all()
    assert (step.observation[step.terminated, 0] < 0).all()  # the next episode starts in the valley


def test_an_environment_depends_on_its_own_seed_only() -> None:
    batch, alone = envs.make(find("Walker2d-v3"), 3), envs.make(find("Walker2d-v3"), 1)
    first, first_alone = batch.reset([11, 12, 13]), alone.reset([12])
    np.testing.assert_array_equal(first[1], first_alone[0])
    for action in random_actions(batch, 80):
        step, step_alone = batch.step(action), alone.step(action[1:2])
        np.testing.assert_array_equal(step.observation[1], step_alone.observation[0])
        assert step.reward[1] == step_alone.reward[0]


def test_same_seed_equal_other_seed_different() -> None:
    env = envs.make(find("cartpole-swingup"), 2)
    first = env.reset([3, 4])
    assert (first[0] != first[1]).any()
    np.testing.assert_array_equal(env.reset([3, 4]), first)
    assert (env.reset([5, 4])[0] != first[0]).any()


def test_returned_arrays_are_the_callers() -> None:
    env = envs.make(find("MountainCarContinuous-v0"), 4)
    env.reset(range(4))
    actions = random_actions(env, 50)
    step = env.step(actions[0])
    kept = [array.copy() for array in step if array is not None]
    for action in actions[1:]:
        env.step(action)
    for array, copy in zip((array for array in step if array is not None), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_actions_are_scaled_to_the_bounds() -> None:
    """Pendulum's torque is in [-2, 2]: an action of 0.5 must do what EnvPool does with a torque of 1."""
    env = envs.make(find("envpool:Pendulum-v1"), 1)
    pool = envpool.make_gymnasium("Pendulum-v1", num_envs=1, seed=[2])
    env.reset([2])
    pool.reset()
    for action in (0.5, -1.0, 1.0):
        step = env.step(np.full((1, 1), action, np.float32))
        raw, reward, *_ = pool.step(np.full((1, 1), 2 * action, np.float32))
        np.testing.assert_allclose(step.last_observation, raw, rtol=1e-6)
        np.testing.assert_allclose(step.reward, reward, rtol=1e-6)


def test_success_is_reported_at_the_step_it_happens() -> None:
    """A Fetch task's reward is 0 on success and -1 otherwise, so the two must tell the same story."""
    env = envs.make(find("envpool:FetchReach-v1"), 4)
    observation = env.reset(range(4))
    seen = 0
    for _ in range(100):
        toward = np.clip(10 * (observation[:, 13:16] - observation[:, 10:13]), -1, 1)
        step = env.step(np.concatenate([toward, np.zeros((4, 1))], axis=1, dtype=np.float32))
        assert step.success is not None
        np.testing.assert_array_equal(step.success, step.reward == 0)
        distance = np.linalg.norm(step.last_observation[:, 10:13] - step.last_observation[:, 13:16], axis=1)
        np.testing.assert_array_equal(step.success, distance < 0.05)
        seen += int(step.success.sum())
        observation = step.observation
    assert seen > 100
