import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from lowgear.baselines import trpo
from lowgear.baselines.trpo import Gaussian, TrpoSettings

SETTINGS = TrpoSettings()
improve = jax.jit(trpo.improve, static_argnames="settings")
fisher_product = jax.jit(trpo.fisher_product)
fit_value = jax.jit(trpo.fit_value)


@functools.cache
def problem(seed, rows=64, units=5):
    keys = jax.random.split(jax.random.key(seed), 4)
    state = trpo.init(keys[0], 3, 2, units, 4)
    observation = jax.random.normal(keys[1], (rows, 3))
    policy = trpo.gaussian(state.actor, observation)
    raw = policy.mean + jnp.exp(policy.log_std) * jax.random.normal(keys[2], (rows, 2))
    return state, observation, raw, jax.random.normal(keys[3], (rows,))


def test_the_authors_settings():
    assert (SETTINGS.max_kl, SETTINGS.discount, SETTINGS.value_rate) == (0.01, 0.99, 3e-4)


def test_density_and_divergence_by_hand():
    old = Gaussian(jnp.array([[0.0]]), jnp.log(jnp.array([[1.0]])))
    new = Gaussian(jnp.array([[1.0]]), jnp.log(jnp.array([[2.0]])))
    # log N(3; 1, 2) = -1/2 - log 2 - log(2π)/2
    expected = -0.5 - np.log(2) - 0.5 * np.log(2 * np.pi)
    assert trpo.log_density(new, jnp.array([[3.0]]))[0] == pytest.approx(expected, rel=1e-6)
    assert trpo.divergence(old, new) == pytest.approx(np.log(2) + 2 / 8 - 0.5, rel=1e-6)
    assert trpo.divergence(new, new) == 0


def test_the_divergence_sums_over_actions_and_averages_over_states():
    old = Gaussian(jnp.zeros((2, 3)), jnp.zeros((2, 3)))
    new = Gaussian(jnp.array([[1.0, 0, 0], [1.0, 1.0, 0]]), jnp.zeros((2, 3)))
    assert trpo.divergence(old, new) == pytest.approx((0.5 + 1.0) / 2)


def test_the_fisher_product_is_that_of_the_divergences_hessian():
    state, observation, _, _ = problem(0, rows=7, units=2)
    flat, unravel = ravel_pytree(state.actor)
    here = trpo.gaussian(state.actor, observation)
    hessian = jax.jit(jax.hessian(lambda x: trpo.divergence(here, trpo.gaussian(unravel(x), observation))))(flat)
    vector = jax.random.normal(jax.random.key(1), flat.shape)
    found = fisher_product(state.actor, observation, vector)
    np.testing.assert_allclose(found, hessian @ vector, rtol=1e-4, atol=1e-5)
    assert np.linalg.eigvalsh(np.array(hessian)).min() > -1e-5


def test_the_fisher_product_predicts_the_divergence_of_a_small_step():
    state, observation, _, _ = problem(2)
    flat, unravel = ravel_pytree(state.actor)
    step = 0.01 * jax.random.normal(jax.random.key(3), flat.shape)
    moved = trpo.divergence(trpo.gaussian(state.actor, observation), trpo.gaussian(unravel(flat + step), observation))
    assert moved == pytest.approx(float(0.5 * step @ fisher_product(state.actor, observation, step)), rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_gains_and_stays_within_the_trust_region(seed):
    state, observation, raw, advantage = problem(seed)
    new, metrics = improve(state.actor, observation, raw, advantage, settings=SETTINGS)
    old_policy, new_policy = trpo.gaussian(state.actor, observation), trpo.gaussian(new, observation)
    ratio = jnp.exp(trpo.log_density(new_policy, raw) - trpo.log_density(old_policy, raw))
    assert trpo.divergence(old_policy, new_policy) == pytest.approx(float(metrics["kl"]), rel=1e-2)
    assert 0.002 < metrics["kl"] <= SETTINGS.kl_slack * SETTINGS.max_kl
    assert metrics["gain"] > 0
    assert (ratio * advantage).mean() - advantage.mean() == pytest.approx(float(metrics["gain"]), abs=1e-5)


def test_without_advantages_nothing_moves():
    state, observation, raw, advantage = problem(0)
    new, metrics = improve(state.actor, observation, raw, jnp.zeros_like(advantage), settings=SETTINGS)
    np.testing.assert_array_equal(ravel_pytree(new)[0], ravel_pytree(state.actor)[0])
    assert metrics["kl"] == 0


@pytest.mark.parametrize(
    ("kl_of", "gain_of", "taken"),
    [
        (lambda x: 0.01 * x, lambda x: x, 1.0),  # the whole step
        (lambda x: 0.05 * x**2, lambda x: x, 0.5),  # half: 0.0125 is within 0.015
        (lambda x: 0.01 * x, lambda x: 0.3 - x, 0.25),  # gains only when short
        (lambda x: 0.01 * x, lambda x: -x, 0.0),
        (lambda x: 1.0 + x, lambda x: x, 0.0),  # never accepted
        (lambda x: jnp.nan * x, lambda x: x, 0.0),
        (lambda x: 0.01 * x, lambda x: jnp.nan * x, 0.0),
    ],
)
def test_the_line_search_takes_the_longest_step_that_is_allowed(kl_of, gain_of, taken):
    found, kl = trpo.line_search(jnp.zeros(1), jnp.ones(1), lambda x: (gain_of(x[0]), kl_of(x[0])), SETTINGS)
    assert found.tolist() == [taken]
    assert kl == pytest.approx(float(kl_of(taken)) if taken else 0.0)


def test_advantages_by_hand():
    settings = TrpoSettings(discount=0.5, trace=0.5)
    reward, value, after = ([[1.0], [2.0], [3.0], [4.0]], [[0.5], [1.0], [1.5], [2.0]], [[1.0], [9.0], [8.0], [6.0]])
    terminated, ended = [[0.0], [0.0], [1.0], [0.0]], [[0.0], [1.0], [1.0], [0.0]]
    found = trpo.advantages(*map(jnp.array, (reward, value, after, terminated, ended)), settings)
    fourth = 4 + 0.5 * 6 - 2  # the batch ends here: bootstrapped
    third = 3 - 1.5  # a real end
    second = 2 + 0.5 * 9 - 1  # a time limit: bootstrapped, but nothing of the next episode
    first = 1 + 0.5 * 1 - 0.5 + 0.25 * second
    assert found[:, 0].tolist() == pytest.approx([first, second, third, fourth])


def test_the_value_takes_one_step_of_adam_for_each_batch():
    state, observation, _, target = problem(0)
    rows = jnp.arange(64).reshape(1, 64)
    value, _ = fit_value(state.value, state.value_adam, observation, target + 5, rows, 0.01)
    assert value[-1].bias[0] == pytest.approx(0.01, rel=1e-4)  # far too low: the bias rises by the rate
    many = jnp.tile(rows, (500, 1))
    value, _ = fit_value(state.value, state.value_adam, observation, jnp.full(64, 2.0), many, 0.01)
    np.testing.assert_allclose(trpo.values(value, observation), 2.0, atol=0.1)
