"""Running statistics against NumPy on everything at once, and what acts against what learns."""

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import normaliser
from lowgear.collect import held
from lowgear.hindsight import Goals


def met(chunks, discount=0.9):
    statistics = normaliser.init(chunks[0][0].shape[-1], chunks[0][0].shape[0])
    for observations, rewards, ended in chunks:
        statistics = jax.jit(normaliser.update)(statistics, observations, rewards, ended, discount)
    return statistics


def test_statistics_against_numpy():
    rng = np.random.default_rng(0)
    chunks = [
        (
            rng.normal(3, [1, 10, 0], (2, 8, 3)).astype(np.float32),
            rng.normal(size=(2, 8)).astype(np.float32) * 100,
            (rng.random((2, 8)) < 0.2).astype(np.float32),
        )
        for _ in range(20)
    ]
    statistics = met(chunks)
    seen = np.concatenate([o.reshape(-1, 3) for o, _, _ in chunks])
    scale = normaliser.observation_scale(statistics)
    np.testing.assert_allclose(scale.centre, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(scale.spread, [*seen.std(axis=0)[:2], normaliser.LEAST_SPREAD], rtol=1e-5)
    returns, g = [], np.zeros(2)
    for _, rewards, ended in chunks:
        for k in range(8):
            g = 0.9 * g + rewards[:, k]
            returns.append(g)
            g = g * (1 - ended[:, k])
    returns = np.array(returns)
    expected = max(returns.std(), np.abs(returns).max() / 5)
    np.testing.assert_allclose(normaliser.reward_scale(statistics), expected, rtol=1e-5)
    np.testing.assert_allclose(statistics.open_return, g, rtol=1e-5)


def test_no_reward_is_left_as_it_is():
    zeros = np.zeros((1, 4), np.float32)
    assert normaliser.reward_scale(met([(np.zeros((1, 4, 2), np.float32), zeros, zeros)])) == 1


def test_goals_share_one_scale():
    rng = np.random.default_rng(0)
    seen = rng.normal([0, 1, 5], [1, 2, 3], (1, 64, 3)).astype(np.float32)
    zeros = np.zeros((1, 64), np.float32)
    goals = Goals((1, 2), (2, 3), None, 0.8, 0.0, False)
    scale = normaliser.observation_scale(met([(seen, zeros, zeros)]), goals)
    both = seen[0, :, 1:].ravel()
    np.testing.assert_allclose(scale.centre[1:], both.mean(), rtol=1e-4)
    np.testing.assert_allclose(scale.spread[1:], both.std(), rtol=1e-4)
    np.testing.assert_allclose(scale.spread[0], seen[0, :, 0].std(), rtol=1e-4)


def test_held_noise_is_drawn_anew_after_random_times():
    rng = np.random.default_rng(0)
    noise, chance = rng.normal(size=(20_000, 2, 3)).astype(np.float32), rng.random((20_000, 2)).astype(np.float32)
    found = held(noise, chance)
    assert found.shape == noise.shape
    changes = np.flatnonzero((np.diff(found[:, 0, 0]) != 0))
    lengths = np.diff(changes)
    assert lengths.min() == 1
    assert lengths.max() == 16
    weights = 1 / np.arange(1, 17) ** 2
    shares = np.bincount(lengths, minlength=17)[1:] / len(lengths)
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.015)
