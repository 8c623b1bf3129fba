"""Learners that go by what their agents have met: normalised observations, rewards on one scale, lenient twins.

They learn as if observations and rewards had been so before, go on exactly, and what acts is none the wiser.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.envs.goals import Distance
from lowgear.learning import normalisation
from lowgear.learning.hindsight import Goals
from lowgear.learning.normalisation import LEAST_STD, Normaliser
from lowgear.policy.networks import mlp, squash
from lowgear.training import algorithm
from lowgear.training.parallel import ParallelLearner
from tests.fixtures import parallel
from tests.fixtures.compilations import compilations
from tests.fixtures.methods import agent, assert_close, assert_equal, equal
from tests.fixtures.parallel import AGENTS, CAPACITY, CHUNK, COLUMNS, METHOD, POPULATION

NORMALISED = METHOD._replace(normalise_observations=True)
SCALED = METHOD._replace(scale_rewards=True)
LENIENT = METHOD._replace(lenient_twins=True)
RARE = tuple(replace(gear, settings=gear.settings._replace(actor_every=2)) for gear in METHOD.gear_learners)
ALL = METHOD._replace(
    gear_learners=RARE, normalise_observations=True, scale_rewards=True, lenient_twins=True, relative_costs=True
)
# Prices follow the scale of rewards, so that nothing is left of their unit.
RELATIVE = SCALED._replace(relative_costs=True)
TOLD = AGENTS._replace(relative=np.array([True, True]))
MIXED = AGENTS._replace(relative=np.array([True, False]))
MEAN, STD = np.array([1.3, -4.0], np.float32), np.array([0.02, 30.0], np.float32)


def raw_chunk(number: int, factor: float = 1.0) -> np.ndarray:
    """The chunk of the plain learner's tests, its observations elsewhere and of other sizes; agent 1's episodes end."""
    rows = parallel.chunk(number)
    for columns in (COLUMNS.observation, COLUMNS.next_observation):
        rows[..., columns] = rows[..., columns] * STD + MEAN
    rows[..., COLUMNS.reward] *= factor
    rows[..., COLUMNS.ended] = 0
    rows[1, 5, [COLUMNS.ended, COLUMNS.alive]] = 1, 0
    return rows


def normalised_chunk(number: int, by: Normaliser) -> np.ndarray:
    rows = raw_chunk(number)
    for columns in (COLUMNS.observation, COLUMNS.next_observation):
        rows[..., columns] = (rows[..., columns] - by.mean[:, None]) / by.std[:, None]
    return rows


@pytest.fixture
def make():
    """Learners of a method; closed when the test is over."""
    made = []

    def of(method, agents=AGENTS, cores=1):
        made.append(ParallelLearner(method, agents, CAPACITY, cores=cores))
        return made[-1]

    yield of
    for learner in made:
        learner.close()


def test_learners_learn_as_from_observations_that_were_normalised_before(make) -> None:
    learner, plain = make(NORMALISED), make(METHOD)
    # Before anything is met, observations are as they are.
    assert_equal(learner.published().networks, plain.published().networks)
    seen = np.concatenate([raw_chunk(number)[..., COLUMNS.observation] for number in range(4)], axis=1)
    by = Normaliser(seen.mean(axis=1), np.maximum(seen.std(axis=1), LEAST_STD))
    for number in range(4):
        learner.insert(raw_chunk(number))
        plain.insert(normalised_chunk(number, by))
    for _ in range(6):
        for each in (learner, plain):
            each.start(CHUNK)
            each.wait()
    for found, expected in zip(learner.states().learners, plain.states().learners, strict=True):
        jax.tree.map(partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4), found, expected)
    raw, normalised = (rows[..., COLUMNS.observation] for rows in (raw_chunk(7), normalised_chunk(7, by)))
    for network in (1, 2):
        position = np.zeros((POPULATION, CHUNK, network - 1), np.float32)  # the master sees the dial's, too
        acted, expected = (
            squash(mlp(each.published().networks[network], np.concatenate([now, position], axis=-1), "tanh"))
            for each, now in ((learner, raw), (plain, normalised))
        )
        np.testing.assert_allclose(acted, expected, atol=1e-2)


def test_rewards_a_thousand_times_as_large_give_the_same_gears_and_coefficients_and_the_same_master(make) -> None:
    learner, large, unscaled = make(RELATIVE, TOLD), make(RELATIVE, TOLD), make(METHOD)
    parallel.go(learner, range(6), raw_chunk)
    parallel.go(large, range(6), partial(raw_chunk, factor=1000.0))
    parallel.go(unscaled, range(6), raw_chunk)
    close = partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4)
    for gear in range(2):
        one, thousand, other = (each.states().learners[gear] for each in (learner, large, unscaled))
        jax.tree.map(close, (thousand.params, thousand.target_critics), (one.params, one.target_critics))
        np.testing.assert_allclose(thousand.reward_scale, 1000 * one.reward_scale, rtol=1e-4)
        np.testing.assert_array_equal(other.reward_scale, 1)
        assert not np.allclose(one.params.critics[0].weight, other.params.critics[0].weight, rtol=2e-3, atol=2e-4)
    one, thousand, other = (each.states().learners[-1] for each in (learner, large, unscaled))
    jax.tree.map(close, (thousand.params, thousand.target), (one.params, one.target))
    np.testing.assert_allclose(thousand.reward_scale, 1000 * one.reward_scale, rtol=1e-4)
    assert not np.allclose(one.params[0].weight, other.params[0].weight, rtol=2e-3, atol=2e-4)
    # What is deployed, and what a relative coefficient of 1 costs, are in the task's rewards.
    small, dear = (each.published() for each in (learner, large))
    np.testing.assert_allclose(dear.cost_units, 1000 * small.cost_units, rtol=1e-4)
    scale = one.reward_scale[:, None]
    np.testing.assert_allclose(small.networks[-1][-1].bias, one.params[-1].bias * scale, rtol=1e-5)
    for part in ("weight", "bias"):
        small_part, dear_part = (getattr(each.networks[-1][-1], part) for each in (small, dear))
        np.testing.assert_allclose(dear_part, 1000 * small_part, rtol=1e-2, atol=1e-2 * np.abs(dear_part).max())


def test_without_scaled_rewards_the_master_is_paid_the_tasks_own(make) -> None:
    learner, plain = make(LENIENT), make(METHOD)
    for each in (learner, plain):
        parallel.go(each, range(2), parallel.chunk)
    assert_close(learner.states().learners[-1], plain.states().learners[-1])
    np.testing.assert_array_equal(learner.states().learners[-1].reward_scale, 1)


def test_only_relative_coefficients_follow_the_scale_of_rewards(make) -> None:
    """Agent 0's are, agent 1's are not; told in rewards beforehand they learn the same."""
    learner = make(METHOD._replace(relative_costs=True), MIXED)
    learner.insert(raw_chunk(0))
    learner.start(CHUNK)
    learner.wait()
    unit = learner.published().cost_units[0]
    units = np.array([unit, 1], np.float32)
    told = make(METHOD, AGENTS._replace(cost_low=AGENTS.cost_low * units, cost_high=AGENTS.cost_high * units))
    told.insert(raw_chunk(0))
    told.start(CHUNK)
    told.wait()
    assert 0 < unit != 1
    assert_close(learner.states().learners, told.states().learners)


def test_twins_are_lenient_until_an_episode_ends_for_real(make) -> None:
    """Agent 1's first episode ends for real in the first chunk, agent 0's never do, though some run out of time."""

    def chunk(number: int) -> np.ndarray:
        rows = raw_chunk(number)
        rows[0, 7, COLUMNS.ended] = 1
        return rows

    lenient = make(LENIENT)
    as_told = {each: make(METHOD, AGENTS._replace(pessimism=np.array(each, np.float32))) for each in ((0, 1), (1, 1))}
    for learner in (lenient, *as_told.values()):
        parallel.go(learner, range(4), chunk)
    np.testing.assert_array_equal(lenient.states().statistics.ends, [0, 4])
    found = lenient.states().learners
    assert_close(found, as_told[0, 1].states().learners)
    pessimistic = as_told[1, 1].states().learners
    for gear in range(2):
        assert not equal(agent(found[gear].params, slice(0, 1)), agent(pessimistic[gear].params, slice(0, 1)))
        assert_close(agent(found[gear], slice(1, 2)), agent(pessimistic[gear], slice(1, 2)))


@pytest.fixture(scope="module")
def reference():
    """All of it on one core: what was known in the middle and at the end."""
    learner = ParallelLearner(ALL, MIXED, CAPACITY, cores=1)
    parallel.go(learner, range(1), raw_chunk)
    learner.published()
    with compilations() as compiled:
        parallel.go(learner, range(1, 3), raw_chunk)
        middle = learner.states(), learner.time
        metrics = parallel.go(learner, range(3, 6), raw_chunk)
        published = learner.published()
    yield {
        "middle": middle,
        "states": learner.states(),
        "metrics": metrics,
        "published": published,
        "compiled": compiled,
    }
    learner.close()


def test_nothing_is_compiled_after_the_first_chunk(reference) -> None:
    assert not reference["compiled"]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((reference["states"], reference["metrics"])))


def test_actors_and_temperatures_step_at_every_other_update(reference) -> None:
    for gear in range(2):
        state = reference["states"].learners[gear]
        np.testing.assert_array_equal(state.critic_adam.count, [6 * CHUNK] * 2)
        np.testing.assert_array_equal(state.policy_adam.count, [3 * CHUNK] * 2)
    assert {"gear0_entropy", "gear0_alpha", "gear0_critic_loss", "gear1_value"} <= reference["metrics"].keys()


def test_statistics_are_those_of_all_chunks(reference) -> None:
    statistics = reference["states"].statistics
    rows = np.concatenate([raw_chunk(number) for number in range(6)], axis=1)  # more than the rings hold
    assert rows.shape[1] > CAPACITY
    np.testing.assert_array_equal(statistics.observation.size, [48, 48])
    seen = rows[..., COLUMNS.observation]
    np.testing.assert_allclose(statistics.observation.mean, seen.mean(axis=1), rtol=1e-4)
    np.testing.assert_allclose(statistics.observation.variance, seen.var(axis=1), rtol=1e-3)
    np.testing.assert_array_equal(statistics.ends, [0, 6])


def test_a_restored_learner_goes_on_bit_for_bit(reference, make) -> None:
    states, time = reference["middle"]
    other = make(ALL, MIXED)
    other.restore(states, time)
    for number in range(3):
        other.insert(raw_chunk(number), known=True)  # these rows are in the restored statistics
    assert_equal(other.states(), states)
    metrics = parallel.go(other, range(3, 6), raw_chunk)
    assert_equal(other.states(), reference["states"])
    assert_equal(metrics, reference["metrics"])
    assert_equal(other.published(), reference["published"])


@pytest.mark.parametrize("cores", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_cut_over_cores_changes_nothing(reference, make, cores: int) -> None:
    learner = make(ALL, MIXED, cores)
    assert len(learner.jobs) >= cores
    metrics = parallel.go(learner, range(6), raw_chunk)
    assert_close(learner.states(), reference["states"])
    assert_close(metrics, reference["metrics"])


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_agents_of_several_environments_meet_what_each_of_them_does(shift: float) -> None:
    """Returns are those of an environment's own steps, with what is added to rewards of tasks with goals."""
    goals = Goals((0, 1), (1, 2), Distance(1.0), 0.8, shift, False)
    method = METHOD._replace(replay=METHOD.replay._replace(environments=2), goals=goals)
    rows = np.stack([raw_chunk(number) for number in range(2)], axis=1)  # (P, E, K, width)
    fresh = normalisation.init(2, 2)
    every = jax.tree.map(lambda x: jnp.broadcast_to(x, (POPULATION, *x.shape)), fresh)
    agents = jax.tree.map(jnp.asarray, AGENTS)
    found = algorithm.observe(every, jnp.asarray(rows.reshape(POPULATION, 2 * CHUNK, -1)), agents, method)
    rows[..., COLUMNS.reward] += shift
    for p in range(POPULATION):
        expected = normalisation.observe(
            fresh, jnp.asarray(rows[p]), COLUMNS, AGENTS.discount[p], AGENTS.master_discount[p]
        )
        assert_close(jax.tree.map(lambda x, p=p: x[p], found), expected)
