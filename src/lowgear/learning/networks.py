"""Multilayer perceptrons as plain pytrees: the tanh-Gaussian actor, the twin critics, the master.

A network is a tuple of layers. Functions here see one agent; the population axis is added by `jax.vmap` outside.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lowgear.policy.networks import LOG_STD_MAX, LOG_STD_MIN

ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}


class Layer(NamedTuple):
    """An affine map: `x @ weight + bias`."""

    weight: jax.Array
    bias: jax.Array


Mlp = tuple[Layer, ...]


def init_mlp(key: jax.Array, sizes: tuple[int, ...]) -> Mlp:
    """Layers between consecutive `sizes`, Glorot-uniform weights, biases zero."""
    shapes = list(itertools.pairwise(sizes))
    bounds = jnp.array([(6 / (fan_in + fan_out)) ** 0.5 for fan_in, fan_out in shapes], jnp.float32)
    most = max(fan_in * fan_out for fan_in, fan_out in shapes)

    def draw(layer_key: jax.Array, bound: jax.Array) -> jax.Array:
        return jax.random.uniform(layer_key, (most,), jnp.float32, -bound, bound)

    # Drawn at once for all layers, as many for each as the largest needs: the generator takes long to compile.
    drawn = jax.vmap(draw)(jax.random.split(key, len(shapes)), bounds)
    weights = (row[: a * b].reshape(a, b) for row, (a, b) in zip(drawn, shapes, strict=True))
    return tuple(Layer(weight, jnp.zeros(weight.shape[1], jnp.float32)) for weight in weights)


@jax.custom_vjp
def product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """`x @ weight` of (B, in) and (in, out), with gradients in the forms that are multiplied fastest."""
    return x @ weight


def _product(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return x @ weight, (x, weight)


def _product_gradients(kept: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, weight = kept
    turned = x.T
    if jax.default_backend() == "cpu":
        # XLA would fold the transpose into the product, for which its fast library has no kernel.
        turned = jax.lax.optimization_barrier(turned)
    return grad @ weight.T, turned @ grad


product.defvjp(_product, _product_gradients)


def row_sums(x: jax.Array) -> jax.Array:
    """Sums over the last axis."""
    if jax.default_backend() == "cpu":
        # A sum would draw what precedes it into its loop, where exponentials and logarithms are not vectorised.
        return x @ jnp.ones(x.shape[-1], x.dtype)
    return x.sum(axis=-1)


@jax.custom_vjp
def layer_norm(x: jax.Array) -> jax.Array:
    """Each row with mean 0 and deviation 1, without learned scale: Ba et al. 2016.

    With its gradient by hand an update of layer-normalised critics takes about half the time on a CPU.
    """
    return _layer_norm(x)[0]


def _layer_norm(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    centred = x - _row_means(x)
    scale = jax.lax.rsqrt(_row_means(centred * centred) + 1e-5)
    normal = centred * scale
    return normal, (normal, scale)


def _layer_norm_gradient(kept: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array]:
    normal, scale = kept
    return (scale * (grad - _row_means(grad) - normal * _row_means(grad * normal)),)


layer_norm.defvjp(_layer_norm, _layer_norm_gradient)


def _row_means(x: jax.Array) -> jax.Array:
    return row_sums(x)[..., None] / x.shape[-1]


def mlp(layers: Mlp, x: jax.Array, activation: str) -> jax.Array:
    """Forward pass; the last layer is linear."""
    for layer in layers[:-1]:
        x = ACTIVATIONS[activation](product(x, layer.weight) + layer.bias[None])
    return product(x, layers[-1].weight) + layers[-1].bias[None]


def scale_output(layers: Mlp, factor: jax.Array) -> Mlp:
    """The network with its output multiplied by `factor`."""
    *hidden, last = layers
    return (*hidden, jax.tree.map(lambda x: x * factor, last))


def init_actor(key: jax.Array, obs_dim: int, act_dim: int, units: int | Sequence[int]) -> Mlp:
    """Two hidden layers of `units`, or those of each; the last layer gives mean and log standard deviation."""
    hidden = (units, units) if isinstance(units, int) else units
    return init_mlp(key, (obs_dim, *hidden, 2 * act_dim))


def sample_action(actor: Mlp, observation: jax.Array, noise: jax.Array, activation: str) -> tuple[jax.Array, jax.Array]:
    """A tanh-squashed Gaussian action (B, act_dim) for standard normal `noise`, and its log density (B,)."""
    mean, log_std = jnp.split(mlp(actor, observation, activation), 2, axis=-1)
    log_std = jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)
    raw = mean + jnp.exp(log_std) * noise
    # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)), which stays finite for large |x|.
    log_slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
    log_density = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi) - log_slope
    return jnp.tanh(raw), row_sums(log_density)


def init_critics(key: jax.Array, obs_dim: int, act_dim: int, units: int) -> Mlp:
    """Two critics stacked on the leading axis of every array."""
    return jax.vmap(lambda k: init_mlp(k, (obs_dim + act_dim, units, units, 1)))(jax.random.split(key, 2))


class CriticStyle(NamedTuple):
    """How the critics compute."""

    activation: str
    normalise: bool  # layer normalisation, without learned scale, before each activation


def critic_values(critics: Mlp, observation: jax.Array, action: jax.Array, style: CriticStyle) -> jax.Array:
    """Q of both critics, (2, B)."""

    def hidden(x: jax.Array) -> jax.Array:
        return ACTIVATIONS[style.activation](layer_norm(x) if style.normalise else x)

    def one(critic: Mlp) -> jax.Array:
        first, second, last = critic
        # Two products instead of one on joined inputs: the actor's gradient then skips the observation's columns.
        seen, done = first.weight[: observation.shape[-1]], first.weight[observation.shape[-1] :]
        x = hidden(product(observation, seen) + product(action, done) + first.bias[None])
        x = hidden(product(x, second.weight) + second.bias[None])
        return (x @ last.weight + last.bias[None])[..., 0]

    return jax.vmap(one)(critics)
