"""What learners are fed: rows of their own list, relabelled and normalised, by numbers of their own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.envs.goals import Distance
from lowgear.learning.hindsight import Goals
from lowgear.learning.method import Method, sample_gear_batch, sample_picks
from lowgear.learning.normalisation import Normaliser
from lowgear.learning.replay import Columns, Replay, ReplaySettings, by_agent
from tests.fixtures.goals import Host
from tests.fixtures.methods import CAPACITY, METHOD, PERIOD, buffer_of, method, one_agent, steps

AGENT = one_agent(master_discount=0.5)._replace(discount=jnp.float32(0.9))
sampled_steps = jax.jit(sample_gear_batch, static_argnames=("number", "method"))
sampled_picks = jax.jit(sample_picks, static_argnames="method")


def alone(rows: np.ndarray, method: Method, shared: bool = True) -> Replay:
    """One agent's buffer, without an axis for it."""
    joined = by_agent(buffer_of(rows[None], jnp.array([shared]), method.replay, len(rows), len(rows)), 1)
    return Replay(*jax.tree.map(lambda x: x[0], (joined.rows, joined.samples, joined.episodes)), joined.written)


LIVED = steps(np.random.default_rng(0), CAPACITY)
LARGE = method(batch=64, master_batch=64)


@pytest.mark.parametrize("shared", [True, False])
def test_a_gear_is_fed_rows_of_its_list_as_they_were_lived(shared: bool) -> None:
    columns, buffer = METHOD.replay.columns, alone(LIVED, LARGE, shared)
    for gear in range(2):
        batch, noise = sampled_steps(gear, buffer, AGENT, None, jnp.int32(3), LARGE)
        assert noise.shape == (64 * 2,)
        where = [int(np.flatnonzero((LIVED[:, columns.observation] == row).all(axis=1))[0]) for row in batch[0]]
        wanted = range(CAPACITY) if shared else np.flatnonzero(LIVED[:, columns.choice] == gear)
        assert set(where) <= set(wanted)
        assert len(set(where)) > 0.7 * len(wanted)  # 64 draws of at most 24 rows
        for found, column in zip(batch, ("observation", "action", "reward", "alive", "next_observation"), strict=True):
            scale = 0.9 if column == "alive" else 1
            np.testing.assert_allclose(found, scale * LIVED[where][:, getattr(columns, column)], rtol=1e-6)


def test_batches_follow_seed_time_and_learner_alone() -> None:
    buffer = alone(LIVED, LARGE)
    feed = partial(sampled_steps, buffer=buffer, normaliser=None, method=LARGE)
    first = feed(0, agent=AGENT, time=jnp.int32(3))
    jax.tree.map(np.testing.assert_array_equal, feed(0, agent=AGENT, time=jnp.int32(3)), first)
    others = [
        feed(1, agent=AGENT, time=jnp.int32(3)),
        feed(0, agent=AGENT, time=jnp.int32(4)),
        feed(0, agent=AGENT._replace(seed=jnp.uint32(2)), time=jnp.int32(3)),
    ]
    for other in others:
        assert not np.array_equal(other.transitions.reward, first.transitions.reward)
        assert not np.array_equal(other.noise, first.noise)


@pytest.mark.parametrize(("by_step", "held"), [(False, 3.0), (True, 1.75)])
def test_the_master_is_fed_whole_picks(by_step: bool, held: float) -> None:
    columns, method = METHOD.replay.columns, LARGE._replace(discount_by_step=by_step)
    found = sampled_picks(alone(LIVED, method), AGENT, None, jnp.int32(3), method)
    picks = LIVED.reshape(-1, PERIOD, columns.width)
    weight = 0.5 ** np.arange(PERIOD) if by_step else np.ones(PERIOD)
    where = [int(np.argmin(np.abs(picks[:, 0, 0] - first))) for first in found.transitions.observation[:, 0]]
    assert set(where) == set(range(len(picks)))
    np.testing.assert_array_equal(found.transitions.observation, picks[where, 0][:, columns.observation])
    np.testing.assert_array_equal(found.transitions.next_observation, picks[where, -1][:, columns.next_observation])
    np.testing.assert_array_equal(found.transitions.choice, picks[where, 0, columns.choice])
    np.testing.assert_allclose(found.transitions.reward, (picks[where, :, columns.reward] * weight).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(found.transitions.discount, 1)  # it is paid, and discounted, later
    np.testing.assert_allclose(found.discounted_steps, held)
    np.testing.assert_array_equal(found.steps, PERIOD)


def test_what_is_fed_is_normalised() -> None:
    normaliser = Normaliser(jnp.array([1.0, -2.0]), jnp.array([0.5, 4.0]))
    buffer = alone(LIVED, LARGE)
    for feed in (
        lambda by: sampled_steps(0, buffer, AGENT, by, jnp.int32(3), LARGE).transitions,
        lambda by: sampled_picks(buffer, AGENT, by, jnp.int32(3), LARGE).transitions,
    ):
        raw, found = feed(None), feed(normaliser)
        for name in ("observation", "next_observation"):
            by_hand = (np.asarray(getattr(raw, name)) - normaliser.mean) / normaliser.std
            np.testing.assert_allclose(getattr(found, name), by_hand, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found.reward, raw.reward)


def test_gears_are_fed_rewards_on_the_agents_scale_and_the_master_the_tasks_own() -> None:
    buffer, agent, scaled = (
        alone(LIVED, LARGE),
        AGENT._replace(reward_scale=jnp.float32(4)),
        LARGE._replace(scale_rewards=True),
    )
    raw, found = (sampled_steps(0, buffer, agent, None, jnp.int32(3), each).transitions for each in (LARGE, scaled))
    np.testing.assert_allclose(found.reward, np.asarray(raw.reward) / 4, rtol=1e-6)
    np.testing.assert_array_equal(found.observation, raw.observation)
    raw, found = (sampled_picks(buffer, agent, None, jnp.int32(3), each).transitions for each in (LARGE, scaled))
    np.testing.assert_array_equal(found.reward, raw.reward)


# One pick of three steps and the first step of another, all of one open episode. An observation is what is seen, what
# is achieved, what is desired. Steps achieve 4, 6, 8 and 6, and want 9; they were paid 100 each.
COLUMNS = Columns(obs_dim=3, act_dim=1)
ACHIEVED = (4, 6, 8, 6)
ROWS = np.zeros((4, COLUMNS.width), np.float32)
ROWS[:, COLUMNS.observation] = [[1, 2, 9], [3, 4, 9], [5, 6, 9], [7, 8, 9]]
ROWS[:, COLUMNS.next_observation] = [[3, 4, 9], [5, 6, 9], [7, 8, 9], [9, 6, 9]]
ROWS[:, COLUMNS.reward], ROWS[:, COLUMNS.alive], ROWS[:, COLUMNS.age] = 100, 1, (1, 2, 3, 1)
ROWS[2, COLUMNS.closed] = 1


def relabelling(rule, ends: bool = True) -> Method:
    goals = Goals(achieved=(1, 2), desired=(2, 3), rule=rule, share=0.8, shift=0.0, ends=ends)
    settings = ReplaySettings(COLUMNS, 2, PERIOD, 1_000, track_episodes=True)
    return method(obs_dim=3, batch=64, master_batch=64, replay=settings, goals=goals, dial=True, discount_by_step=True)


@pytest.mark.parametrize("ends", [True, False])
def test_the_master_is_fed_goals_of_its_last_step_or_later_and_what_they_pay(ends: bool) -> None:
    by_goal = {  # the sum, each step worth half of the one before; the weight of the steps, their number, what follows
        9: (175, 1.75, 3, 1),  # its own: as it was lived
        8: (-1.5, 1.75, 3, 0 if ends else 1),  # there with its last step
        6: (-1, 1.5, 2, 0) if ends else (-1.25, 1.75, 3, 1),  # there after the second, and beyond after the third
    }
    method = relabelling(Distance(0.5), ends)
    found = sampled_picks(alone(ROWS, method), AGENT, None, jnp.int32(0), method)
    goals = np.asarray(found.transitions.observation[:, 2])
    assert set(goals) == set(by_goal)
    expected = np.array([by_goal[int(goal)] for goal in goals])
    np.testing.assert_allclose(found.transitions.reward, expected[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found.discounted_steps, expected[:, 1])
    np.testing.assert_array_equal(found.steps, expected[:, 2])
    np.testing.assert_array_equal(found.transitions.discount, expected[:, 3])
    np.testing.assert_array_equal(found.transitions.observation[:, :2], np.tile([1, 2], (64, 1)))
    np.testing.assert_array_equal(found.transitions.next_observation[:, :2], np.tile([7, 8], (64, 1)))
    np.testing.assert_array_equal(found.transitions.next_observation[:, 2], goals)


@pytest.mark.parametrize("ends", [True, False])
def test_a_gear_is_fed_goals_of_its_step_or_later_and_what_they_pay(ends: bool) -> None:
    method = relabelling(Distance(0.5), ends)
    batch, _ = sampled_steps(0, alone(ROWS, method), AGENT, None, jnp.int32(0), method)
    pairs = set()
    for i in range(64):
        step, goal = int(batch.observation[i, 0]) // 2, int(batch.observation[i, 2])
        pairs.add((step, goal))
        reached = goal == ACHIEVED[step]
        assert goal in (9, *ACHIEVED[step:])
        assert batch.reward[i] == (100 if goal == 9 else 0 if reached else -1)
        assert batch.discount[i] == pytest.approx(0 if ends and reached else 0.9)
        np.testing.assert_array_equal(batch.observation[i], [*ROWS[step, :2], goal])
        np.testing.assert_array_equal(batch.next_observation[i], [*ROWS[step, 3:5], goal])
    assert {(0, 4), (0, 9), (1, 8), (2, 8), (2, 6), (3, 6)} <= pairs


class Odd(Host):
    """Pays what no device could know."""

    def reward(self, achieved, desired):
        super().reward(achieved, desired)
        return (10 * achieved[..., 0] + desired[..., 0]).astype(np.float32)


def test_a_host_is_taken_at_its_word() -> None:
    method = relabelling(Odd(), ends=False)
    buffer = alone(ROWS, method)
    found = sampled_picks(buffer, AGENT, None, jnp.int32(0), method).transitions
    for reward, goal in zip(found.reward.tolist(), found.observation[:, 2].tolist(), strict=True):
        told = sum(0.5**k * (10 * ACHIEVED[k] + goal) for k in range(3))
        assert reward == pytest.approx(175 if goal == 9 else told, rel=1e-5)
    batch, _ = sampled_steps(1, buffer, AGENT, None, jnp.int32(0), method)
    for reward, (seen, _, goal) in zip(batch.reward.tolist(), batch.observation.tolist(), strict=True):
        assert reward == (100 if goal == 9 else 10 * ACHIEVED[int(seen) // 2] + goal)


def test_nothing_is_promoted_silently() -> None:
    method = relabelling(Distance(0.5))
    buffer = alone(ROWS, method)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        for feed in (partial(sample_gear_batch, 0), sample_picks):
            fed = jax.eval_shape(partial(feed, normaliser=None, method=method), buffer, AGENT, time=jnp.int32(0))
            kinds = {leaf.dtype for leaf in jax.tree.leaves(fed)}
            assert kinds <= {jnp.dtype("float32"), jnp.dtype("int32")}


def test_learners_are_numbered_named_and_counted() -> None:
    assert METHOD.learner_count == 3
    assert [METHOD.name(number) for number in range(3)] == ["gear0", "gear1", "master"]
    assert [METHOD.sampled_list(number) for number in range(3)] == [0, 1, 2]
    assert [METHOD.flops(number) for number in range(3)] == [
        *(learner.flops() for learner in METHOD.gear_learners),
        METHOD.master.flops(),
    ]
