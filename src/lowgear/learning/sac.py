"""Soft actor-critic: Haarnoja et al. 2018, twin critics, automatic entropy.

Actor, critics and temperature take one gradient step on the same batch, all from the parameters before the step, so
that one backward pass and one Adam update on one flat vector serve them all.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.learners import AgentParameters, Metrics
from lowgear.learning.networks import CriticStyle, Mlp, critic_values, init_actor, init_critics, sample_action
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.learning.transitions import Transitions


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


class SacSettings(NamedTuple):
    """What an update needs to know besides its state."""

    actor_activation: str
    critic_style: CriticStyle
    target_rate: float  # τ of the target critics' moving average
    target_entropy: float
    value_bounds: tuple[float, float] | None = None  # that targets are kept within


@dataclass(frozen=True)
class Sac:
    """SAC for one gear, as a `GearLearner`."""

    gear: int
    obs_dim: int
    act_dim: int
    units: int  # hidden width of the actor
    critic_units: int
    batch: int
    settings: SacSettings

    @property
    def gears(self) -> tuple[int, ...]:
        """The one gear that it trains."""
        return (self.gear,)

    @property
    def noise_dim(self) -> int:
        """For the next action and the current one."""
        return 2 * self.act_dim

    def init(self, key: jax.Array) -> SacState:
        """A fresh learner."""
        return init(key, self.obs_dim, self.act_dim, self.units, self.critic_units)

    def update(
        self, state: SacState, batch: Transitions, noise: jax.Array, agent: AgentParameters
    ) -> tuple[SacState, Metrics]:
        """One gradient step on everything."""
        noise = noise.reshape(2, self.batch, self.act_dim)
        return update(state, batch, noise, agent.learning_rate, self.settings)

    def actors(self, state: SacState) -> tuple[Mlp, ...]:
        """The gear's actor."""
        return (state.params.actor,)

    def flops(self) -> int:
        """Of the products of one update: forward and backward, nothing else."""
        obs, act, units, critic = self.obs_dim, self.act_dim, self.units, self.critic_units
        critic_forward = obs * critic + act * critic + critic * critic + critic
        critic_inner = critic * critic + critic
        targets, fit = 2 * critic_forward, 2 * (2 * critic_forward + critic_inner)
        improve = 2 * (critic_forward + critic_inner + act * critic)
        actor_forward = obs * units + units * units + 2 * units * act
        actor_inner = units * units + 2 * units * act
        return 2 * self.batch * (targets + fit + improve + 3 * actor_forward + actor_inner)


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
    grads, metrics = jax.grad(losses, has_aux=True)(state.params, batch, target, noise[1], settings)
    params, adam = adam_step(state.params, grads, state.adam, learning_rate)
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
