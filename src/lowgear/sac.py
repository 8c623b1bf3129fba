"""Soft actor-critic for one gear: Haarnoja et al. 2018, twin critics, automatic entropy.

Every part of a gear takes a gradient step on the same batch, all from the parameters before the step, so that one
backward pass serves actor, critics and temperature. Critics have an Adam of their own: actor and temperature may step
more rarely than they.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.networks import CriticStyle, Mlp, critic_values, init_actor, init_critics, sample_action

Metrics = dict[str, jax.Array]
ADAM = optax.flatten(optax.scale_by_adam())


class Policy(NamedTuple):
    """What the actor's and the temperature's losses move."""

    actor: Mlp
    log_alpha: jax.Array


class SacParams(NamedTuple):
    """What the gradient moves."""

    policy: Policy
    critics: Mlp


class SacState(NamedTuple):
    """One gear's learner."""

    params: SacParams
    target_critics: Mlp
    policy_adam: optax.OptState
    critic_adam: optax.OptState
    updates: jax.Array  # int32, so far
    reward_scale: jax.Array  # () that the critics' values are on


class Transitions(NamedTuple):
    """A batch of steps; `discount` is 0 after a real end, else the agent's discount."""

    observation: jax.Array  # (B, obs), normalised
    action: jax.Array  # (B, act)
    reward: jax.Array  # (B,), on the learner's scale
    discount: jax.Array  # (B,)
    next_observation: jax.Array  # (B, obs), normalised


class SacKnobs(NamedTuple):
    """Settings of one agent's gear, () each: none changes a shape, so agents of one population may differ in them."""

    critic_rate: jax.Array  # Adam's learning rate
    actor_rate: jax.Array
    alpha_rate: jax.Array
    target_rate: jax.Array  # τ of the target critics' moving average
    target_entropy: jax.Array
    first_alpha: jax.Array
    first_values: jax.Array  # times what a fresh critic's last layer would say
    pessimism: jax.Array  # 1: the minimum of the twins; 0: their mean
    actor_every: jax.Array  # int32: updates for each step of actor and temperature
    critic_style: CriticStyle


class Bounds(NamedTuple):
    """What targets are kept within, () each, on the scale of the rewards."""

    low: jax.Array
    high: jax.Array


def init(
    key: jax.Array,
    obs_dim: int,
    act_dim: int,
    units: int,
    critic_units: int,
    first_alpha: float | jax.Array = 1.0,
    first_values: float | jax.Array = 1.0,
) -> SacState:
    """A fresh gear."""
    actor_key, critic_key = jax.random.split(key)
    critics = _times(init_critics(critic_key, obs_dim, act_dim, critic_units), jnp.float32(first_values))
    policy = Policy(init_actor(actor_key, obs_dim, act_dim, units), jnp.log(jnp.float32(first_alpha)))
    return SacState(
        SacParams(policy, critics),
        jax.tree.map(jnp.copy, critics),
        ADAM.init(policy),
        ADAM.init(critics),
        jnp.zeros((), jnp.int32),
        jnp.ones((), jnp.float32),
    )


def rescale(state: SacState, reward_scale: jax.Array, keep_values: jax.Array) -> SacState:
    """The gear on another scale of rewards. Its critics go on to mean the same: van Hasselt et al. 2016, PopArt.

    Without `keep_values`, and before its first update, the critics' outputs stay as they are.
    """
    ratio = jnp.where(keep_values & (state.updates > 0), state.reward_scale / reward_scale, 1.0)
    return state._replace(
        params=state.params._replace(critics=_times(state.params.critics, ratio)),
        target_critics=_times(state.target_critics, ratio),
        reward_scale=reward_scale,
    )


def update(
    state: SacState,
    batch: Transitions,
    noise: jax.Array,
    knobs: SacKnobs,
    activation: str,
    bounds: Bounds | None = None,
) -> tuple[SacState, Metrics]:
    """One gradient step on the critics and, when it is due, on actor and temperature.

    `noise` is (2, B, act), standard normal: of next actions, then of current ones. `activation` is the actor's.
    """
    target = targets(state, batch, noise[0], knobs, activation, bounds)
    (_, metrics), grads = jax.value_and_grad(losses, has_aux=True)(
        state.params, batch, target, noise[1], knobs, activation
    )
    critic_steps, critic_adam = ADAM.update(grads.critics, state.critic_adam)
    critics = jax.tree.map(lambda p, s: p - knobs.critic_rate * s, state.params.critics, critic_steps)
    target_critics = jax.tree.map(lambda t, p: t + knobs.target_rate * (p - t), state.target_critics, critics)

    policy_steps, policy_adam = ADAM.update(grads.policy, state.policy_adam)
    rates = Policy(
        jax.tree.map(lambda _: knobs.actor_rate, policy_steps.actor), knobs.alpha_rate
    )
    policy = jax.tree.map(lambda p, s, rate: p - rate * s, state.params.policy, policy_steps, rates)
    due = state.updates % knobs.actor_every == 0
    policy, policy_adam = jax.tree.map(
        lambda new, old: jnp.where(due, new, old), (policy, policy_adam), (state.params.policy, state.policy_adam)
    )
    new_state = SacState(
        SacParams(policy, critics), target_critics, policy_adam, critic_adam, state.updates + 1, state.reward_scale
    )
    return new_state, metrics


def targets(
    state: SacState,
    batch: Transitions,
    noise: jax.Array,
    knobs: SacKnobs,
    activation: str,
    bounds: Bounds | None = None,
) -> jax.Array:
    """What the critics are drawn towards, (B,): r + γ (Q'(s', a') - α log π(a'|s'))."""
    actor, log_alpha = state.params.policy
    next_action, next_log_density = sample_action(actor, batch.next_observation, noise, activation)
    next_values = critic_values(state.target_critics, batch.next_observation, next_action, knobs.critic_style)
    soft_value = agreed(next_values, knobs.pessimism) - jnp.exp(log_alpha) * next_log_density
    target = batch.reward + batch.discount * soft_value
    return target if bounds is None else jnp.clip(target, bounds.low, bounds.high)


def agreed(values: jax.Array, pessimism: jax.Array) -> jax.Array:
    """The twins' one value, (2, B) to (B,): from their mean, at pessimism 0, to their minimum, at 1."""
    return values.mean(axis=0) - pessimism * jnp.abs(values[0] - values[1]) / 2


def losses(
    params: SacParams, batch: Transitions, target: jax.Array, noise: jax.Array, knobs: SacKnobs, activation: str
) -> tuple[jax.Array, Metrics]:
    """The sum of the critics', the actor's and the temperature's losses, each fenced off from the others."""
    fixed = jax.lax.stop_gradient(params)
    alpha = jnp.exp(fixed.policy.log_alpha)

    values = critic_values(params.critics, batch.observation, batch.action, knobs.critic_style)
    critic_loss = 0.5 * jnp.square(values - target[None]).mean(axis=1).sum()

    action, log_density = sample_action(params.policy.actor, batch.observation, noise, activation)
    climbed = agreed(critic_values(fixed.critics, batch.observation, action, knobs.critic_style), knobs.pessimism)
    actor_loss = (alpha * log_density - climbed).mean()

    entropy = -jax.lax.stop_gradient(log_density).mean()
    alpha_loss = params.policy.log_alpha * (entropy - knobs.target_entropy)

    metrics = {"critic_loss": critic_loss, "value": values.mean(), "entropy": entropy, "alpha": alpha}
    return critic_loss + actor_loss + alpha_loss, metrics


def _times(critics: Mlp, factor: jax.Array) -> Mlp:
    """Critics whose values are so many times as large."""
    *hidden, last = critics
    return (*hidden, jax.tree.map(lambda x: x * factor, last))
