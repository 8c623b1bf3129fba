"""Soft actor-critic: Haarnoja et al. 2018, twin critics, automatic entropy.

Actor, critics and temperature take their steps on the same batch, all from the parameters before the step; actor and
temperature may step more rarely than the critics.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.learners import AgentParameters, Metrics
from lowgear.learning.networks import (
    CriticStyle,
    Mlp,
    critic_values,
    init_actor,
    init_critics,
    sample_action,
    scale_output,
)
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.learning.transitions import Transitions

Policy = tuple[Mlp, jax.Array]  # actor, and the logarithm of the temperature
POLICY_METRICS = ("entropy", "alpha")


class SacParams(NamedTuple):
    """What the gradient moves."""

    actor: Mlp
    critics: Mlp
    log_alpha: jax.Array


class SacState(NamedTuple):
    """One gear's learner."""

    params: SacParams
    target_critics: Mlp
    critic_adam: optax.OptState
    policy_adam: optax.OptState  # of actor and temperature
    reward_scale: jax.Array  # (): that the critics' values are on; 0 before the first update


class SacSettings(NamedTuple):
    """What an update needs to know besides its state and the agent's parameters."""

    actor_activation: str
    critic_style: CriticStyle
    actor_every: int = 1  # updates of the critics for each of actor and temperature
    first_alpha: float = 1.0  # temperature at the start
    value_bounds: tuple[float, float] | None = None  # that targets are kept within, in the task's rewards
    largest_value: float | None = None  # of a target, in absolute value, on the scale of the rewards


@dataclass(frozen=True)
class Sac:
    """SAC for one gear, as a `GearLearner`."""

    gear: int
    obs_dim: int
    act_dim: int
    units: int | tuple[int, ...]  # of the actor's two hidden layers, or those of each
    critic_units: int
    batch: int
    settings: SacSettings

    @property
    def gear_numbers(self) -> tuple[int, ...]:
        """The one gear that it trains."""
        return (self.gear,)

    @property
    def noise_dim(self) -> int:
        """For the next action and the current one."""
        return 2 * self.act_dim

    @property
    def cycle(self) -> int:
        """Actor and temperature step in the first of so many updates."""
        return self.settings.actor_every

    def init(self, key: jax.Array) -> SacState:
        """A fresh learner."""
        return init(key, self.obs_dim, self.act_dim, self.units, self.critic_units, self.settings)

    def update(
        self, state: SacState, batch: Transitions, noise: jax.Array, agent: AgentParameters, phase: int | jax.Array
    ) -> tuple[SacState, Metrics]:
        """One gradient step on the critics and, in phase 0, on actor and temperature."""
        noise = noise.reshape(2, self.batch, self.act_dim)
        return update(state, batch, noise, agent, self.settings, with_policy=phase == 0)

    def actors(self, state: SacState) -> tuple[Mlp, ...]:
        """The gear's actor."""
        return (state.params.actor,)

    def flops(self) -> int:
        """Of the products of one update, on average: forward and backward, nothing else."""
        obs, act, critic = self.obs_dim, self.act_dim, self.critic_units
        hidden = (self.units, self.units) if isinstance(self.units, int) else self.units
        critic_forward = obs * critic + act * critic + critic * critic + critic
        critic_inner = critic * critic + critic
        targets, fit = 2 * critic_forward, 2 * (2 * critic_forward + critic_inner)
        actor_inner = sum(a * b for a, b in itertools.pairwise((*hidden, 2 * act)))
        actor_forward = obs * hidden[0] + actor_inner
        improve = 2 * (critic_forward + critic_inner + act * critic) + 2 * actor_forward + actor_inner
        return round(2 * self.batch * (targets + actor_forward + fit + improve / self.settings.actor_every))


def init(
    key: jax.Array,
    obs_dim: int,
    act_dim: int,
    units: int | Sequence[int],
    critic_units: int,
    settings: SacSettings,
) -> SacState:
    """A fresh gear."""
    actor_key, critic_key = jax.random.split(key)
    critics = init_critics(critic_key, obs_dim, act_dim, critic_units)
    actor = init_actor(actor_key, obs_dim, act_dim, units)
    log_alpha = jnp.log(jnp.float32(settings.first_alpha))
    target_critics = jax.tree.map(jnp.copy, critics)
    adams = ADAM.init(critics), ADAM.init((actor, log_alpha))
    return SacState(SacParams(actor, critics, log_alpha), target_critics, *adams, jnp.zeros((), jnp.float32))


def update(
    state: SacState,
    batch: Transitions,
    noise: jax.Array,
    agent: AgentParameters,
    settings: SacSettings,
    with_policy: bool | jax.Array = True,
) -> tuple[SacState, Metrics]:
    """One gradient step on the critics and, `with_policy`, on actor and temperature.

    `noise` is (2, B, act), standard normal: of next actions, then current ones. Where `with_policy` is an array, one
    program serves both cases, and an update without the policy has 0 for its metrics.
    """
    state = rescale(state, agent.reward_scale)
    params, rate = state.params, agent.target_rate
    target = targets(state, batch, noise[0], agent, settings)
    critic_grads, metrics = jax.grad(critic_loss, has_aux=True)(params.critics, batch, target, settings)
    critics, critic_adam = adam_step(params.critics, critic_grads, state.critic_adam, agent.learning_rate)
    target_critics = jax.tree.map(lambda t, p: t + rate * (p - t), state.target_critics, critics)
    policy = params.actor, params.log_alpha

    def step() -> tuple[Policy, optax.OptState, Metrics]:
        grads, found = jax.grad(policy_loss, has_aux=True)(
            policy, params.critics, batch.observation, noise[1], agent, settings
        )
        return *adam_step(policy, grads, state.policy_adam, agent.actor_learning_rate), found

    def rest() -> tuple[Policy, optax.OptState, Metrics]:
        return policy, state.policy_adam, dict.fromkeys(POLICY_METRICS, jnp.float32(0))

    if isinstance(with_policy, bool):
        (actor, log_alpha), policy_adam, found = step() if with_policy else (policy, state.policy_adam, {})
    else:
        (actor, log_alpha), policy_adam, found = jax.lax.cond(with_policy, step, rest)
    new_params = SacParams(actor, critics, log_alpha)
    return SacState(new_params, target_critics, critic_adam, policy_adam, state.reward_scale), metrics | found


def rescale(state: SacState, reward_scale: jax.Array) -> SacState:
    """The gear on another scale of rewards, its critics meaning the same: van Hasselt et al. 2016, PopArt."""
    ratio = jnp.where(state.reward_scale > 0, state.reward_scale / reward_scale, 1.0)
    return state._replace(
        params=state.params._replace(critics=scale_output(state.params.critics, ratio)),
        target_critics=scale_output(state.target_critics, ratio),
        reward_scale=reward_scale,
    )


def targets(
    state: SacState, batch: Transitions, noise: jax.Array, agent: AgentParameters, settings: SacSettings
) -> jax.Array:
    """What the critics' values are drawn towards, (B,): reward and soft value of the next state."""
    params, style = state.params, settings.critic_style
    action, log_density = sample_action(params.actor, batch.next_observation, noise, settings.actor_activation)
    value = combine(critic_values(state.target_critics, batch.next_observation, action, style), agent.pessimism)
    target = batch.reward + batch.discount * (value - jnp.exp(params.log_alpha) * log_density)
    if settings.value_bounds is not None:
        low, high = settings.value_bounds
        target = jnp.clip(target, low / agent.reward_scale, high / agent.reward_scale)
    if settings.largest_value is not None:
        target = jnp.clip(target, -settings.largest_value, settings.largest_value)
    return target


def combine(values: jax.Array, pessimism: jax.Array) -> jax.Array:
    """The twin critics' values, (2, B), as one: their mean where pessimism is 0, their minimum where it is 1."""
    one, two = values
    # Chosen by comparison: the gradient of a minimum looks for the value that equals it, and where a compiler computes
    # the values twice, with other rounding, neither may.
    return jnp.where(pessimism > 0, jnp.where(one < two, one, two), values.mean(axis=0))


def critic_loss(
    critics: Mlp, batch: Transitions, target: jax.Array, settings: SacSettings
) -> tuple[jax.Array, Metrics]:
    """Half the mean squared error, summed over the twins."""
    value = critic_values(critics, batch.observation, batch.action, settings.critic_style)
    loss = 0.5 * jnp.square(value - target[None]).mean(axis=1).sum()
    return loss, {"critic_loss": loss, "value": value.mean()}


def policy_loss(
    policy: Policy,
    critics: Mlp,
    observation: jax.Array,
    noise: jax.Array,
    agent: AgentParameters,
    settings: SacSettings,
) -> tuple[jax.Array, Metrics]:
    """The actor's and the temperature's loss, each fenced off from the other."""
    actor, log_alpha = policy
    alpha = jnp.exp(jax.lax.stop_gradient(log_alpha))
    action, log_density = sample_action(actor, observation, noise, settings.actor_activation)
    value = combine(critic_values(critics, observation, action, settings.critic_style), agent.pessimism)
    actor_loss = (alpha * log_density - value).mean()
    entropy = -jax.lax.stop_gradient(log_density).mean()
    alpha_loss = log_alpha * (entropy - agent.target_entropy)
    return actor_loss + alpha_loss, dict(zip(POLICY_METRICS, (entropy, alpha), strict=True))
