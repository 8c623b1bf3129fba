"""Normalised observations: estimated once, and folded into what acts."""

import numpy as np

from lowgear.envs.goals import Distance
from lowgear.learning.hindsight import Goals
from lowgear.learning.networks import Layer
from lowgear.learning.normalisation import LEAST_STD, Normaliser, estimate, fold, identity, normalise
from lowgear.learning.transitions import Transitions
from lowgear.policy.controller import mlp

MEAN, STD = np.array([1.3, -4.0], np.float32), np.array([0.02, 30.0], np.float32)


def test_estimated_are_mean_and_deviation_of_each_input() -> None:
    seen = np.array([[[1, 10], [3, 10]], [[0, -1], [0, 1]]], np.float32)
    mean, std = estimate(seen)
    np.testing.assert_allclose(mean, [[2, 10], [0, 0]])
    np.testing.assert_allclose(std, [[1, LEAST_STD], [LEAST_STD, 1]])
    assert mean.dtype == std.dtype == np.float32


def test_goals_share_a_normaliser_because_hindsight_swaps_them() -> None:
    goals = Goals((1, 2), (2, 3), Distance(0.05), 0.8, 0.0, False)
    seen = np.array([[[5, 0, 4], [7, 2, 6]]], np.float32)  # achieved 0 and 2, desired 4 and 6
    mean, std = estimate(seen, goals)
    np.testing.assert_allclose(mean, [[6, 3, 3]])
    np.testing.assert_allclose(std, [[1, 5**0.5, 5**0.5]])


def test_a_folded_network_makes_of_raw_what_the_other_makes_of_normalised() -> None:
    rng = np.random.default_rng(0)
    network = tuple(
        Layer(rng.normal(size=(2, a, b)).astype(np.float32), rng.normal(size=(2, b)).astype(np.float32))
        for a, b in ((3, 4), (4, 4), (4, 2))
    )
    normaliser = Normaliser(np.array([MEAN, -MEAN]), np.array([STD, 2 * STD]))
    normalised = rng.normal(size=(2, 5, 2)).astype(np.float32)
    raw = normalised * normaliser.std[:, None] + normaliser.mean[:, None]
    position = rng.uniform(-1, 1, (2, 5, 1)).astype(np.float32)  # it comes after the observation, and stays as it is
    expected = mlp(network, np.concatenate([normalised, position], axis=-1), "tanh")
    folded = fold(network, normaliser)
    found = mlp(folded, np.concatenate([raw, position], axis=-1), "tanh")
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert folded[0].weight.dtype == np.float32


def test_a_batch_is_normalised_by_hand_and_nothing_by_the_identity() -> None:
    seen, then = np.array([[1.32, 26.0], [1.3, -4.0]], np.float32), np.array([[1.28, -64.0], [1.36, -34.0]], np.float32)
    batch = Transitions(seen, np.ones((2, 1)), np.ones(2), np.ones(2), then)
    found = normalise(batch, Normaliser(MEAN, STD))
    np.testing.assert_allclose(found.observation, [[1, 1], [0, 0]], atol=1e-5)
    np.testing.assert_allclose(found.next_observation, [[-1, -2], [3, -1]], atol=1e-5)
    assert all(getattr(found, name) is getattr(batch, name) for name in ("action", "reward", "discount"))
    same = normalise(batch, Normaliser(*(part[0] for part in identity(1, 2))))
    np.testing.assert_array_equal(same.observation, seen)
