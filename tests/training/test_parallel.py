"""Learners in the background: the cut over cores changes nothing, nothing compiles twice, a state goes on exactly."""

from functools import partial

import jax
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.learning.dqn import DqnSettings
from lowgear.learning.networks import CriticStyle
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.learning.sac import SacSettings
from lowgear.training.parallel import PARTS, Learner, _cut, _needs_help, _shards
from tests.learning import test_method as asymmetric

POPULATION, CHUNK, CAPACITY, PERIOD = 2, 8, 32, 4
COLUMNS = Columns(obs_dim=2, act_dim=1)
METHOD = asymmetric.METHOD._replace(
    critic_units=(4, 4),
    gear_costs=(1.0, 3.0),
    pick_cost=0.5,
    durations=2,
    dial=True,
    master_units=4,
    discount_by_step=True,
    sac=SacSettings("tanh", CriticStyle("relu", True), 0.005, -1.0),
    dqn=DqnSettings("tanh", 10),
    replay=ReplaySettings(COLUMNS, 2, PERIOD, 100),
)
KNOBS = asymmetric.knobs([1, 2])._replace(
    cost_low=np.array([0.01, 0.1], np.float32),
    cost_ratio=np.array([10, 1], np.float32),
    discount=np.array([0.9, 0.99], np.float32),
    learning_rate=np.array([1e-3, 2e-3], np.float32),
    shared=np.array([True, False]),
)


def chunk(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(POPULATION, CHUNK, COLUMNS.width)).astype(np.float32)
    rows[..., COLUMNS.alive] = 1
    # Picks of two steps in the first half, one of four in the second.
    rows[..., COLUMNS.choice] = np.repeat(rng.integers(0, 2, (POPULATION, 4)), 2, axis=1)
    rows[:, 4:, COLUMNS.choice] = 2 + rng.integers(0, 2, (POPULATION, 1))
    rows[..., COLUMNS.age] = 1, 2, 1, 2, 1, 2, 3, 4
    rows[..., COLUMNS.closed] = 0, 1, 0, 1, 0, 0, 0, 1
    return rows


def go(learner: Learner, numbers: range) -> dict[str, np.ndarray]:
    for number in numbers:
        learner.insert(chunk(number))
        learner.start(CHUNK)
        metrics = learner.wait()
    return metrics


def assert_equal(found, expected) -> None:
    jax.tree.map(partial(np.testing.assert_array_equal, strict=True), found, expected)  # dtypes too


@pytest.fixture(scope="module")
def reference():
    """One core, six chunks: the ring wraps. What it learned and said, and the learner itself."""
    learner = Learner(METHOD, KNOBS, CAPACITY, cores=1)
    fresh = learner.state()
    go(learner, range(2))
    compiled = learner._learn._cache_size(), learner._insert._cache_size()
    middle = learner.state(), learner.time
    kept = jax.tree.map(np.copy, middle[0])
    metrics = go(learner, range(2, 6))
    yield {
        "learner": learner,
        "fresh": fresh,
        "compiled": compiled,
        "middle": middle,
        "kept": kept,
        "metrics": metrics,
        "state": learner.state(),
    }
    learner.close()


def test_every_learner_learns(reference) -> None:
    assert reference["learner"].time == 6 * CHUNK
    for new, old in zip(reference["state"].learners, reference["fresh"].learners, strict=True):
        for agent in range(POPULATION):
            moved = jax.tree.map(lambda a, b, p=agent: bool((a[p] != b[p]).any()), new.params, old.params)
            assert all(jax.tree.leaves(moved)), f"agent {agent}: {moved}"
    for name, metric in reference["metrics"].items():
        assert metric.shape == (POPULATION,), name
        assert np.isfinite(metric).all(), name


def test_nothing_is_compiled_after_the_first_chunk(reference) -> None:
    learner = reference["learner"]
    assert reference["compiled"] == (1, 1)
    assert (learner._learn._cache_size(), learner._insert._cache_size()) == (1, 1)


@pytest.mark.parametrize("cores", [2, 3])
def test_the_cut_over_cores_changes_nothing(reference, cores: int) -> None:
    learner = Learner(METHOD, KNOBS, CAPACITY, cores=cores)
    try:
        assert len(learner._jobs) >= cores
        assert_equal(learner.state(), reference["fresh"])
        metrics = go(learner, range(6))
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), learner.state(), reference["state"])
        assert metrics.keys() == reference["metrics"].keys()
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), metrics, reference["metrics"])
        groups = len({job.which for job in learner._jobs})
        assert learner._learn._cache_size() == groups  # one program for each part, whatever the agent
    finally:
        learner.close()


def test_a_restored_learner_goes_on_bit_for_bit(reference) -> None:
    state, time = reference["middle"]
    learner = Learner(METHOD, KNOBS, CAPACITY, cores=1)
    try:
        learner.insert(chunk(0))
        learner.insert(chunk(1))
        learner.restore(state, time)
        assert_equal(learner.state(), state)
        metrics = go(learner, range(2, 6))
        assert_equal(learner.state(), reference["state"])
        assert_equal(metrics, reference["metrics"])
        assert learner._learn._cache_size() == 1  # restored arrays look as the fresh ones did
    finally:
        learner.close()


def test_a_state_is_a_copy_that_later_updates_leave_alone(reference) -> None:
    assert_equal(reference["middle"][0], reference["kept"])
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(reference["middle"][0]))


def test_what_acts_is_the_actors_and_the_master(reference) -> None:
    *gears, master = reference["learner"].acting()
    state = reference["state"].learners
    for found, learned in zip(gears, state[:-1], strict=True):
        assert_equal(found, learned.params.actor)
    assert_equal(master, state[-1].params)
    assert gears[1][0].weight.shape == (POPULATION, METHOD.obs_dim, 6)


def test_what_goes_wrong_in_the_background_is_raised_by_wait(reference, monkeypatch) -> None:
    learner = reference["learner"]

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(learner, "_learn", fail)
    time = learner.time
    learner.start(CHUNK)
    with pytest.raises(MemoryError, match="no room"):
        learner.wait()
    learner.time = time


UNEVEN = METHOD._replace(gears=(3, 16), critic_units=(4, 16))


@pytest.fixture(scope="module")
def unaided():
    learner = Learner(UNEVEN, KNOBS, CAPACITY, cores=1)
    assert not learner.uneven
    metrics = go(learner, range(6))
    yield learner.state(), metrics
    learner.close()


@pytest.mark.parametrize("cores", [3, 4])
def test_a_large_job_that_others_prepare_for_learns_the_same(unaided, cores: int) -> None:
    learner = Learner(UNEVEN, KNOBS, CAPACITY, cores=cores)
    try:
        assert learner.uneven
        assert [job.which for job in learner._jobs if job.parts > 1] == [(1,)] * POPULATION
        metrics = go(learner, range(6))
        state, expected = unaided
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), learner.state(), state)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), metrics, expected)
        assert learner._prepare._cache_size() == learner._study._cache_size() == learner._learn._cache_size() == 1
    finally:
        learner.close()


def test_a_number_of_updates_that_does_not_divide_is_made_in_one_go() -> None:
    learner = Learner(UNEVEN, KNOBS, CAPACITY, cores=3)
    one = Learner(UNEVEN, KNOBS, CAPACITY, cores=1)
    try:
        for each in (learner, one):
            each.insert(chunk(0))
            each.start(PARTS + 1)
            each.wait()
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), learner.state(), one.state())
        assert learner._prepare._cache_size() == 0
    finally:
        learner.close()
        one.close()


def test_what_goes_wrong_while_a_lesson_is_prepared_is_raised_by_wait_and_changes_nothing(monkeypatch) -> None:
    learner = Learner(UNEVEN, KNOBS, CAPACITY, cores=3)
    try:
        learner.insert(chunk(0))
        before = learner.state().learners[1]

        def fail(*_: object, **__: object) -> None:
            raise LowgearError("no such goal")

        monkeypatch.setattr(learner, "_prepare", fail)
        learner.start(CHUNK)
        with pytest.raises(LowgearError, match="no such goal"):
            learner.wait()
        assert_equal(learner.state().learners[1], before)
    finally:
        learner.close()


@pytest.mark.parametrize(("population", "cores"), [(1, 2), (1, 16), (2, 3), (2, 5), (3, 4), (3, 7), (5, 6), (4, 2)])
def test_fewer_jobs_wait_for_lessons_than_there_are_threads(population: int, cores: int) -> None:
    three = UNEVEN._replace(gears=(3, 16, 16), critic_units=(4, 16, 16))
    shards = _shards(population, cores)
    groups = _cut(three, -(-cores // shards), range(4))
    waiting = shards * sum(_needs_help(three, group, groups) for group in groups)
    assert waiting < min(shards * len(groups), cores)


def test_help_goes_to_a_gear_with_more_than_twice_the_work_of_the_lightest_job() -> None:
    groups = [(1,), (0, 2)]
    assert [_needs_help(UNEVEN, group, groups) for group in groups] == [True, False]
    assert not any(_needs_help(METHOD, group, groups) for group in groups)
    assert not _needs_help(UNEVEN, (0, 1, 2), [(0, 1, 2)])
    heavy_master = UNEVEN._replace(master_units=500)
    assert not _needs_help(heavy_master, (2,), [(2,), (0, 1)])  # the master learns from what it finds, not from values


@pytest.mark.parametrize("population", [1, 2, 3, 5, 7, 12, 25])
@pytest.mark.parametrize("cores", [1, 2, 3, 4, 16])
def test_agents_are_cut_into_equal_parts_enough_for_the_cores(population: int, cores: int) -> None:
    shards = _shards(population, cores)
    assert population % shards == 0
    assert shards >= min(population, cores)


@pytest.mark.parametrize("cores", [1, 2])
def test_learners_that_are_not_named_stay_and_the_others_are_none_the_wiser(reference, cores: int) -> None:
    learner = Learner(METHOD, KNOBS, CAPACITY, cores=cores, which=(1,))
    try:
        metrics = go(learner, range(6))
        (first, named, last), _ = learner.state()
        (fresh_first, _, fresh_last), _ = reference["fresh"]
        assert_equal((first, last), (fresh_first, fresh_last))
        expected = reference["state"].learners[1]
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), named, expected)
        assert {name.partition("_")[0] for name in metrics} == {"gear1"}
    finally:
        learner.close()


@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_learners_are_cut_into_groups_that_hold_each_once(parts: int) -> None:
    groups = _cut(METHOD, parts, range(3))
    assert len(groups) == min(parts, 3)
    assert sorted(number for group in groups for number in group) == [0, 1, 2]
    assert all(groups)
