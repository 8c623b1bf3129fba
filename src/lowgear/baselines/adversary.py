"""GAIL's adversary: tells the teacher's state-action pairs from the student's, and pays the student for fooling it.

Ho and Ermon 2016. Functions here see one student; the population axis is added by `jax.vmap` outside.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.networks import Mlp, init_mlp, mlp

ADAM = optax.flatten(optax.scale_by_adam())
ACTIVATION = "tanh"
CLIP = 10.0  # standardised observations are kept within this
VARIANCE_AT_LEAST = 1e-6
Metrics = dict[str, jax.Array]


class Moments(NamedTuple):
    """Running mean and variance of observations, (obs,) each."""

    mean: jax.Array
    variance: jax.Array
    rows: jax.Array  # that they are of


class Adversary(NamedTuple):
    """A classifier of pairs: its logit is high for the teacher's."""

    network: Mlp
    adam: optax.OptState
    moments: Moments


def init(key: jax.Array, observation: jax.Array, act_dim: int, units: int) -> Adversary:
    """A fresh adversary, which knows the scale of the `observation` (B, obs) it is shown."""
    network = init_mlp(key, (observation.shape[-1] + act_dim, units, units, 1))
    moments = Moments(observation.mean(axis=0), observation.var(axis=0), jnp.asarray(len(observation), jnp.float32))
    return Adversary(network, ADAM.init(network), moments)


def standardise(moments: Moments, observation: jax.Array) -> jax.Array:
    """Observations as adversary and value see them."""
    spread = jnp.sqrt(jnp.maximum(moments.variance, VARIANCE_AT_LEAST))
    return jnp.clip((observation - moments.mean[None]) / spread[None], -CLIP, CLIP)


def extend(moments: Moments, observation: jax.Array) -> Moments:
    """With a batch (B, obs) more."""
    rows = jnp.asarray(len(observation), jnp.float32)
    total = moments.rows + rows
    apart = observation.mean(axis=0) - moments.mean
    squares = moments.variance * moments.rows + observation.var(axis=0) * rows
    variance = (squares + apart**2 * moments.rows * rows / total) / total
    return Moments(moments.mean + apart * rows / total, variance, total)


def logits(network: Mlp, seen: jax.Array, action: jax.Array) -> jax.Array:
    """(B,) for standardised observations and actions in [-1, 1]."""
    return mlp(network, jnp.concatenate([seen, action], axis=-1), ACTIVATION)[..., 0]


def reward(adversary: Adversary, observation: jax.Array, action: jax.Array) -> jax.Array:
    """-log(1 - D), (B,): above zero, and the higher the more the pair looks like the teacher's."""
    return jax.nn.softplus(logits(adversary.network, standardise(adversary.moments, observation), action))


def loss(
    network: Mlp, student: tuple[jax.Array, jax.Array], teacher: tuple[jax.Array, jax.Array], entropy: float
) -> tuple[jax.Array, Metrics]:
    """Cross-entropy of both kinds of pairs, less `entropy` times the mean entropy of the verdicts."""
    of_student, of_teacher = logits(network, *student), logits(network, *teacher)
    cross = jax.nn.softplus(of_student).mean() + jax.nn.softplus(-of_teacher).mean()
    every = jnp.concatenate([of_student, of_teacher])
    # Of a Bernoulli variable with logit x: softplus(x) - x sigmoid(x).
    doubt = (jax.nn.softplus(every) - every * jax.nn.sigmoid(every)).mean()
    right = ((of_student < 0).mean() + (of_teacher > 0).mean()) / 2
    return cross - entropy * doubt, {"adversary_loss": cross, "adversary_accuracy": right}


def update(
    adversary: Adversary,
    student: tuple[jax.Array, jax.Array],
    teacher: tuple[jax.Array, jax.Array],
    rate: float,
    entropy: float,
) -> tuple[Adversary, Metrics]:
    """One step of Adam on pairs (observation, action) of both, after their observations joined the moments."""
    moments = extend(adversary.moments, jnp.concatenate([student[0], teacher[0]]))
    seen = [(standardise(moments, observation), action) for observation, action in (student, teacher)]
    grads, metrics = jax.grad(loss, has_aux=True)(adversary.network, seen[0], seen[1], entropy)
    steps, adam = ADAM.update(grads, adversary.adam)
    network = jax.tree.map(lambda p, s: p - rate * s, adversary.network, steps)
    return Adversary(network, adam, moments), metrics
