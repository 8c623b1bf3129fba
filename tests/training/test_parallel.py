"""Learners in the background: the cut over cores changes nothing, nothing compiles twice, a state goes on exactly."""

import itertools

import jax
import numpy as np
import pytest

from lowgear.training.parallel import ParallelLearner, balanced
from tests.fixtures.compilations import compilations
from tests.fixtures.methods import assert_close, assert_equal
from tests.fixtures.parallel import AGENTS, CAPACITY, CHUNK, METHOD, POPULATION, chunk, go

UPDATE = "jit(update)"


@pytest.fixture(scope="module")
def reference():
    """One core, six chunks: the ring wraps. What it learned and said, and the learner itself."""
    learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=1)
    fresh = learner.states()
    go(learner, range(1))
    with compilations() as compiled:
        go(learner, range(1, 2))
        middle = learner.states(), learner.time
        kept = jax.tree.map(np.copy, middle[0])
        metrics = go(learner, range(2, 6))
    yield {
        "learner": learner,
        "fresh": fresh,
        "compiled": compiled,
        "middle": middle,
        "kept": kept,
        "metrics": metrics,
        "states": learner.states(),
    }
    learner.close()


def test_every_learner_learns(reference) -> None:
    assert reference["learner"].time == 6 * CHUNK
    for new, old in zip(reference["states"].learners, reference["fresh"].learners, strict=True):
        for agent in range(POPULATION):
            moved = jax.tree.map(lambda a, b, p=agent: bool((a[p] != b[p]).any()), new.params, old.params)
            assert all(jax.tree.leaves(moved)), f"agent {agent}: {moved}"
    for name, metric in reference["metrics"].items():
        assert metric.shape == (POPULATION,), name
        assert np.isfinite(metric).all(), name


def test_nothing_is_compiled_after_the_first_chunk(reference) -> None:
    assert not reference["compiled"]


def test_the_cut_over_cores_changes_nothing(reference) -> None:
    programs = []
    for cores in (2, 3):
        learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=cores)
        try:
            assert len(learner.jobs) >= cores
            assert_equal(learner.states(), reference["fresh"])
            with compilations() as compiled:
                go(learner, range(1))
            programs.append(compiled.count(UPDATE))
            metrics = go(learner, range(1, 6))
            assert_close(learner.states(), reference["states"])
            assert metrics.keys() == reference["metrics"].keys()
            assert_close(metrics, reference["metrics"])
        finally:
            learner.close()
    assert programs == [METHOD.learner_count, 0]  # one for each learner, whatever the agent; another cut finds them


def test_a_restored_learner_goes_on_bit_for_bit(reference) -> None:
    states, time = reference["middle"]
    learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=1)
    try:
        learner.insert(chunk(0))
        learner.insert(chunk(1))
        learner.restore(states, time)
        assert_equal(learner.states(), states)
        with compilations() as compiled:
            metrics = go(learner, range(2, 6))
        assert UPDATE not in compiled  # restored arrays look as the learners' own do, so the same program serves
        assert_equal(learner.states(), reference["states"])
        assert_equal(metrics, reference["metrics"])
    finally:
        learner.close()


def test_rounds_that_are_queued_come_to_the_same(reference) -> None:
    """As on a GPU: a round is started before the one before is done, and told of in its turn."""
    learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=1)
    assert not learner.queues  # on a CPU jobs have threads of their own
    learner.queues = True
    try:
        for number in range(6):
            learner.insert(chunk(number))
            learner.start(CHUNK)
        assert learner.under_way == 6
        learned = [learner.wait() for _ in range(6)]
        assert (learner.under_way, learner.wait()) == (0, None)
        assert_equal(learner.states(), reference["states"])
        assert_equal(learned[-1].metrics, reference["metrics"])
        assert_equal(learned[-1].published, reference["learner"].published())
        masters = [found.published.networks[-1][0].weight for found in learned]
        assert all((one != other).any() for one, other in itertools.pairwise(masters))
        assert (learner.rounds, learner.time) == (6, 6 * CHUNK)
        assert learner.busy_seconds > 0
    finally:
        learner.close()


@pytest.mark.parametrize(("time", "times"), [(0, 3.0), (5_000, 2.0), (10_000, 1.0), (20_000, 1.0)])
def test_an_actors_rate_falls_from_its_boost(time: int, times: float) -> None:
    rate = AGENTS.actor_learning_rate
    boosted = AGENTS._replace(actor_boost=np.full(POPULATION, 3, np.float32))
    plain = AGENTS._replace(actor_learning_rate=(times * rate).astype(np.float32))
    found = []
    for agents in (boosted, plain):
        learner = ParallelLearner(METHOD, agents, CAPACITY, cores=1)
        learner.time = time
        go(learner, range(1))
        found.append(learner.states())
        learner.close()
    assert_close(*found)
    assert (found[0].learners[0].params.actor[0].weight != 0).any()


def test_a_state_is_a_copy_that_later_updates_leave_alone(reference) -> None:
    assert_equal(reference["middle"][0], reference["kept"])
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(reference["middle"][0]))


def test_what_acts_is_the_actors_and_the_master(reference) -> None:
    *gears, master = reference["learner"].published().networks
    states = reference["states"].learners
    for found, learned in zip(gears, states[:-1], strict=True):
        assert_equal(found, learned.params.actor)
    assert_equal(master, states[-1].params)
    assert gears[1][0].weight.shape == (POPULATION, 2, 6)


def test_rounds_and_time_are_counted(reference) -> None:
    learner = reference["learner"]
    rounds, time, busy = learner.rounds, learner.time, learner.busy_seconds
    assert (rounds, time) == (6, 6 * CHUNK)
    assert busy > 0
    assert learner.wait() is None  # nothing is under way
    assert (learner.rounds, learner.time, learner.busy_seconds) == (rounds, time, busy)
    assert learner.buffer_bytes >= POPULATION * CAPACITY * METHOD.replay.columns.width * 4


@pytest.mark.parametrize("cores", [2, 5])
def test_every_agent_and_learner_is_in_one_job(cores: int) -> None:
    learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=cores)
    learner.close()
    assert len(learner.jobs) >= cores
    found = sorted((job.shard, number) for job in learner.jobs for number in job.which)
    assert found == [(agent, number) for agent in range(POPULATION) for number in range(3)]


@pytest.mark.parametrize(("population", "cores"), [(1, 2), (2, 2), (3, 2), (5, 2), (6, 4)])
def test_cores_end_a_round_at_about_the_same_time(population: int, cores: int) -> None:
    agents = jax.tree.map(lambda value: np.resize(value, (population, *value.shape[1:])), AGENTS)
    learner = ParallelLearner(METHOD, agents, CAPACITY, cores=cores)
    learner.close()
    busy = [0] * cores
    for job in learner.jobs:  # whichever core is free takes the next
        busy[busy.index(min(busy))] += sum(map(METHOD.flops, job.which))
    even = population * sum(map(METHOD.flops, range(METHOD.learner_count))) / cores
    dearest = max(map(METHOD.flops, range(METHOD.learner_count)))
    assert max(busy) <= max(1.1 * even, dearest)


@pytest.mark.parametrize("cores", [1, 2])
def test_learners_that_are_not_named_stay_and_the_others_are_none_the_wiser(reference, cores: int) -> None:
    learner = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=cores, which=(1,))
    try:
        metrics = go(learner, range(6))
        (first, named, last), _ = learner.states()
        (fresh_first, _, fresh_last), _ = reference["fresh"]
        assert_equal((first, last), (fresh_first, fresh_last))
        assert_close(named, reference["states"].learners[1])
        assert {name.partition("_")[0] for name in metrics} == {"gear1"}
    finally:
        learner.close()


@pytest.mark.parametrize("groups", [1, 2, 3, 9])
def test_learners_are_cut_into_groups_that_hold_each_once(groups: int) -> None:
    found = balanced(range(3), groups, METHOD)
    assert len(found) == min(groups, 3)
    assert sorted(number for group in found for number in group) == [0, 1, 2]
    assert all(found)


def test_the_dearest_learner_has_a_group_of_its_own() -> None:
    work = [METHOD.flops(number) for number in range(3)]
    dearest = work.index(max(work))
    assert (dearest,) in balanced(range(3), 2, METHOD)
    assert balanced((0, 2), 2, METHOD) == balanced((0, 2), 5, METHOD)
