"""Learners that see normalised observations: as if they had been so before, and none the wiser in what acts."""

from functools import partial

import jax
import numpy as np
import pytest

from lowgear.learning.normalisation import Normaliser, estimate
from lowgear.policy.controller import mlp, squash
from lowgear.training.parallel import ParallelLearner
from tests.fixtures import parallel
from tests.fixtures.methods import assert_equal
from tests.fixtures.parallel import AGENTS, CAPACITY, COLUMNS, METHOD

NORMALISED = METHOD._replace(normalised=True)
MEAN, STD = np.array([1.3, -4.0], np.float32), np.array([0.02, 30.0], np.float32)


def raw_chunk(number: int) -> np.ndarray:
    """The chunk of the plain learner's tests, its observations elsewhere and of other sizes."""
    rows = parallel.chunk(number)
    for columns in (COLUMNS.observation, COLUMNS.next_observation):
        rows[..., columns] = rows[..., columns] * STD + MEAN
    return rows


def normalised_chunk(number: int, by: Normaliser) -> np.ndarray:
    rows = raw_chunk(number)
    for columns in (COLUMNS.observation, COLUMNS.next_observation):
        rows[..., columns] = (rows[..., columns] - by.mean[:, None]) / by.std[:, None]
    return rows


@pytest.fixture
def learner():
    made = ParallelLearner(NORMALISED, AGENTS, CAPACITY, cores=1)
    yield made
    made.close()


@pytest.fixture
def plain():
    made = ParallelLearner(METHOD, AGENTS, CAPACITY, cores=1)
    yield made
    made.close()


def test_learners_learn_as_from_observations_that_were_normalised_before(learner, plain) -> None:
    assert_equal(learner.networks(), plain.networks())  # before the first update, observations are as they are
    parallel.go(learner, range(6), raw_chunk)
    by = estimate(raw_chunk(0)[..., COLUMNS.observation])  # the first update came after one chunk
    assert_equal(learner.states().normaliser, by)
    parallel.go(plain, range(6), lambda number: normalised_chunk(number, by))
    for found, expected in zip(learner.states().learners, plain.states().learners, strict=True):
        jax.tree.map(partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4), found, expected)
    raw, normalised = (rows[..., COLUMNS.observation] for rows in (raw_chunk(7), normalised_chunk(7, by)))
    acted, expected = (
        squash(mlp(each.networks()[1], seen, "tanh")) for each, seen in ((learner, raw), (plain, normalised))
    )
    np.testing.assert_allclose(acted, expected, atol=1e-2)


def test_a_restored_learner_keeps_its_normaliser(learner) -> None:
    parallel.go(learner, range(2), raw_chunk)
    states, time = learner.states(), learner.time
    other = ParallelLearner(NORMALISED, AGENTS, CAPACITY, cores=1)
    try:
        other.insert(raw_chunk(1))  # of what it was estimated on, nothing is left
        other.insert(raw_chunk(1))
        other.restore(states, time)
        parallel.go(other, range(2, 4), raw_chunk)
        assert_equal(other.states().normaliser, states.normaliser)
        assert (other.states().normaliser.std != 1).all()
    finally:
        other.close()
