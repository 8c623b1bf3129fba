"""The method: what the master is paid and shown, and that agents and learners never read each other."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.learning import method, replay
from lowgear.learning.dqn import DqnSettings, Picks
from lowgear.learning.method import Knobs, Learners, Method
from lowgear.learning.networks import CriticStyle
from lowgear.learning.replay import Columns, PickRows, Replay, ReplaySettings
from lowgear.learning.sac import SacSettings
from lowgear.training.blueprint import knobs_of

PERIOD, CAPACITY, UPDATES = 3, 24, 200
COLUMNS = Columns(obs_dim=2, act_dim=1)
ALL = (0, 1, 2)
METHOD = Method(
    obs_dim=2,
    act_dim=1,
    gears=(3, 6),
    critic_units=(6, 6),
    gear_costs=(1.0, 10.0),
    pick_cost=0.0,
    durations=1,
    dial=False,
    master_units=5,
    batch=8,
    master_batch=8,
    discount_by_step=False,
    sac=SacSettings("tanh", CriticStyle("relu", False), 0.005, -1.0),
    dqn=DqnSettings("tanh", 20),
    replay=ReplaySettings(COLUMNS, 2, PERIOD, 1_000),
)
learn = jax.jit(partial(method.learn, updates=UPDATES, method=METHOD), static_argnames="which")
init = jax.jit(partial(method.init, method=METHOD))
insert = jax.jit(partial(replay.insert, settings=METHOD.replay))


def knobs(seeds, coefficients=0.1, ratio=1.0, shared=True, master_discount=0.9) -> Knobs:
    """As the paper's recipe has them, but with these values and faster learning."""
    paper = knobs_of(resolve(find("walker-stand"), "paper"))
    changed = paper._replace(
        seed=np.array(seeds, np.uint32),
        cost_low=np.float32(coefficients),
        cost_ratio=np.float32(ratio),
        discount=np.float32(0.9),
        master_discount=np.float32(master_discount),
        learning_rate=np.float32(1e-3),
        master_learning_rate=np.float32(5e-3),
        shared=np.bool_(shared),
    )
    return jax.tree.map(lambda value: jnp.broadcast_to(jnp.asarray(value), (len(seeds),)), changed)


def steps(rng: np.random.Generator, count: int, gear=None, earn=None) -> np.ndarray:
    """Rows of one agent: picks of random gears, or of `gear`, that hold PERIOD steps; rewards random, or earn[gear]."""
    rows = np.zeros((count, COLUMNS.width), np.float32)
    for t in range(count):
        if t % PERIOD == 0:
            picked = int(rng.integers(2)) if gear is None else gear
        rows[t, COLUMNS.observation] = rng.normal(size=2)
        rows[t, COLUMNS.next_observation] = rng.normal(size=2)
        rows[t, COLUMNS.action] = rng.uniform(-1, 1)
        rows[t, COLUMNS.reward] = rng.normal() if earn is None else earn[picked]
        rows[t, COLUMNS.alive] = 1
        rows[t, COLUMNS.choice] = picked
        rows[t, COLUMNS.age] = t % PERIOD + 1
        rows[t, COLUMNS.closed] = t % PERIOD == PERIOD - 1
    return rows


def ring_of(rows: np.ndarray, shared: jax.Array) -> Replay:
    return insert(replay.init(len(rows), CAPACITY, METHOD.replay), jnp.asarray(rows), shared)


def agent(tree, which: slice):
    return jax.tree.map(lambda x: x[which], tree)


def only(ring: Replay, which: slice) -> Replay:
    return Replay(*agent((ring.rows, ring.lists, ring.episodes), which), ring.written)


def assert_close(found, expected) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), found, expected)


def equal(one, two) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True))


@pytest.fixture(scope="module")
def population() -> tuple[Learners, Replay, Knobs]:
    """Three agents: the second is the first again, the third has another seed; all saw the same."""
    settings = knobs([4, 4, 5])
    rows = np.broadcast_to(steps(np.random.default_rng(0), CAPACITY), (3, CAPACITY, COLUMNS.width))
    return init(settings.seed), ring_of(rows, settings.shared), settings


@pytest.fixture(scope="module")
def together(population) -> tuple[Learners, dict[str, jax.Array]]:
    return learn(*population, jnp.int32(0), which=ALL)


def picks_of(choice, reward, discount) -> Picks:
    zero = jnp.zeros((len(choice), 2))
    return Picks(zero, jnp.array(choice, jnp.int32), jnp.array(reward), jnp.array(discount), zero)


@pytest.mark.parametrize("by_step", [False, True])
def test_pay_by_hand(by_step: bool) -> None:
    picks = picks_of([0, 1, 1], [5.0, 5.0, -1.0], [1.0, 1.0, 0.0])  # rewards already summed over the steps
    rows = PickRows(picks, jnp.array([3.0, 2.0, 1.0]), jnp.array([3, 2, 1], jnp.int32))
    paid = method.pay(rows, jnp.float32(0.1), jnp.float32(0.9), METHOD._replace(discount_by_step=by_step))
    np.testing.assert_allclose(paid.reward, [5 - 0.1 * 1 * 3, 5 - 0.1 * 10 * 2, -1 - 0.1 * 10 * 1], rtol=1e-6)
    np.testing.assert_allclose(paid.discount, [0.9**3, 0.9**2, 0] if by_step else [0.9, 0.9, 0], rtol=1e-6)
    np.testing.assert_array_equal(paid.choice, picks.choice)


def test_pay_of_no_cost_is_the_reward() -> None:
    rows = PickRows(picks_of([1], [2.5], [1.0]), jnp.array([3.0]), jnp.array([3]))
    paid = method.pay(rows, jnp.float32(0), jnp.float32(0.9), METHOD._replace(pick_cost=7.0))
    np.testing.assert_array_equal(paid.reward, [2.5])


def test_pay_charges_the_pick_once_and_each_step_as_it_is_weighed() -> None:
    # Two gears for three durations: choices 0, 3 and 5 are gears 0, 1 and 1, the second was cut short by an end.
    method = METHOD._replace(pick_cost=2.5, durations=3, discount_by_step=True)
    picks = picks_of([0, 3, 5], [5.0, 5.0, 5.0], [1.0, 0.0, 1.0])
    rows = PickRows(picks, jnp.array([1.0, 1.5, 1.75]), jnp.array([1, 2, 3], jnp.int32))
    coefficient = jnp.array([0.1, 0.1, 0.2])  # each pick at a price of its own
    with jax.numpy_rank_promotion("raise"):
        paid = method.pay(rows, coefficient, jnp.float32(0.5), method)
    cost = np.array([1 * 1 + 2.5, 10 * 1.5 + 2.5, 10 * 1.75 + 2.5])
    np.testing.assert_allclose(paid.reward, 5 - np.array([0.1, 0.1, 0.2]) * cost, rtol=1e-6)
    np.testing.assert_allclose(paid.discount, [0.5, 0, 0.125], rtol=1e-6)
    np.testing.assert_array_equal(paid.choice, [0, 3, 5])  # the master learns the choice, not the gear alone


def test_show_puts_the_position_last_before_and_after_the_pick() -> None:
    picks = picks_of([0, 1], [1.0, 2.0], [1.0, 0.0])._replace(
        observation=jnp.array([[1.0, 2], [3, 4]]), next_observation=jnp.array([[5.0, 6], [7, 8]])
    )
    shown = method.show(picks, jnp.array([-1.0, 0.5]))
    np.testing.assert_array_equal(shown.observation, [[1, 2, -1], [3, 4, 0.5]])
    np.testing.assert_array_equal(shown.next_observation, [[5, 6, -1], [7, 8, 0.5]])
    for name in ("choice", "reward", "discount"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(picks, name))


def test_same_seed_equal_other_seed_different(population, together) -> None:
    fresh, learned = population[0], together[0]
    for learners in (fresh, learned):
        assert equal(agent(learners, slice(0, 1)), agent(learners, slice(1, 2)))
        for learner in learners:
            assert not equal(agent(learner, slice(0, 1)), agent(learner, slice(2, 3)))


def test_other_seed_draws_other_batches(population) -> None:
    # The same initial weights under another seed: only the random numbers differ.
    learners, ring, settings = population
    other, _ = learn(learners, ring, settings._replace(seed=jnp.array([4, 9, 5], jnp.uint32)), jnp.int32(0), which=ALL)
    for learner in other:
        assert not equal(agent(learner, slice(0, 1)), agent(learner, slice(1, 2)))


def test_learning_is_repeatable_and_the_clock_matters(population, together) -> None:
    again, _ = learn(*population, jnp.int32(0), which=ALL)
    later, _ = learn(*population, jnp.int32(UPDATES), which=ALL)
    assert equal(again, together[0])
    for learner, other in zip(later, together[0], strict=True):
        assert not equal(learner.params, other.params)


def test_an_agent_learns_the_same_alone_and_in_company(population, together) -> None:
    learners, ring, settings = population
    alone, metrics = learn(
        agent(learners, slice(2, 3)), only(ring, slice(2, 3)), agent(settings, slice(2, 3)), jnp.int32(0), which=ALL
    )
    assert_close(alone, agent(together[0], slice(2, 3)))
    assert_close(metrics, agent(together[1], slice(2, 3)))
    assert not equal(alone, agent(learners, slice(2, 3)))


@pytest.mark.parametrize("which", [(0,), (1, 2)])
def test_a_part_of_the_learners_learns_as_all_do(population, together, which: tuple[int, ...]) -> None:
    learners, ring, settings = population
    part, metrics = learn(tuple(learners[n] for n in which), ring, settings, jnp.int32(0), which=which)
    assert_close(part, tuple(together[0][n] for n in which))
    assert metrics.keys() < together[1].keys()
    assert_close(metrics, {name: together[1][name] for name in metrics})


def test_gears_learn_what_they_made_of_their_batches_before_the_first_update(population) -> None:
    learners, ring, settings = population
    prepare = jax.jit(partial(method.prepare, method=METHOD), static_argnames=("which", "updates"))
    study = jax.jit(partial(method.study, method=METHOD), static_argnames="which")

    lessons = prepare(learners, ring, settings, jnp.int32(0), which=ALL, updates=2)
    one, two = (
        prepare(learners, ring, settings, jnp.int32(now), which=ALL, updates=1) for now in (0, 1)
    )  # both before either is studied
    assert_close(jax.tree.map(lambda *parts: jnp.concatenate(parts), one.each, two.each), lessons.each)
    assert lessons.each[1].target.shape == (2, 3, METHOD.batch)

    at_once, _ = study(learners, lessons, settings, which=ALL)
    first, _ = study(learners, one, settings, which=ALL)
    in_turn, _ = study(first, two, settings, which=ALL)
    assert_close(in_turn, at_once)
    # A gear that has learned values its batches otherwise; the master's lessons hold no values.
    fresh = prepare(first, ring, settings, jnp.int32(1), which=ALL, updates=1)
    for gear in range(2):
        assert not np.allclose(fresh.each[gear].target, two.each[gear].target)
        assert equal(fresh.each[gear]._replace(target=0), two.each[gear]._replace(target=0))
    assert equal(fresh.each[2], two.each[2])


def test_metrics_are_one_finite_number_for_each_agent(together) -> None:
    assert {name.split("_")[0] for name in together[1]} == {"gear0", "gear1", "master"}
    for metric in together[1].values():
        assert metric.shape == (3,)
        assert np.isfinite(metric).all()


def test_per_agent_values_reach_the_learners_they_belong_to(population, together) -> None:
    learners, ring, settings = population
    changed = settings._replace(
        cost_low=jnp.array([0.1, 0.9, 0.1], jnp.float32), discount=jnp.array([0.9, 0.9, 0.1], jnp.float32)
    )
    new, _ = learn(learners, ring, changed, jnp.int32(0), which=ALL)
    same = [
        [equal(agent(a, slice(p, p + 1)), agent(b, slice(p, p + 1))) for p in range(3)]
        for a, b in zip(new, together[0], strict=True)
    ]
    assert same == [[True, True, False], [True, True, False], [True, False, True]]


def test_a_gear_without_rows_stays_exactly_as_it_was() -> None:
    settings = knobs([1, 1, 1], shared=jnp.array([False, True, False]))
    rng = np.random.default_rng(1)
    small, mixed = steps(rng, CAPACITY, gear=0), steps(rng, CAPACITY)
    learners, ring = init(settings.seed), ring_of(np.stack([small, small, mixed]), settings.shared)
    new, _ = learn(learners, ring, settings, jnp.int32(0), which=ALL)
    assert equal(agent(new[1], slice(0, 1)), agent(learners[1], slice(0, 1)))
    for learner, where in ((0, 0), (2, 0), (1, 1), (1, 2)):
        moved = not equal(
            agent(new[learner].params, slice(where, where + 1)),
            agent(learners[learner].params, slice(where, where + 1)),
        )
        assert moved, f"learner {learner} of agent {where} did not learn"
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))

    # It stops again once its last rows are overwritten.
    empty = insert(ring, jnp.asarray(np.stack([small] * 3)), settings.shared)
    again, _ = learn(new, empty, settings, jnp.int32(UPDATES), which=ALL)
    assert equal(agent(again[1], slice(2, 3)), agent(new[1], slice(2, 3)))
    assert not equal(agent(again[0].params, slice(2, 3)), agent(new[0].params, slice(2, 3)))


def test_no_rows_at_all_change_nothing() -> None:
    settings = knobs([1, 2, 3])
    learners = init(settings.seed)
    new, _ = learn(learners, replay.init(3, CAPACITY, METHOD.replay), settings, jnp.int32(0), which=ALL)
    assert equal(new, learners)


def test_separate_buffers_learn_from_own_steps_alone() -> None:
    settings = knobs([1, 1, 1], shared=jnp.array([False, False, True]))
    rows = np.stack([steps(np.random.default_rng(2), CAPACITY)] * 3)
    changed = rows.copy()
    changed[1:, rows[0, :, COLUMNS.choice] == 1, COLUMNS.reward] += 3  # only what the large gear earned
    assert 0 < (rows[0, :, COLUMNS.choice] == 1).sum() < CAPACITY
    learners = init(settings.seed)
    new, _ = learn(learners, ring_of(changed, settings.shared), settings, jnp.int32(0), which=ALL)
    first, second, third = (agent(new, slice(p, p + 1)) for p in range(3))
    assert equal(first[0], second[0])
    assert not equal(first[1], second[1])
    assert not equal(first[2], second[2])
    assert not equal(second[0], third[0])
