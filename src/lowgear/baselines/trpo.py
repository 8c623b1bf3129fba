"""Trust-region policy optimisation, the generator of the authors' GAIL: Schulman et al. 2015, with GAE.

Functions here see one student; the population axis is added by `jax.vmap` outside. The policy is a gear's tanh-squashed
Gaussian. Squashing is one to one and the same for every policy, so ratios and divergences are those of the Gaussian
before it, whose draws are called `raw`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg

from lowgear.learning.networks import Mlp, init_actor, init_mlp, mlp
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.policy.networks import LOG_STD_MAX, LOG_STD_MIN

ACTIVATION = "tanh"
Metrics = dict[str, jax.Array]


@dataclass(frozen=True)
class TrpoSettings:
    """One update of policy and value; the defaults are the authors'."""

    max_kl: float = 0.01  # that a step aims at
    kl_slack: float = 1.5  # times `max_kl` is what a step may reach
    solver_steps: int = 10  # of conjugate gradients
    damping: float = 0.01
    halvings: int = 10  # of a step that is refused
    discount: float = 0.99
    trace: float = 0.98  # λ of GAE
    value_rate: float = 3e-4  # Adam's
    value_epochs: int = 3
    value_batch: int = 128


Taken = tuple[jax.Array, jax.Array, jax.Array]  # a point, its divergence, and whether a step was taken


class TrpoState(NamedTuple):
    """A student while it learns, and what values states for it."""

    actor: Mlp
    value: Mlp
    value_adam: optax.OptState


class Gaussian(NamedTuple):
    """Mean and log standard deviation of raw actions, (B, act) each."""

    mean: jax.Array
    log_std: jax.Array


def init(key: jax.Array, obs_dim: int, act_dim: int, units: int, value_units: int) -> TrpoState:
    """A fresh student."""
    actor_key, value_key = jax.random.split(key)
    value = init_mlp(value_key, (obs_dim, value_units, value_units, 1))
    return TrpoState(init_actor(actor_key, obs_dim, act_dim, units), value, ADAM.init(value))


def gaussian(actor: Mlp, observation: jax.Array) -> Gaussian:
    """What the actor draws raw actions from."""
    mean, log_std = jnp.split(mlp(actor, observation, ACTIVATION), 2, axis=-1)
    return Gaussian(mean, jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX))


def log_density(policy: Gaussian, raw: jax.Array) -> jax.Array:
    """Of raw actions, (B,)."""
    scaled = (raw - policy.mean) * jnp.exp(-policy.log_std)
    return (-0.5 * scaled**2 - policy.log_std - 0.5 * jnp.log(2 * jnp.pi)).sum(axis=-1)


def divergence(old: Gaussian, new: Gaussian) -> jax.Array:
    """KL(old || new), the batch's mean."""
    spread = (jnp.exp(2 * old.log_std) + (old.mean - new.mean) ** 2) * jnp.exp(-2 * new.log_std)
    return (new.log_std - old.log_std + 0.5 * (spread - 1)).sum(axis=-1).mean()


def fisher_product(actor: Mlp, observation: jax.Array, vector: jax.Array) -> jax.Array:
    """The Fisher matrix of the actor's flat parameters times a vector: the divergence's second derivative at them."""
    flat, unravel = ravel_pytree(actor)
    here = gaussian(actor, observation)

    def moved(x: jax.Array) -> jax.Array:
        return divergence(here, gaussian(unravel(x), observation))

    image: jax.Array = jax.jvp(jax.grad(moved), (flat,), (vector,))[1]
    return image


def improve(
    actor: Mlp, observation: jax.Array, raw: jax.Array, advantage: jax.Array, settings: TrpoSettings
) -> tuple[Mlp, Metrics]:
    """One natural-gradient step within the trust region; none where no length of it helps and stays within."""
    flat, unravel = ravel_pytree(actor)
    old = gaussian(actor, observation)
    old_density = log_density(old, raw)

    def gain(x: jax.Array) -> jax.Array:
        return (jnp.exp(log_density(gaussian(unravel(x), observation), raw) - old_density) * advantage).mean()

    def fisher(vector: jax.Array) -> jax.Array:
        return fisher_product(actor, observation, vector) + settings.damping * vector

    def gain_and_kl(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return gain(x) - before, divergence(old, gaussian(unravel(x), observation))

    before, slope = jax.value_and_grad(gain)(flat)
    direction, _ = cg(fisher, slope, tol=0.0, maxiter=settings.solver_steps)
    curvature = 0.5 * direction @ fisher(direction)
    full = direction * jnp.sqrt(settings.max_kl / jnp.maximum(curvature, 1e-30))
    chosen, kl = line_search(flat, full, gain_and_kl, settings)
    return unravel(chosen), {"kl": kl, "gain": gain(chosen) - before}


def line_search(
    start: jax.Array,
    full: jax.Array,
    gain_and_kl: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    settings: TrpoSettings,
) -> tuple[jax.Array, jax.Array]:
    """The longest of `full`, half of it, a quarter… that gains something within the trust region; else `start`.

    Also returned is the divergence of what was taken.
    """

    def step(carry: Taken, length: jax.Array) -> tuple[Taken, None]:
        x, kl, taken = carry
        tried = start + length * full
        gain, tried_kl = gain_and_kl(tried)
        # A comparison with NaN is false, so a broken point is never taken.
        good = (gain > 0) & (tried_kl <= settings.kl_slack * settings.max_kl) & ~taken
        return (jnp.where(good, tried, x), jnp.where(good, tried_kl, kl), taken | good), None

    lengths = 0.5 ** jnp.arange(settings.halvings, dtype=jnp.float32)
    first = (start, jnp.zeros((), jnp.float32), jnp.zeros((), bool))
    x, kl, _ = jax.lax.scan(step, first, lengths)[0]
    return x, kl


def advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    settings: TrpoSettings,
) -> jax.Array:
    """GAE(λ), (T, E) as everything that comes in.

    A time limit, where an episode `ended` but not `terminated`, is bootstrapped through: `next_value` is that of where
    the step led.
    """
    error = reward + settings.discount * (1 - terminated) * next_value - value

    def step(carry: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, ended = now
        advantage = error + settings.discount * settings.trace * (1 - ended) * carry
        return advantage, advantage

    return jax.lax.scan(step, jnp.zeros_like(error[0]), (error, ended), reverse=True)[1]


def values(value: Mlp, observation: jax.Array) -> jax.Array:
    """(B,) for (B, obs)."""
    return mlp(value, observation, ACTIVATION)[..., 0]


def fit_value(
    value: Mlp,
    adam: optax.OptState,
    observation: jax.Array,
    target: jax.Array,
    rows: jax.Array,
    learning_rate: jax.Array,
) -> tuple[Mlp, optax.OptState]:
    """One step of Adam on the squared error for each of `rows` (batches, B)."""

    def loss(value: Mlp, rows: jax.Array) -> jax.Array:
        return jnp.square(values(value, observation[rows]) - target[rows]).mean()

    def step(carry: tuple[Mlp, optax.OptState], rows: jax.Array) -> tuple[tuple[Mlp, optax.OptState], None]:
        value, adam = carry
        return adam_step(value, jax.grad(loss)(value, rows), adam, learning_rate), None

    return jax.lax.scan(step, (value, adam), rows)[0]
