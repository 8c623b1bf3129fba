"""Networks against plain NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import networks
from lowgear.learning.networks import CriticStyle, Layer

OBS, ACT, UNITS, BATCH = 5, 3, 7, 11


@pytest.fixture(scope="module", autouse=True)
def strict():
    with jax.numpy_dtype_promotion("strict"):
        yield


def randomise(layers, seed: int):
    """The same shapes with nothing at zero: biases must matter."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), jnp.float32), layers)


def inputs(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(BATCH, n)).astype(np.float32) for n in (OBS, ACT, ACT))


def numpy_mlp(layers, x: np.ndarray, activation: str, normalise: bool = False) -> np.ndarray:
    x = np.asarray(x, np.float64)
    for i, (weight, bias) in enumerate(layers):
        x = x @ np.asarray(weight, np.float64) + np.asarray(bias, np.float64)
        if i < len(layers) - 1:
            if normalise:
                x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
            x = np.tanh(x) if activation == "tanh" else np.maximum(x, 0)
    return x


def constant_actor(mean: float, log_std: float) -> networks.Mlp:
    """An actor of one action that ignores what it sees."""
    actor = jax.tree.map(jnp.zeros_like, networks.init_actor(jax.random.key(0), OBS, 1, UNITS))
    return (*actor[:-1], Layer(actor[-1].weight, jnp.array([mean, log_std], jnp.float32)))


def test_shapes() -> None:
    actor = networks.init_actor(jax.random.key(0), OBS, ACT, UNITS)
    assert [layer.weight.shape for layer in actor] == [(OBS, UNITS), (UNITS, UNITS), (UNITS, 2 * ACT)]
    assert [layer.bias.shape for layer in actor] == [(UNITS,), (UNITS,), (2 * ACT,)]
    critics = networks.init_critics(jax.random.key(0), OBS, ACT, UNITS)
    assert [layer.weight.shape for layer in critics] == [(2, OBS + ACT, UNITS), (2, UNITS, UNITS), (2, UNITS, 1)]
    observation, action, noise = inputs()
    acted, log_density = networks.sample_action(actor, observation, noise, "tanh")
    assert (acted.shape, log_density.shape) == ((BATCH, ACT), (BATCH,))
    assert networks.critic_values(critics, observation, action, CriticStyle("relu", False)).shape == (2, BATCH)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((actor, critics, acted, log_density)))


def test_initial_weights_are_glorot_uniform_and_biases_zero() -> None:
    layers = networks.init_mlp(jax.random.key(1), (40, 200, 200, 6))
    for layer in layers:
        bound = np.sqrt(6 / sum(layer.weight.shape))
        weight = np.asarray(layer.weight)
        assert np.abs(weight).max() <= bound
        assert weight.std() == pytest.approx(bound / np.sqrt(3), rel=0.05)
        assert not layer.bias.any()
    assert not np.array_equal(layers[1].weight[:40, :6], layers[0].weight[:40, :6])


def test_same_key_equal_other_key_different() -> None:
    one, same, other = (networks.init_actor(jax.random.key(k), OBS, ACT, UNITS) for k in (3, 3, 4))
    assert all(np.array_equal(a.weight, b.weight) for a, b in zip(one, same, strict=True))
    assert not any(np.array_equal(a.weight, b.weight) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_sample_action_against_the_textbook_density(activation: str) -> None:
    actor = randomise(networks.init_actor(jax.random.key(0), OBS, ACT, UNITS), 1)
    actor = jax.tree.map(lambda x: 0.5 * x, actor)
    observation, _, noise = inputs(2)
    action, log_density = networks.sample_action(actor, observation, noise, activation)

    mean, log_std = np.split(numpy_mlp(actor, observation, activation), 2, axis=-1)
    std = np.exp(np.clip(log_std, -20, 2))
    raw = mean + std * noise
    gaussian = -0.5 * ((raw - mean) / std) ** 2 - np.log(std * np.sqrt(2 * np.pi))
    expected = (gaussian - np.log(1 - np.tanh(raw) ** 2)).sum(axis=-1)
    np.testing.assert_allclose(action, np.tanh(raw), atol=1e-5)
    np.testing.assert_allclose(log_density, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.0), (-1.5, 0.5)])
def test_density_integrates_to_one(mean: float, log_std: float) -> None:
    noise = np.linspace(-8, 8, 4001, dtype=np.float32)[:, None]
    observation = np.zeros((len(noise), OBS), np.float32)
    action, log_density = networks.sample_action(constant_actor(mean, log_std), observation, noise, "tanh")
    # Near ±1 float32 cannot tell actions apart, so the abscissae are computed again in float64.
    exact = np.tanh(mean + np.exp(log_std) * noise[:, 0].astype(np.float64))
    np.testing.assert_allclose(action[:, 0], exact, atol=1e-6)
    assert np.trapezoid(np.exp(np.asarray(log_density, np.float64)), exact) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("raw", [-1e4, -100.0, -20.0, 20.0, 100.0, 1e4])
def test_density_and_gradient_stay_finite_for_large_raw_actions(raw: float) -> None:
    actor, observation = constant_actor(raw, 0.0), np.zeros((1, OBS), np.float32)
    noise = np.full((1, 1), 0.25, np.float32)
    density = networks.sample_action(actor, observation, noise, "tanh")[1]
    x = abs(raw + 0.25)
    log_slope = 2 * (np.log(2) - x - np.log1p(np.exp(-2 * x)))
    np.testing.assert_allclose(density, [-0.5 * 0.25**2 - 0.5 * np.log(2 * np.pi) - log_slope], rtol=1e-5)
    grads = jax.grad(lambda a: networks.sample_action(a, observation, noise, "tanh")[1].sum())(actor)
    # The density falls by 2 for each unit that |raw| grows, times the reparametrised spread for log_std.
    sign = np.sign(raw)
    np.testing.assert_allclose(grads[-1].bias, [2 * sign, 2 * sign * 0.25 - 1], rtol=1e-4)


@pytest.mark.parametrize(("log_std", "clipped"), [(5.0, 2.0), (-30.0, -20.0)])
def test_log_std_is_clipped(log_std: float, clipped: float) -> None:
    observation, noise = np.zeros((1, OBS), np.float32), np.full((1, 1), -0.3, np.float32)
    for found, expected in zip(
        networks.sample_action(constant_actor(0.1, log_std), observation, noise, "tanh"),
        networks.sample_action(constant_actor(0.1, clipped), observation, noise, "tanh"),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("normalise", [False, True])
def test_critics_are_plain_networks_on_joined_inputs(activation: str, normalise: bool) -> None:
    critics = randomise(networks.init_critics(jax.random.key(0), OBS, ACT, UNITS), 3)
    observation, action, _ = inputs(4)
    values = networks.critic_values(critics, observation, action, CriticStyle(activation, normalise))
    joined = np.concatenate([observation, action], axis=-1)
    for i in range(2):
        expected = numpy_mlp([(w[i], b[i]) for w, b in critics], joined, activation, normalise)[:, 0]
        np.testing.assert_allclose(values[i], expected, rtol=1e-4, atol=1e-4)


def test_fresh_critics_differ_from_each_other() -> None:
    observation, action, _ = inputs(5)
    critics = networks.init_critics(jax.random.key(0), OBS, ACT, UNITS)
    one, two = networks.critic_values(critics, observation, action, CriticStyle("tanh", False))
    assert np.abs(one - two).min() > 1e-4


def test_no_rank_is_promoted_silently() -> None:
    observation, action, noise = inputs()
    with jax.numpy_rank_promotion("raise"):
        actor = networks.init_actor(jax.random.key(0), OBS, ACT, UNITS)
        networks.sample_action(actor, observation, noise, "tanh")
        critics = networks.init_critics(jax.random.key(0), OBS, ACT, UNITS)
        networks.critic_values(critics, observation, action, CriticStyle("relu", True))


@pytest.mark.parametrize("axes", [(None, 0), (0, 0), (0, None)], ids=["shared inputs", "both", "shared weights"])
def test_products_have_the_gradients_of_products(axes: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(2)
    shapes = [(BATCH, OBS), (OBS, UNITS)]
    x, weight = (
        rng.normal(size=shape if axis is None else (2, *shape)) for shape, axis in zip(shapes, axes, strict=True)
    )
    pull = rng.normal(size=(2, BATCH, UNITS))  # a gradient that differs everywhere

    def pulled(x: jax.Array, weight: jax.Array) -> jax.Array:
        return (jax.vmap(networks.product, axes)(x, weight) * jnp.float32(pull)).sum()

    of_x, of_weight = jax.jit(jax.grad(pulled, (0, 1)))(jnp.float32(x), jnp.float32(weight))
    each_x, each_weight = pull @ np.swapaxes(weight, -1, -2), np.swapaxes(x, -1, -2) @ pull
    np.testing.assert_allclose(of_x, each_x if axes[0] == 0 else each_x.sum(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        of_weight, each_weight if axes[1] == 0 else each_weight.sum(axis=0), rtol=1e-4, atol=1e-5
    )
