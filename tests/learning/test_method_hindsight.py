"""Hindsight in the method: what learners are fed, and that agents and learners still never read each other."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.envs.goals import Asked, Distance
from lowgear.learning import hindsight, method, replay
from lowgear.learning.hindsight import Goals, Told
from lowgear.learning.method import Draw
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.training.parallel import Learner
from tests.learning import test_method as plain
from tests.learning.test_hindsight import Host
from tests.learning.test_method import agent, assert_close, equal, knobs, only

COLUMNS = Columns(obs_dim=3, act_dim=1)  # what is seen, what is achieved, what is desired
PERIOD, CHUNK, CAPACITY, UPDATES = 3, 12, 48, 40
ALL = (0, 1, 2)
GOALS = Goals(achieved=(1, 2), desired=(2, 3), rule=Distance(1.0), share=0.8, shift=0.0, ends=False)
METHOD = plain.METHOD._replace(
    obs_dim=3, replay=ReplaySettings(COLUMNS, 2, PERIOD, 1_000, hindsight=True), goals=GOALS._replace(ends=True)
)
WITHOUT = METHOD._replace(goals=None, replay=METHOD.replay._replace(hindsight=False))
learn = jax.jit(method.learn, static_argnames=("which", "updates", "method"))
init = jax.jit(method.init, static_argnames="method")


def walk(rng: np.random.Generator, count: int, gear=None) -> np.ndarray:
    """Rows of one agent that walks about; episodes end here and there, some of them for real."""
    rows = np.zeros((count, COLUMNS.width), np.float32)
    age, at, goal = 0, 0.0, 5.0
    for row in rows:
        if age == 0:
            picked = int(rng.integers(2)) if gear is None else gear
        age += 1
        row[COLUMNS.observation] = rng.normal(), at, goal
        at += rng.normal()
        row[COLUMNS.next_observation] = rng.normal(), at, goal
        row[COLUMNS.action] = rng.uniform(-1, 1)
        row[COLUMNS.reward] = -float(abs(at - goal) > 1)
        ended = rng.random() < 0.15
        row[COLUMNS.alive] = not (ended and rng.random() < 0.5)
        row[COLUMNS.choice], row[COLUMNS.age] = picked, age
        row[COLUMNS.closed] = ended or age == PERIOD
        row[COLUMNS.ended] = ended
        age = 0 if row[COLUMNS.closed] else age
        if ended:
            at, goal = 0.0, float(rng.normal() * 5)
    return rows


def ring_of(rows: np.ndarray, shared: jax.Array, method=METHOD) -> replay.Replay:
    """Wraps around where there are more rows than the ring holds."""
    insert = jax.jit(partial(replay.insert, settings=method.replay))
    ring = replay.init(len(rows), CAPACITY, method.replay)
    for begin in range(0, rows.shape[1], CHUNK):
        ring = insert(ring, rows[:, begin : begin + CHUNK], shared)
    return ring


def run(ring, settings, learners=None, which=ALL, method=METHOD, time=0):
    learners = init(settings.seed, METHOD) if learners is None else learners
    mine = tuple(learners[number] for number in which)
    return learn(mine, ring, settings, jnp.int32(time), which=which, updates=UPDATES, method=method)


@pytest.fixture(scope="module")
def population():
    """Three agents of different seeds that lived different lives; the last has separate buffers."""
    settings = knobs([4, 5, 6], shared=jnp.array([True, True, False]))
    rng = np.random.default_rng(0)
    return ring_of(np.stack([walk(rng, CAPACITY + 2 * CHUNK) for _ in range(3)]), settings.shared), settings


@pytest.fixture(scope="module")
def together(population):
    return run(*population)


def test_every_learner_learns_and_says_so(population, together) -> None:
    fresh = init(population[1].seed, METHOD)
    for new, old in zip(together[0], fresh, strict=True):
        for p in range(3):
            assert not equal(agent(new.params, slice(p, p + 1)), agent(old.params, slice(p, p + 1)))
    for metric in together[1].values():
        assert metric.shape == (3,)
        assert np.isfinite(metric).all()


@pytest.mark.parametrize("which", [0, 2])
def test_an_agent_learns_the_same_alone_and_in_company(population, together, which: int) -> None:
    ring, settings = population
    part = slice(which, which + 1)
    fresh = agent(init(settings.seed, METHOD), part)  # cut out: to compile them for one agent takes long
    alone, metrics = run(only(ring, part), agent(settings, part), fresh)
    assert_close(alone, agent(together[0], part))
    assert_close(metrics, agent(together[1], part))


@pytest.mark.parametrize("which", [(1,), (0, 2)])
def test_a_part_of_the_learners_learns_as_all_do(population, together, which) -> None:
    part, metrics = run(*population, which=which)
    assert_close(part, tuple(together[0][number] for number in which))
    assert_close(metrics, {name: together[1][name] for name in metrics})


def test_learning_is_repeatable_and_the_clock_matters(population, together) -> None:
    assert equal(run(*population)[0], together[0])
    for later, other in zip(run(*population, time=UPDATES)[0], together[0], strict=True):
        assert not equal(later.params, other.params)


def test_hindsight_makes_a_difference_and_none_where_nothing_is_relabelled(population, together) -> None:
    ring, settings = population
    some = (0, 2)
    # A shift is a bonus for every step: the same as if the environment had paid it.
    never = METHOD._replace(goals=METHOD.goals._replace(share=1e-12, shift=0.5))
    left, said = run(ring, settings, which=some, method=never)
    paid = ring._replace(rows=ring.rows.at[..., COLUMNS.reward].add(0.5), episodes=None)
    without, metrics = run(paid, settings, which=some, method=WITHOUT)
    assert_close(left, without)
    assert_close(said, metrics)
    plainly, _ = run(ring._replace(episodes=None), settings, which=some, method=WITHOUT)
    for one, number in zip(plainly, some, strict=True):
        assert not equal(one.params, together[0][number].params)


def test_a_gear_without_rows_stays_exactly_as_it_was() -> None:
    settings = knobs([1, 2, 3], shared=jnp.array([False, True, True]))
    rng = np.random.default_rng(1)
    ring = ring_of(np.stack([walk(rng, CAPACITY, gear=0) for _ in range(3)]), settings.shared)
    fresh = init(settings.seed, METHOD)
    new, _ = run(ring, settings, fresh)
    assert equal(agent(new[1], slice(0, 1)), agent(fresh[1], slice(0, 1)))
    for learner, where in ((0, 0), (2, 0), (1, 1)):
        part = slice(where, where + 1)
        assert not equal(agent(new[learner].params, part), agent(fresh[learner].params, part))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))


def test_separate_buffers_learn_from_own_steps_but_any_goal_of_the_episode() -> None:
    settings = knobs([1, 1, 1], shared=jnp.array([False, False, False]))
    rows = np.stack([walk(np.random.default_rng(2), CAPACITY)] * 3)
    large = rows[0, :, COLUMNS.choice] == 1
    assert 0 < large.sum() < CAPACITY

    def small_gears(column: int) -> bool:
        """Whether the small gears stay alike when this column of the large gear's steps changes."""
        changed = rows.copy()
        changed[1, large, column] += 3
        new, _ = run(ring_of(changed, settings.shared), settings)
        return equal(agent(new[0], slice(0, 1)), agent(new[0], slice(1, 2)))

    assert small_gears(COLUMNS.reward)
    assert not small_gears(COLUMNS.next_observation.start + 1)  # what it achieved is a goal for both


def test_a_host_is_asked_once_for_each_learner_and_chunk(population, together) -> None:
    host = Host()
    method = METHOD._replace(goals=METHOD.goals._replace(rule=host))
    learners, metrics = run(*population, method=method)
    jax.block_until_ready(learners)
    batch, picks = METHOD.batch, METHOD.master_batch
    # The first 2: what was achieved, and the goal itself.
    assert sorted(host.shapes) == sorted([(UPDATES, 3, 2, batch, 1)] * 2 + [(UPDATES, 3, 2, picks, PERIOD, 1)])
    assert_close(learners, together[0])
    assert_close(metrics, together[1])


def test_an_environment_is_asked_for_plain_numpy_arrays(population, together) -> None:
    """Not for JAX's: its operations inside a callback wait for the very device that waits for the answer."""
    kinds = set()

    class Walk:
        def compute_reward(self, achieved, desired, info):  # noqa: ARG002
            kinds.update((type(achieved), type(desired)))
            return -(np.abs(np.asarray(achieved) - np.asarray(desired)).sum(axis=-1) > 1).astype(np.float32)

    method = METHOD._replace(goals=METHOD.goals._replace(rule=Asked("walk", Walk())))
    assert_close(run(*population, which=(2,), method=method)[0], together[0][2:])
    assert kinds == {np.ndarray}


def test_a_host_that_fails_is_named_without_a_traceback(caplog) -> None:
    class Failing(Host):
        def reward(self, achieved, desired):
            raise LowgearError(f"walk: compute_reward raised for {np.shape(achieved)} and {np.shape(desired)}")

    with pytest.raises(LowgearError, match="walk: compute_reward raised"):
        learned(Failing(), 1)
    assert not caplog.records  # JAX logs what a callback raises, with a traceback


def learned(rule, cores: int):
    """What one agent with separate buffers knows after its ring has wrapped."""
    method = METHOD._replace(goals=METHOD.goals._replace(rule=rule))
    rows = walk(np.random.default_rng(3), 5 * CHUNK)[None]
    learner = Learner(method, knobs([1], shared=jnp.array([False])), CAPACITY, cores=cores)
    try:
        for begin in range(0, 5 * CHUNK, CHUNK):
            learner.insert(rows[:, begin : begin + CHUNK])
            learner.start(CHUNK)
            learner.wait()
        assert len(learner._jobs) == learner._learn._cache_size() == cores
        assert learner._insert._cache_size() == 1
        return learner.state()
    finally:
        learner.close()


@pytest.fixture(scope="module")
def uncut():
    return learned(Distance(1.0), 1)


@pytest.mark.parametrize("rule", [Distance(1.0), Host()], ids=["device", "host"])
def test_the_cut_over_learners_changes_nothing_and_nothing_compiles_twice(uncut, rule) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), learned(rule, 2), uncut)


ROWS = np.zeros((3, COLUMNS.width), np.float32)
ROWS[:, COLUMNS.observation] = [[1, 2, 9], [3, 4, 9], [5, 6, 9]]
ROWS[:, COLUMNS.next_observation] = [[3, 4, 9], [5, 6, 9], [7, 8, 9]]
ROWS[:, COLUMNS.reward], ROWS[:, COLUMNS.alive], ROWS[:, COLUMNS.age] = 100, 1, (1, 2, 3)
SETTINGS = jax.tree.map(lambda x: x[0], knobs([1], coefficients=0.1, master_discount=0.5))


@pytest.mark.parametrize(("ends", "paid", "held", "discount"), [(True, -1, 1.5, 0), (False, -1 - 0.25, 1.75, 0.125)])
def test_the_master_is_paid_under_the_goal_it_is_told(ends, paid, held, discount) -> None:
    # One pick of three steps, told to want 6: it is there after its second, and beyond after its third.
    told = Told(jnp.array([True]), jnp.array([[6.0]]), None)
    method = METHOD._replace(discount_by_step=True, pick_cost=2.0, goals=GOALS._replace(ends=ends, rule=Distance(0.5)))
    found = method._picks(jnp.asarray(ROWS), SETTINGS, None, Draw(jnp.array([2]), jnp.zeros(1), told), method)
    np.testing.assert_array_equal(found.observation, [[1, 2, 6]])
    np.testing.assert_array_equal(found.next_observation, [[7, 8, 6]])
    np.testing.assert_allclose(found.reward, [paid - 0.1 * (held + 2)], rtol=1e-6)  # each step by half of the last
    np.testing.assert_allclose(found.discount, [discount])


def test_the_master_is_paid_what_the_host_says() -> None:
    said = hindsight.Verdict(jnp.array([[-1.0, 0, 50]]), jnp.array([[False, True, False]]))
    told = Told(jnp.array([True]), jnp.array([[6.0]]), said)
    draw = Draw(jnp.array([2]), jnp.zeros(1), told)
    found = method._picks(jnp.asarray(ROWS), SETTINGS, None, draw, METHOD._replace(discount_by_step=True))
    np.testing.assert_allclose(found.reward, [-1 - 0.1 * 1.5], rtol=1e-6)
    np.testing.assert_array_equal(found.discount, [0])


def test_a_gear_is_fed_the_goal_it_is_told() -> None:
    told = Told(jnp.array([True, True, False]), jnp.array([[6.0], [8.0], [8.0]]), None)
    draw = Draw(jnp.array([0, 2, 2]), jnp.zeros(6), told)
    batch = method._steps(jnp.asarray(ROWS), SETTINGS, None, draw, METHOD._replace(batch=3))
    np.testing.assert_array_equal(batch.observation, [[1, 2, 6], [5, 6, 8], [5, 6, 9]])
    np.testing.assert_array_equal(batch.next_observation, [[3, 4, 6], [7, 8, 8], [7, 8, 9]])
    np.testing.assert_array_equal(batch.reward, [-1, 0, 100])
    np.testing.assert_allclose(batch.discount, [0.9, 0, 0.9])
