"""Relabelling by hand on a small ring that has wrapped around, and a host's rule against the device's."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.envs.goals import Distance
from lowgear.learning import hindsight, replay, rng
from lowgear.learning.hindsight import Goals, Relabelling
from lowgear.learning.replay import Columns, PickSteps, Replay, ReplaySettings
from lowgear.learning.transitions import Transitions
from tests.fixtures.goals import Host

# An observation is what is seen, what is achieved, what is desired: a number each.
COLUMNS = Columns(obs_dim=3, act_dim=1)
CAPACITY, CHUNK, STEPS = 12, 4, 20
SETTINGS = ReplaySettings(COLUMNS, gear_count=2, longest_pick=3, master_capacity=100, track_episodes=True)
GOALS = Goals(achieved=(1, 2), desired=(2, 3), rule=Distance(1.0), share=0.8, shift=0.0, ends=False)
ENDS = GOALS._replace(ends=True)
NEVER, LAST = 0.9, float(np.nextafter(np.float32(0.8), np.float32(0)))  # left as it is; the largest that relabels

# The steps of the first agent, of which the ring still holds those from time 8 on: row 8 to 11, then row 0 to 7.
#   0-4    gone
#   5-9    begun in rows that are overwritten, ended by a time limit
#   10-14  around the ring's end, ended for real
#   15     of one step, ended by a time limit
#   16-19  still open
# A step achieves its own time, but for the open episode: that achieves 50, 60, 70, 60, and wants 60.5. Picks hold 10 to
# 12, 13 and 14, 15, 16, and 17 to 19.
ENDED = (4, 9, 14, 15)
ACHIEVED = np.array([*range(16), 50, 60, 70, 60], np.float32)
AGES = (1, 2, 3, 1, 2, 1, 2, 3, 1, 2, 1, 2, 3, 1, 2, 1, 1, 1, 2, 3)
CLOSED = (2, 4, 7, 9, 12, 14, 15, 16, 19)


def history(ended=ENDED, offset=0.0) -> np.ndarray:
    rows = np.zeros((STEPS, COLUMNS.width), np.float32)
    times = np.arange(STEPS)
    rows[:, 0], rows[:, 3] = times, times + 1  # seen, before and after
    rows[1:, 1], rows[:, 4] = ACHIEVED[:-1] + offset, ACHIEVED + offset
    goal = np.where(times < 16, 1000 + np.searchsorted(ended, times), 60.5)
    rows[:, 2] = rows[:, 5] = goal
    rows[:, COLUMNS.reward] = 0.25 * times  # as no rule would pay
    rows[:, COLUMNS.alive] = times != 14
    rows[:, COLUMNS.age] = AGES
    rows[list(CLOSED), COLUMNS.closed] = 1
    rows[list(ended), COLUMNS.ended] = 1
    return rows


def fill(rows: np.ndarray) -> Replay:
    """Agents' histories (P, steps, width), written chunk by chunk."""
    insert = jax.jit(partial(replay.insert, settings=SETTINGS))
    ring = replay.init(len(rows), CAPACITY, SETTINGS)
    for begin in range(0, rows.shape[1], CHUNK):
        ring = insert(ring, rows[:, begin : begin + CHUNK], jnp.ones(len(rows), bool))
    return ring


AGENTS = Replay(0, 0, 0, None)  # where the agents stand, for vmap


def one(ring: Replay, agent: int) -> Replay:
    return Replay(*jax.tree.map(lambda x: x[agent], (ring.rows, ring.samples, ring.episodes)), ring.written)


@pytest.fixture(scope="module")
def rings() -> Replay:
    """The second agent's episodes end elsewhere, and it achieves 100 more."""
    return fill(np.stack([history(), history((3, 11, 18), 100.0)]))


@pytest.fixture(scope="module")
def ring(rings) -> Replay:
    return one(rings, 0)


def batch(*pairs: tuple[int, float]) -> tuple[jax.Array, jax.Array]:
    """Rows and uniforms of (time, uniform)."""
    times, uniforms = zip(*pairs, strict=True)
    return jnp.array([time % CAPACITY for time in times], jnp.int32), jnp.array(uniforms, jnp.float32)


class Steps(NamedTuple):
    """What steps pay under their new goals."""

    reward: jax.Array
    alive: jax.Array


def steps(ring, row, uniform, goals, settings) -> tuple[jax.Array, Steps]:
    """The goals (B, d) that steps ask for, and what they pay."""
    new = hindsight.sample_goals(ring, row, uniform, goals, settings, of_picks=False)
    discount = jnp.float32(0.5)
    lived = replay.transitions(ring.rows, row, discount, settings.columns)
    found = hindsight.relabel(lived, new, discount, goals)
    return found.observation[:, slice(*goals.desired)], Steps(found.reward, found.discount / discount)


def picks(ring, last, uniform, goals, settings) -> tuple[jax.Array, PickSteps]:
    """The goals (B, d) that picks ask for, and what their steps pay."""
    new = hindsight.sample_goals(ring, last, uniform, goals, settings, of_picks=True)
    lived = replay.transitions(ring.rows, last, jnp.float32(1), settings.columns)
    asked = hindsight.replace_goals(lived, new, goals).observation[:, slice(*goals.desired)]
    return asked, hindsight.relabel_picks(ring.rows, last, new, goals, settings)


def relabel(ring, pairs, goals=GOALS, of=steps):
    return jax.jit(partial(of, goals=goals, settings=SETTINGS))(ring, *batch(*pairs))


@pytest.mark.parametrize(
    ("time", "ahead"),
    [
        (8, (8, 9)),  # of an episode that began in rows that are gone: to its end
        (9, (9,)),
        (10, (10, 11, 12, 13, 14)),  # around the ring's end
        (11, (11, 12, 13, 14)),
        (12, (12, 13, 14)),
        (14, (14,)),  # never from the next episode
        (15, (15,)),
        (16, (16, 17, 18, 19)),  # an open one: to the newest row, and not to the oldest, which comes after it
        (18, (18, 19)),
        (19, (19,)),
    ],
)
def test_goals_come_from_the_same_episode_at_the_step_or_later(ring, time, ahead) -> None:
    grid = np.arange(2**12, dtype=np.float32) / 2**12
    goal, _ = relabel(ring, [(time, uniform) for uniform in grid])
    changed = np.asarray(goal[:, 0] != history()[time, 2])
    np.testing.assert_array_equal(changed, grid < 0.8)
    # In order of uniform: the first possible step, each other with an equal share, the last possible.
    place = np.minimum((grid[changed] / 0.8 * len(ahead)).astype(int), len(ahead) - 1)
    np.testing.assert_array_equal(goal[changed, 0], ACHIEVED[np.array(ahead)[place]])
    edges, _ = relabel(ring, [(time, 0.0), (time, LAST)])
    np.testing.assert_array_equal(edges[:, 0], ACHIEVED[[ahead[0], ahead[-1]]])


def test_every_row_of_every_chance_stays_within_its_episode(rings) -> None:
    for agent, (ended, offset) in enumerate(((ENDED, 0.0), ((3, 11, 18), 100.0))):
        for time in range(STEPS - CAPACITY, STEPS):
            end = next((t for t in ended if t >= time), STEPS - 1)
            goal, _ = relabel(one(rings, agent), [(time, uniform) for uniform in np.linspace(0, LAST, 64)])
            wanted = ACHIEVED[time : end + 1] + offset
            assert set(np.asarray(goal[:, 0])) == set(wanted), f"agent {agent}, step {time}"


def test_steps_by_hand(ring) -> None:
    # Step 10 gets 10, 11 (just within reach) and 12 (beyond it), and 16 what it achieved itself, and later.
    pairs = [(10, 0.0), (10, 0.17), (10, 0.33), (12, LAST), (14, 0.4), (9, 0.0), (16, 0.0), (16, 0.41), (16, 0.3)]
    goal, paid = relabel(ring, pairs)
    np.testing.assert_array_equal(goal[:, 0], [10, 11, 12, 14, 14, 9, 50, 70, 60])
    np.testing.assert_array_equal(paid.reward, [0, 0, -1, -1, 0, 0, 0, -1, -1])
    np.testing.assert_array_equal(paid.alive, [1, 1, 1, 1, 0, 1, 1, 1, 1])  # as lived: 14 was an end
    same, ends = relabel(ring, pairs, ENDS)
    np.testing.assert_array_equal(same, goal)
    np.testing.assert_array_equal(ends.reward, paid.reward)
    np.testing.assert_array_equal(ends.alive, [0, 0, 1, 1, 0, 0, 0, 1, 1])  # a success is an end


@pytest.mark.parametrize("goals", [GOALS, ENDS])
def test_steps_that_are_left_alone_are_as_they_were_stored(ring, goals) -> None:
    times = range(STEPS - CAPACITY, STEPS)
    for shift in (0.0, 0.5):
        goal, paid = relabel(ring, [(time, NEVER) for time in times], goals._replace(shift=shift))
        np.testing.assert_array_equal(goal[:, 0], history()[times, 2])
        np.testing.assert_array_equal(paid.reward, 0.25 * np.array(times) + shift)
        np.testing.assert_array_equal(paid.alive, [time != 14 for time in times])


def test_a_shift_is_added_to_every_reward(ring) -> None:
    pairs = [(10, 0.0), (10, LAST), (8, NEVER)]
    _, paid = relabel(ring, pairs, ENDS._replace(shift=1.0))
    np.testing.assert_array_equal(paid.reward, [1, 0, 3])
    np.testing.assert_array_equal(paid.alive, [0, 1, 1])  # what is reached does not depend on it
    _, paid = relabel(ring, [(12, 0.0), (12, NEVER)], GOALS._replace(shift=1.0), picks)
    np.testing.assert_array_equal(paid.reward, [[0, 1, 1], [3.5, 3.75, 4.0]])


PICKS = [
    (12, 0.0),
    (12, 0.3),
    (12, LAST),
    (9, 0.0),
    (9, NEVER),
    (15, 0.0),
    (16, 0.3),
    (19, 0.0),
    (14, 0.5),
    (19, NEVER),
]
WANTED = [12, 13, 14, 9, 1001, 15, 60, 60, 14, 60.5]


def test_picks_by_hand(ring) -> None:
    """Each with a goal from its last step on, or left alone."""
    goal, paid = relabel(ring, PICKS, of=picks)
    np.testing.assert_array_equal(goal[:, 0], WANTED)
    taken = np.arange(3) < np.array([3, 3, 3, 2, 2, 1, 1, 3, 2, 3])[:, None]
    np.testing.assert_array_equal(paid.taken, taken)
    by_hand = [[-1, 0, 0], [-1, -1, 0], [-1, -1, -1], [0, 0], [2, 2.25], [0], [-1], [0, -1, 0], [0, 0]]
    rewards = [*by_hand, [4.25, 4.5, 4.75]]
    np.testing.assert_array_equal(np.asarray(paid.reward)[taken], np.concatenate(rewards))
    np.testing.assert_array_equal(paid.alive, [1, 1, 1, 1, 1, 1, 1, 1, 0, 1])


def test_a_pick_that_reaches_its_new_goal_ends_there(ring) -> None:
    goal, paid = relabel(ring, PICKS, ENDS, picks)
    np.testing.assert_array_equal(goal[:, 0], WANTED)
    # 17 to 19 is at its goal, leaves it and comes back: the first time counts. With no new goal it goes on, even at
    # its own. The step after 16 is at the new goal of 16, but it belongs to another pick.
    taken = np.arange(3) < np.array([2, 3, 3, 1, 2, 1, 1, 1, 1, 3])[:, None]
    np.testing.assert_array_equal(paid.taken, taken)
    np.testing.assert_array_equal(paid.alive, [0, 0, 1, 0, 1, 0, 1, 0, 0, 1])


def test_a_pick_that_really_ended_and_is_left_alone_stays_ended(ring) -> None:
    for goals in (GOALS, ENDS):
        goal, paid = relabel(ring, [(14, NEVER), (12, NEVER)], goals, picks)
        np.testing.assert_array_equal(goal[:, 0], [1002, 1002])
        np.testing.assert_array_equal(paid.taken, [[True, True, False], [True, True, True]])
        np.testing.assert_array_equal(paid.alive, [0, 1])


@pytest.mark.parametrize(("discount", "reward", "held"), [(1.0, -9, 3), (0.5, -6, 1.75)])
def test_the_whole_sum_of_a_pick_is_that_of_its_new_goal(ring, discount, reward, held) -> None:
    goals = GOALS._replace(rule=Distance(1.0, sparse=False))
    last, uniform = batch((12, LAST), (12, NEVER))  # for 14: 4, 3 and 2 away
    _, paid = picks(ring, last, uniform, goals, SETTINGS)
    found = replay.picks(ring.rows, last, paid, jnp.float32(discount), SETTINGS)
    own = 2.5 + 2.75 * discount + 3 * discount**2
    np.testing.assert_allclose(found.transitions.reward, [reward, own], rtol=1e-6)
    np.testing.assert_allclose(found.discounted_steps, [held, held])
    np.testing.assert_array_equal(found.steps, [3, 3])
    np.testing.assert_array_equal(found.transitions.discount, [1, 1])
    np.testing.assert_array_equal(found.transitions.observation[:, 0], [10, 10])
    np.testing.assert_array_equal(found.transitions.next_observation[:, 0], [13, 13])


def test_steps_after_a_success_are_neither_paid_nor_counted(ring) -> None:
    last, uniform = batch((12, 0.0), (19, 0.0))
    _, paid = picks(ring, last, uniform, ENDS._replace(shift=1.0), SETTINGS)
    found = replay.picks(ring.rows, last, paid, jnp.float32(0.5), SETTINGS)
    np.testing.assert_array_equal(found.transitions.reward, [0 + 0.5 * 1, 1])
    np.testing.assert_array_equal(found.discounted_steps, [1.5, 1])
    np.testing.assert_array_equal(found.steps, [2, 1])
    np.testing.assert_array_equal(found.transitions.discount, [0, 0])


def test_picks_as_they_were_lived(ring) -> None:
    last, _ = batch((12, 0.0), (14, 0.0), (15, 0.0))
    lived = replay.steps_of_picks(ring.rows, last, SETTINGS)
    where, within = replay.rows_of_picks(ring.rows, last, SETTINGS)
    np.testing.assert_array_equal(where[:, 0], [10, 1, 3])
    np.testing.assert_array_equal(where[0], [10, 11, 0])
    np.testing.assert_array_equal(within.sum(axis=1), [3, 2, 1])
    np.testing.assert_array_equal(lived.taken, within)
    np.testing.assert_array_equal(np.asarray(lived.reward)[np.asarray(within)], [2.5, 2.75, 3, 3.25, 3.5, 3.75])
    np.testing.assert_array_equal(lived.alive, [1, 0, 1])


@pytest.mark.parametrize("of", [steps, picks])
def test_environments_of_one_agent_are_relabelled_each_by_itself(rings, of) -> None:
    """The two agents' rings as those of one agent's two environments: the same goals, ring by ring."""
    joined = one(replay.by_agent(rings, 2), 0)
    both = SETTINGS._replace(environments=2)
    uniform = jnp.tile(jnp.linspace(0, 0.99, 16, dtype=jnp.float32), CAPACITY)
    times = [time for time in range(8, 20) if time in CLOSED or of is steps]
    row = jnp.asarray(np.resize(np.repeat(times, 16), 16 * CAPACITY) % CAPACITY, jnp.int32)
    for environment in range(2):
        alone = of(one(rings, environment), row, uniform, ENDS, SETTINGS)
        found = of(joined, row + environment * CAPACITY, uniform, ENDS, both)
        jax.tree.map(np.testing.assert_array_equal, found, alone)


@pytest.mark.parametrize("share", [0.8, 0.25, 1.0])
def test_the_share_of_a_large_batch_that_is_relabelled(ring, share) -> None:
    count = 200_000
    uniform = rng.uniform(jnp.uint32(3), rng.stream(rng.GOALS, 0), jnp.int32(7), count)
    row = jnp.full(count, 10, jnp.int32)
    goal, _ = jax.jit(partial(steps, goals=GOALS._replace(share=share), settings=SETTINGS))(ring, row, uniform)
    found, counts = np.unique(goal, return_counts=True)
    shares = dict(zip(found.tolist(), counts / count, strict=True))
    assert shares.pop(1002.0, 0.0) == pytest.approx(1 - share, abs=0.005)
    assert shares == pytest.approx({float(t): share / 5 for t in range(10, 15)}, abs=0.005)


def test_only_the_desired_goal_is_asked_anew() -> None:
    observation = jnp.arange(10.0).reshape(2, 5)
    lived = Transitions(observation, jnp.zeros((2, 1)), jnp.zeros(2), jnp.ones(2), observation + 10)

    def asking(goal, desired, changed=(True, True)):
        new = Relabelling(jnp.array(changed), jnp.array(goal), None)
        return hindsight.replace_goals(lived, new, GOALS._replace(desired=desired))

    two = asking([[-1.0, -2], [-3, -4]], (1, 3))
    np.testing.assert_array_equal(two.observation, [[0, -1, -2, 3, 4], [5, -3, -4, 8, 9]])
    np.testing.assert_array_equal(two.next_observation, [[10, -1, -2, 13, 14], [15, -3, -4, 18, 19]])
    last = asking([[-1.0], [-3]], (4, 5), (True, False))
    np.testing.assert_array_equal(last.observation, [[0, 1, 2, 3, -1], [5, 6, 7, 8, 9]])
    np.testing.assert_array_equal(last.next_observation, [[10, 11, 12, 13, -1], [15, 16, 17, 18, 19]])


class Paid(Host):
    """The same goals, paid 1 instead of 0 and 0 instead of -1, as mazes do."""

    def reward(self, achieved, desired):
        return super().reward(achieved, desired) + np.float32(1)


@pytest.mark.parametrize("of", [steps, picks])
def test_a_goal_is_reached_where_it_is_paid_for_whatever_the_scale(rings, of) -> None:
    uniform = jnp.linspace(0, 0.79, 64)
    rows = jnp.asarray([t % CAPACITY for t in CLOSED if t >= 8] * 64)[:64]

    def alive(rule):
        return of(one(rings, 0), rows, uniform, ENDS._replace(rule=rule), SETTINGS)[1].alive

    assert 0 < alive(Host()).sum() < 64
    np.testing.assert_array_equal(alive(Paid()), alive(Host()))


@pytest.mark.parametrize("of", [steps, picks])
@pytest.mark.parametrize("ends", [False, True])
def test_a_host_is_asked_once_for_all_and_tells_the_same(rings, of, ends) -> None:
    updates, size = 5, 64
    rng = np.random.default_rng(0)
    uniform = jnp.asarray(rng.random((updates, 2, size), np.float32))
    times = rng.choice([t for t in CLOSED if t >= 8] if of is picks else range(8, 20), uniform.shape)
    rows = jnp.asarray(times % CAPACITY, jnp.int32)

    def drawn(rule):
        relabel = partial(of, goals=ENDS._replace(rule=rule, ends=ends, shift=0.25), settings=SETTINGS)
        agents = jax.vmap(relabel, (AGENTS, 0, 0))
        return jax.device_get(jax.jit(jax.vmap(agents, (None, 0, 0)))(rings, rows, uniform))

    host = Host()
    goal, paid = drawn(host)
    jax.tree.map(np.testing.assert_array_equal, (goal, paid), drawn(Distance(1.0)))
    each = (3, 1) if of is picks else (1,)
    both = (2,) if ends else ()  # what was achieved, and the goal itself
    assert host.shapes == [(updates, 2, *both, size, *each)]
    if isinstance(paid, PickSteps):
        assert paid.reward.shape == (updates, 2, size, 3)
    # Each agent's goals are its own: the second achieves 100 more.
    changed = np.asarray(uniform) < 0.8
    assert (goal[:, 0][changed[:, 0]] < 100).all()
    assert (goal[:, 1][changed[:, 1]] >= 100).all()


def test_nothing_is_promoted_silently(ring) -> None:
    row, uniform = batch((12, 0.0), (9, NEVER))
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        for of in (steps, picks):
            goal, paid = jax.eval_shape(partial(of, goals=ENDS, settings=SETTINGS), ring, row, uniform)
            assert {x.dtype for x in (goal, paid.reward, paid.alive)} == {jnp.dtype("float32")}
