"""Running statistics: those of all that was met, goals as one, and folded into what acts; and the scale of rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.envs.goals import Distance
from lowgear.learning import normalisation
from lowgear.learning.hindsight import Goals
from lowgear.learning.networks import Layer
from lowgear.learning.normalisation import (
    LEAST_STD,
    Normaliser,
    Returns,
    Running,
    Statistics,
    fold,
    merge,
    normalise,
    normaliser,
    reward_scale,
)
from lowgear.learning.replay import Columns
from lowgear.learning.transitions import Transitions
from lowgear.policy.networks import mlp

MEAN, STD = np.array([1.3, -4.0], np.float32), np.array([0.02, 30.0], np.float32)
COLUMNS, DISCOUNT, MASTER_DISCOUNT = Columns(obs_dim=2, act_dim=1), 0.9, 0.5
DISCOUNTS = {"discount": jnp.float32(DISCOUNT), "master_discount": jnp.float32(MASTER_DISCOUNT)}
observe = jax.jit(partial(normalisation.observe, columns=COLUMNS, **DISCOUNTS))


def lived(environments: int, steps: int, seed: int = 0) -> np.ndarray:
    """Rows (E, steps, width) of episodes that end here and there, some of them for real."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(environments, steps, COLUMNS.width)).astype(np.float32)
    rows[..., COLUMNS.observation] = rows[..., COLUMNS.observation] * STD + MEAN
    rows[..., COLUMNS.reward] += 0.5
    rows[..., COLUMNS.ended] = rng.random((environments, steps)) < 0.15
    rows[..., COLUMNS.alive] = 1 - rows[..., COLUMNS.ended] * (rng.random((environments, steps)) < 0.5)
    return rows


def returns_by_hand(rows: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The discounted sum of each episode's rewards so far, after every step; and as the next step finds it."""
    after, found = np.zeros(len(rows)), []
    for t in range(rows.shape[1]):
        now = discount * after + rows[:, t, COLUMNS.reward]
        found.append(now)
        after = np.where(rows[:, t, COLUMNS.ended] > 0, 0, now)
    return np.array(found), after


def met(rows: np.ndarray, chunk: int) -> Statistics:
    statistics = normalisation.init(2, len(rows))
    for begin in range(0, rows.shape[1], chunk):
        statistics = observe(statistics, rows[:, begin : begin + chunk])
    return statistics


@pytest.mark.parametrize(("environments", "chunk"), [(1, 40), (1, 8), (3, 8), (3, 1)])
def test_statistics_are_those_of_all_rows_however_they_came(environments: int, chunk: int) -> None:
    rows = lived(environments, 40)
    found = met(rows, chunk)
    seen = rows[..., COLUMNS.observation].reshape(-1, 2).astype(np.float64)
    assert found.observation.size == environments * 40
    np.testing.assert_allclose(found.observation.mean, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.observation.variance, seen.var(axis=0), rtol=1e-3)
    for kept, discount in ((found.gear_returns, DISCOUNT), (found.master_returns, MASTER_DISCOUNT)):
        returns, still_open = returns_by_hand(rows.astype(np.float64), discount)
        assert kept.running.size == environments * 40
        np.testing.assert_allclose(kept.running.mean, [returns.mean()], rtol=1e-4)
        np.testing.assert_allclose(kept.running.variance, [returns.var()], rtol=1e-4)
        np.testing.assert_allclose(kept.largest, np.abs(returns).max(), rtol=1e-5)
        np.testing.assert_allclose(kept.open, still_open, rtol=1e-4, atol=1e-6)
    real = (1 - rows[..., COLUMNS.alive]).sum()
    assert found.ends == real
    assert 0 < real < rows[..., COLUMNS.ended].sum()


def test_a_return_goes_on_into_the_next_chunk_and_ends_with_its_episode() -> None:
    rows = np.zeros((2, 4, COLUMNS.width), np.float32)
    rows[..., COLUMNS.alive] = 1
    rows[..., COLUMNS.reward] = [[1, 2, 3, 4], [0, 0, 0, -10]]
    rows[0, 2, COLUMNS.ended] = 1  # at a time limit
    first = observe(normalisation.init(2, 2), rows[:, :2])
    np.testing.assert_allclose(first.gear_returns.open, [2.9, 0], rtol=1e-6)
    np.testing.assert_allclose(first.master_returns.open, [2.5, 0], rtol=1e-6)
    second = observe(first, rows[:, 2:])
    np.testing.assert_allclose(second.gear_returns.open, [4, -10], rtol=1e-6)
    np.testing.assert_allclose(second.master_returns.open, [4, -10], rtol=1e-6)
    returns = [1, 2.9, 0.9 * 2.9 + 3, 4, 0, 0, 0, -10]
    np.testing.assert_allclose(second.gear_returns.running.mean, [np.mean(returns)], rtol=1e-5)
    np.testing.assert_allclose(second.gear_returns.running.variance, [np.var(returns)], rtol=1e-5)
    returns = [1, 2.5, 0.5 * 2.5 + 3, 4, 0, 0, 0, -10]
    np.testing.assert_allclose(second.master_returns.running.mean, [np.mean(returns)], rtol=1e-5)
    np.testing.assert_allclose(second.master_returns.running.variance, [np.var(returns)], rtol=1e-5)
    assert second.gear_returns.largest == second.master_returns.largest == 10
    assert second.ends == 0


def test_far_from_zero_the_variance_is_still_right() -> None:
    values = (1000 + np.random.default_rng(0).normal(size=(4096, 1))).astype(np.float32)
    running = Running(jnp.zeros(()), jnp.zeros(1), jnp.zeros(1))
    for part in np.split(values, 64):
        running = merge(running, jnp.asarray(part))
    np.testing.assert_allclose(running.variance, values.astype(np.float64).var(axis=0), rtol=1e-3)


def test_nothing_is_promoted_silently() -> None:
    statistics = normalisation.init(2, 3)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        observe = partial(normalisation.observe, columns=COLUMNS, **DISCOUNTS)
        after = jax.eval_shape(observe, statistics, jnp.asarray(lived(3, 4)))
        shapes = jax.tree.map(lambda x: (x.shape, x.dtype), (statistics, after))
        assert shapes[0] == shapes[1]
        assert jax.eval_shape(reward_scale, statistics.master_returns).shape == ()
        assert {part.shape for part in jax.eval_shape(normaliser, statistics)} == {(2,)}


def test_mean_and_deviation_of_each_input_by_hand() -> None:
    rows = np.zeros((1, 2, COLUMNS.width), np.float32)
    rows[0, :, COLUMNS.observation] = [[1, 10], [3, 10]]
    mean, std = normaliser(observe(normalisation.init(2, 1), rows))
    np.testing.assert_allclose(mean, [2, 10])
    np.testing.assert_allclose(std, [1, LEAST_STD])  # what never moves is not blown up
    assert mean.dtype == std.dtype == np.float32


def test_goals_share_a_normaliser_because_hindsight_swaps_them() -> None:
    goals = Goals((1, 2), (2, 3), Distance(0.05), 0.8, 0.0, False)
    columns = Columns(obs_dim=3, act_dim=1)
    rows = np.zeros((1, 2, columns.width), np.float32)
    rows[0, :, columns.observation] = [[5, 0, 4], [7, 2, 6]]  # achieved 0 and 2, desired 4 and 6
    statistics = normalisation.observe(normalisation.init(3, 1), jnp.asarray(rows), columns, **DISCOUNTS)
    mean, std = normaliser(statistics, goals)
    np.testing.assert_allclose(mean, [6, 3, 3])
    np.testing.assert_allclose(std, [1, 5**0.5, 5**0.5], rtol=1e-6)
    np.testing.assert_allclose(normaliser(statistics).mean, [6, 1, 5])  # without hindsight each has its own


@pytest.mark.parametrize(
    ("variance", "largest", "scale"),
    [
        (9.0, 10.0, 3.0),  # the deviation
        (9.0, 20.0, 4.0),  # a fifth of the largest
        (0.0, 0.0, 1.0),  # nothing was paid yet
        (1e-6, 0.0, 1e-3),
        (0.0, 50.0, 10.0),
    ],
)
def test_the_scale_of_rewards_by_hand(variance: float, largest: float, scale: float) -> None:
    running = Running(jnp.float32(7), jnp.zeros(1), jnp.full(1, variance))
    assert reward_scale(Returns(jnp.zeros(1), running, jnp.float32(largest))) == pytest.approx(scale, rel=1e-5)
    assert reward_scale(normalisation.init(2, 1).gear_returns) == 1


def test_rewards_a_thousand_times_as_large_have_a_scale_a_thousand_times_as_large() -> None:
    rows = lived(2, 40)
    large = rows.copy()
    large[..., COLUMNS.reward] *= 1000
    found, small = met(large, 8), met(rows, 8)
    for name in ("gear_returns", "master_returns"):
        scale, plain = (reward_scale(getattr(each, name)) for each in (found, small))
        np.testing.assert_allclose(scale, 1000 * plain, rtol=1e-5)
    assert reward_scale(small.gear_returns) > reward_scale(small.master_returns)  # of the farther sight


def test_a_folded_network_makes_of_raw_what_the_other_makes_of_normalised() -> None:
    rng = np.random.default_rng(0)
    network = tuple(
        Layer(rng.normal(size=(2, a, b)).astype(np.float32), rng.normal(size=(2, b)).astype(np.float32))
        for a, b in ((3, 4), (4, 4), (4, 2))
    )
    by = Normaliser(np.array([MEAN, -MEAN]), np.array([STD, 2 * STD]))
    normalised = rng.normal(size=(2, 5, 2)).astype(np.float32)
    raw = normalised * by.std[:, None] + by.mean[:, None]
    position = rng.uniform(-1, 1, (2, 5, 1)).astype(np.float32)  # it comes after the observation, and stays as it is
    expected = mlp(network, np.concatenate([normalised, position], axis=-1), "tanh")
    folded = fold(network, by)
    found = mlp(folded, np.concatenate([raw, position], axis=-1), "tanh")
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert folded[0].weight.dtype == np.float32


def test_a_batch_is_normalised_by_hand_and_by_nothing_before_anything_is_met() -> None:
    seen, then = np.array([[1.32, 26.0], [1.3, -4.0]], np.float32), np.array([[1.28, -64.0], [1.36, -34.0]], np.float32)
    batch = Transitions(seen, np.ones((2, 1)), np.ones(2), np.ones(2), then)
    found = normalise(batch, Normaliser(MEAN, STD))
    np.testing.assert_allclose(found.observation, [[1, 1], [0, 0]], atol=1e-5)
    np.testing.assert_allclose(found.next_observation, [[-1, -2], [3, -1]], atol=1e-5)
    assert all(getattr(found, name) is getattr(batch, name) for name in ("action", "reward", "discount"))
    same = normalise(batch, normaliser(normalisation.init(2, 1)))
    np.testing.assert_array_equal(same.observation, seen)
    np.testing.assert_array_equal(same.next_observation, then)
