"""GAIL's adversary: tells the teacher's state-action pairs from the student's, and pays the student for fooling it.

Ho and Ermon 2016. Functions here see one student; the population axis is added by `jax.vmap` outside.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.networks import Mlp, init_mlp, mlp
from lowgear.learning.normalisation import Running, merge
from lowgear.learning.optimiser import ADAM, adam_step

ACTIVATION = "tanh"
CLIP = 10.0  # standardised observations are kept within this
VARIANCE_AT_LEAST = 1e-6
Metrics = dict[str, jax.Array]
StatesActions = tuple[jax.Array, jax.Array]  # observations (B, obs), and actions in [-1, 1], (B, act)


class Adversary(NamedTuple):
    """A classifier of pairs: its logit is high for the teacher's."""

    network: Mlp
    adam: optax.OptState
    moments: Running  # of the observations of both


def init(key: jax.Array, observation: jax.Array, act_dim: int, units: int) -> Adversary:
    """A fresh adversary, which knows the scale of the `observation` (B, obs) it is given."""
    network = init_mlp(key, (observation.shape[-1] + act_dim, units, units, 1))
    moments = Running(jnp.float32(len(observation)), observation.mean(axis=0), observation.var(axis=0))
    return Adversary(network, ADAM.init(network), moments)


def standardise(moments: Running, observation: jax.Array) -> jax.Array:
    """Observations as adversary and value see them."""
    std = jnp.sqrt(jnp.maximum(moments.variance, VARIANCE_AT_LEAST))
    return jnp.clip((observation - moments.mean[None]) / std[None], -CLIP, CLIP)


def logits(network: Mlp, standardised: jax.Array, action: jax.Array) -> jax.Array:
    """(B,) for standardised observations and actions in [-1, 1]."""
    return mlp(network, jnp.concatenate([standardised, action], axis=-1), ACTIVATION)[..., 0]


def reward(adversary: Adversary, observation: jax.Array, action: jax.Array) -> jax.Array:
    """-log(1 - D), (B,): above zero, and the higher the more the pair looks like the teacher's."""
    return jax.nn.softplus(logits(adversary.network, standardise(adversary.moments, observation), action))


def loss(
    network: Mlp, student: StatesActions, teacher: StatesActions, entropy_weight: float
) -> tuple[jax.Array, Metrics]:
    """Cross-entropy of both kinds of pairs, standardised, less the weighted mean entropy of the verdicts."""
    of_student, of_teacher = logits(network, *student), logits(network, *teacher)
    cross_entropy = jax.nn.softplus(of_student).mean() + jax.nn.softplus(-of_teacher).mean()
    every = jnp.concatenate([of_student, of_teacher])
    # Of a Bernoulli variable with logit x: softplus(x) - x sigmoid(x).
    entropy = (jax.nn.softplus(every) - every * jax.nn.sigmoid(every)).mean()
    accuracy = ((of_student < 0).mean() + (of_teacher > 0).mean()) / 2
    metrics = {"adversary_loss": cross_entropy, "adversary_accuracy": accuracy}
    return cross_entropy - entropy_weight * entropy, metrics


def update(
    adversary: Adversary,
    student: StatesActions,
    teacher: StatesActions,
    learning_rate: jax.Array,
    entropy_weight: float,
) -> tuple[Adversary, Metrics]:
    """One step of Adam on pairs of both, after their observations joined the moments."""
    moments = merge(adversary.moments, jnp.concatenate([student[0], teacher[0]]))
    both = [(standardise(moments, observation), action) for observation, action in (student, teacher)]
    grads, metrics = jax.grad(loss, has_aux=True)(adversary.network, *both, entropy_weight)
    network, adam = adam_step(adversary.network, grads, adversary.adam, learning_rate)
    return Adversary(network, adam, moments), metrics
