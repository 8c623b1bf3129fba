"""Observations on a scale: measured once, seen by the learners alone, and folded into what acts."""

from functools import partial

import jax
import numpy as np
import pytest

from lowgear.envs.goals import Distance
from lowgear.learning.hindsight import Goals
from lowgear.learning.networks import Layer
from lowgear.learning.normalisation import LEAST, Scale, fold, measure
from lowgear.policy.controller import Weights, act, values
from lowgear.training.parallel import Learner
from tests.training import test_parallel as plain

OBSERVED, NEXT = plain.COLUMNS.observation, plain.COLUMNS.next_observation
SCALED = plain.METHOD._replace(scaled=True)
CENTRE, SPREAD = np.array([1.3, -4.0], np.float32), np.array([0.02, 30.0], np.float32)


def raw_chunk(number: int) -> np.ndarray:
    """The chunk of the plain learner's tests, its observations elsewhere and of other sizes."""
    rows = plain.chunk(number)
    for columns in (OBSERVED, NEXT):
        rows[..., columns] = rows[..., columns] * SPREAD + CENTRE
    return rows


def go(learner: Learner, numbers: range, chunk=raw_chunk) -> None:
    for number in numbers:
        learner.insert(chunk(number))
        learner.start(plain.CHUNK)
        learner.wait()


@pytest.fixture
def learner():
    made = Learner(SCALED, plain.KNOBS, plain.CAPACITY, cores=1)
    yield made
    made.close()


def test_the_scale_is_mean_and_deviation_of_each_input() -> None:
    seen = np.array([[[1, 10], [3, 10]], [[0, -1], [0, 1]]], np.float32)
    centre, spread = measure(seen)
    np.testing.assert_allclose(centre, [[2, 10], [0, 0]])
    np.testing.assert_allclose(spread, [[1, LEAST], [LEAST, 1]])
    assert centre.dtype == spread.dtype == np.float32


def test_goals_share_a_scale_because_hindsight_swaps_them() -> None:
    goals = Goals((1, 2), (2, 3), Distance(0.05), 0.8, 0.0, False)
    seen = np.array([[[5, 0, 4], [7, 2, 6]]], np.float32)  # achieved 0 and 2, desired 4 and 6
    centre, spread = measure(seen, goals)
    np.testing.assert_allclose(centre, [[6, 3, 3]])
    np.testing.assert_allclose(spread, [[1, 5**0.5, 5**0.5]])


def test_a_folded_network_makes_of_raw_what_the_other_makes_of_scaled() -> None:
    rng = np.random.default_rng(0)
    network = tuple(
        Layer(rng.normal(size=(2, a, b)).astype(np.float32), rng.normal(size=(2, b)).astype(np.float32))
        for a, b in ((3, 4), (4, 4), (4, 2))
    )
    scale = Scale(np.array([CENTRE, -CENTRE]), np.array([SPREAD, 2 * SPREAD]))
    scaled = rng.normal(size=(2, 5, 2)).astype(np.float32)
    raw = scaled * scale.spread[:, None] + scale.centre[:, None]
    position = rng.uniform(-1, 1, (2, 5)).astype(np.float32)
    expected = values(Weights((), network), scaled, position, "tanh")
    np.testing.assert_allclose(
        values(Weights((), fold(network, scale)), raw, position, "tanh"), expected, rtol=1e-3, atol=1e-4
    )
    assert fold(network, scale)[0].weight.dtype == np.float32


def test_learners_learn_as_from_observations_that_were_scaled_before(learner) -> None:
    go(learner, range(6))
    seen = raw_chunk(0)[..., OBSERVED]  # the first update came after one chunk
    scale = measure(seen)
    plain.assert_equal(learner.state().scale, scale)

    def scaled_chunk(number: int) -> np.ndarray:
        rows = raw_chunk(number)
        for columns in (OBSERVED, NEXT):
            rows[..., columns] = (rows[..., columns] - scale.centre[:, None]) / scale.spread[:, None]
        return rows

    other = Learner(plain.METHOD, plain.KNOBS, plain.CAPACITY, cores=1)
    try:
        go(other, range(6), scaled_chunk)
        close = partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4)
        jax.tree.map(close, learner.state().learners, other.state().learners)
        *gears, _ = learner.acting()
        *other_gears, _ = other.acting()
        raw, scaled = raw_chunk(7)[..., OBSERVED], scaled_chunk(7)[..., OBSERVED]
        number = np.ones(raw.shape[:2], np.int32)
        close(act(gears, raw, number, "tanh"), act(other_gears, scaled, number, "tanh"), atol=1e-2)
    finally:
        other.close()


def test_a_restored_learner_keeps_its_scale(learner) -> None:
    go(learner, range(2))
    state, time = learner.state(), learner.time
    go(learner, range(2, 4))
    other = Learner(SCALED, plain.KNOBS, plain.CAPACITY, cores=1)
    try:
        other.insert(raw_chunk(1))  # of what the scale was measured on, nothing is left
        other.insert(raw_chunk(1))
        other.restore(state, time)
        go(other, range(2, 4))
        plain.assert_equal(other.state().scale, state.scale)
        assert (other.state().scale.spread != 1).all()
    finally:
        other.close()


def test_before_the_first_update_observations_are_as_they_are(learner) -> None:
    other = Learner(plain.METHOD, plain.KNOBS, plain.CAPACITY, cores=1)
    try:
        plain.assert_equal(learner.acting(), other.acting())
    finally:
        other.close()
