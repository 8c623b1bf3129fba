"""Soft actor-critic for one gear: Haarnoja et al. 2018, twin critics, automatic entropy.

Actor, critics and temperature take one gradient step on the same batch, all from the parameters before the step, so
that one backward pass and one Adam update on one flat vector serve them all.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.networks import CriticStyle, Mlp, critic_values, init_actor, init_critics, sample_action

Metrics = dict[str, jax.Array]
ADAM = optax.flatten(optax.scale_by_adam())


class SacParams(NamedTuple):
    """What the gradient moves."""

    actor: Mlp
    critics: Mlp
    log_alpha: jax.Array


class SacState(NamedTuple):
    """One gear's learner."""

    params: SacParams
    target_critics: Mlp
    adam: optax.OptState


class Transitions(NamedTuple):
    """A batch of steps; `discount` is 0 after a real end, else the agent's discount."""

    observation: jax.Array  # (B, obs)
    action: jax.Array  # (B, act)
    reward: jax.Array  # (B,)
    discount: jax.Array  # (B,)
    next_observation: jax.Array  # (B, obs)


class SacSettings(NamedTuple):
    """What a SAC update needs to know besides its state."""

    actor_activation: str
    critic_style: CriticStyle
    target_rate: float  # τ of the target critics' moving average
    target_entropy: float
    value_bounds: tuple[float, float] | None = None  # that targets are kept within


def init(key: jax.Array, obs_dim: int, act_dim: int, units: int, critic_units: int) -> SacState:
    """A fresh gear."""
    actor_key, critic_key = jax.random.split(key)
    critics = init_critics(critic_key, obs_dim, act_dim, critic_units)
    params = SacParams(init_actor(actor_key, obs_dim, act_dim, units), critics, jnp.zeros((), jnp.float32))
    return SacState(params, jax.tree.map(jnp.copy, critics), ADAM.init(params))


def update(
    state: SacState, batch: Transitions, noise: jax.Array, learning_rate: jax.Array, settings: SacSettings
) -> tuple[SacState, Metrics]:
    """One gradient step on everything; `noise` is (2, B, act), standard normal: of next actions, then current ones."""
    target = targets(state, batch, noise[0], settings)
    (_, metrics), grads = jax.value_and_grad(losses, has_aux=True)(state.params, batch, target, noise[1], settings)
    steps, adam = ADAM.update(grads, state.adam)
    params = jax.tree.map(lambda p, s: p - learning_rate * s, state.params, steps)
    target_critics = jax.tree.map(lambda t, p: t + settings.target_rate * (p - t), state.target_critics, params.critics)
    return SacState(params, target_critics, adam), metrics


def targets(state: SacState, batch: Transitions, noise: jax.Array, settings: SacSettings) -> jax.Array:
    """What the critics' values are drawn towards, (B,): reward and soft value of the next state."""
    next_action, next_log_density = sample_action(
        state.params.actor, batch.next_observation, noise, settings.actor_activation
    )
    next_value = critic_values(state.target_critics, batch.next_observation, next_action, settings.critic_style)
    soft_value = next_value.min(axis=0) - jnp.exp(state.params.log_alpha) * next_log_density
    target = batch.reward + batch.discount * soft_value
    return target if settings.value_bounds is None else jnp.clip(target, *settings.value_bounds)


def losses(
    params: SacParams, batch: Transitions, target: jax.Array, noise: jax.Array, settings: SacSettings
) -> tuple[jax.Array, Metrics]:
    """The sum of the critics', the actor's and the temperature's losses, each fenced off from the others."""
    fixed = jax.lax.stop_gradient(params)
    alpha = jnp.exp(fixed.log_alpha)

    value = critic_values(params.critics, batch.observation, batch.action, settings.critic_style)
    critic_loss = 0.5 * jnp.square(value - target[None]).mean(axis=1).sum()

    action, log_density = sample_action(params.actor, batch.observation, noise, settings.actor_activation)
    climbed = critic_values(fixed.critics, batch.observation, action, settings.critic_style).min(axis=0)
    actor_loss = (alpha * log_density - climbed).mean()

    entropy = -jax.lax.stop_gradient(log_density).mean()
    alpha_loss = params.log_alpha * (entropy - settings.target_entropy)

    metrics = {
        "critic_loss": critic_loss,
        "value": value.mean(),
        "entropy": entropy,
        "alpha": alpha,
    }
    return critic_loss + actor_loss + alpha_loss, metrics
