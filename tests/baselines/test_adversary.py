import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from lowgear.baselines import adversary
from lowgear.learning.normalisation import Running


def pairs(seed, rows=32, shift=0.0):
    generator = np.random.default_rng(seed)
    observation = jnp.asarray(generator.normal(shift, 1, (rows, 3)), jnp.float32)
    return observation, jnp.asarray(generator.uniform(-1, 1, (rows, 2)), jnp.float32)


def fresh(units=6):
    return adversary.init(jax.random.key(0), pairs(0)[0], 2, units)


def test_an_adversary_that_knows_nothing():
    network = jax.tree.map(jnp.zeros_like, fresh().network)
    value, metrics = adversary.loss(network, pairs(1), pairs(2), 0.1)
    assert metrics["adversary_loss"] == pytest.approx(2 * np.log(2), rel=1e-6)
    assert value == pytest.approx(2 * np.log(2) - 0.1 * np.log(2), rel=1e-6)
    judge = fresh()._replace(network=network)
    np.testing.assert_allclose(adversary.reward(judge, *pairs(1)), np.log(2), rtol=1e-6)


def test_reward_and_loss_by_hand():
    """A network of biases alone: logit 1 for everything, D = 1 / (1 + e⁻¹)."""
    network = jax.tree.map(jnp.zeros_like, fresh().network)
    network = (*network[:-1], network[-1]._replace(bias=jnp.ones(1)))
    chance = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(
        adversary.reward(fresh()._replace(network=network), *pairs(1)), -np.log(1 - chance), rtol=1e-5
    )
    value, metrics = adversary.loss(network, pairs(1), pairs(2), 1.0)
    entropy = -chance * np.log(chance) - (1 - chance) * np.log(1 - chance)
    assert value == pytest.approx(-np.log(1 - chance) - np.log(chance) - entropy, rel=1e-5)
    assert metrics["adversary_accuracy"] == 0.5


def test_the_gradient_is_the_losses_slope():
    flat, unravel = ravel_pytree(fresh(2).network)

    def loss(x):
        return adversary.loss(unravel(x), pairs(1), pairs(2, shift=1.0), 0.5)[0]

    found = jax.jit(jax.grad(loss))(flat)
    judged = jax.jit(loss)
    for i in range(0, len(flat), 3):
        step = np.zeros(len(flat), np.float32)
        step[i] = 1e-2
        slope = (float(judged(flat + step)) - float(judged(flat - step))) / 2e-2
        assert float(found[i]) == pytest.approx(slope, abs=2e-4)


def test_running_moments_are_those_of_everything_seen():
    student, teacher = pairs(1, 20), pairs(2, 50, shift=3.0)
    found = adversary.update(fresh(), student, teacher, 0.01, 1e-3)[0].moments
    every = np.concatenate([pairs(0)[0], student[0], teacher[0]])
    np.testing.assert_allclose(found.mean, every.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(found.variance, every.var(axis=0), rtol=1e-4)
    assert found.size == len(every)


def test_standardised_observations_stay_within_bounds():
    moments = Running(jnp.float32(1), jnp.array([1.0, 0.0]), jnp.array([4.0, 0.0]))
    seen = adversary.standardise(moments, jnp.array([[5.0, 0.0], [-99.0, 1.0]]))
    assert seen.tolist() == [[2.0, 0.0], [-10.0, 10.0]]


def test_the_first_step_of_adam_is_the_rate_and_more_of_them_tell_the_two_apart():
    judge, student, teacher = fresh(), pairs(1), pairs(2, shift=2.0)
    update = jax.jit(adversary.update)
    new, _ = update(judge, student, teacher, 0.01, 1e-3)
    assert np.abs(new.network[0].weight - judge.network[0].weight).max() == pytest.approx(0.01, rel=1e-3)
    for _ in range(100):
        judge, metrics = update(judge, student, teacher, 0.01, 1e-3)
    assert metrics["adversary_accuracy"] > 0.9
    assert adversary.reward(judge, *teacher).mean() > 2 * adversary.reward(judge, *student).mean()
