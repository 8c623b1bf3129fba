"""Deep Q-learning for the master: Mnih et al. 2015 with the double estimator of van Hasselt et al. 2016."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.networks import Mlp, init_mlp, mlp

Metrics = dict[str, jax.Array]
LEVEL_UNITS = 32  # only learning pays for it
ADAM = optax.flatten(optax.scale_by_adam())


class Priced(NamedTuple):
    """A master's network where prices are known: what choices earn, and what a state is worth at a dial's position."""

    earnings: Mlp  # of the observation: a value for each choice
    level: Mlp  # of the observation and the dial's position: one value, the same for all choices


class DqnState(NamedTuple):
    """The master's learner."""

    params: Mlp | Priced
    target: Mlp | Priced
    adam: optax.OptState
    updates: jax.Array  # int32, counts the updates towards the next target copy


class Picks(NamedTuple):
    """A batch of picks; `discount` covers the whole time a pick held and is 0 after a real end."""

    observation: jax.Array  # (B, inputs)
    choice: jax.Array  # (B,) int32
    reward: jax.Array  # (B,) what the pick earned, its cost paid
    discount: jax.Array  # (B,)
    next_observation: jax.Array  # (B, inputs)
    charge: jax.Array | None = None  # (B, choices) that each choice is known to cost, for a master that is Priced


class DqnSettings(NamedTuple):
    """What a DQN update needs to know besides its state."""

    activation: str
    target_copy_every: int


def init(key: jax.Array, inputs: int, choices: int, units: int, priced: bool = False) -> DqnState:
    """A fresh master with two hidden layers of `units` and one value for each choice.

    `inputs` counts the dial's position, where there is one; a `priced` master's earnings do not see it.
    """
    earnings = init_mlp(key, (inputs - priced, units, units, choices))
    params: Mlp | Priced = earnings
    if priced:
        params = Priced(earnings, init_mlp(jax.random.fold_in(key, 1), (inputs, LEVEL_UNITS, LEVEL_UNITS, 1)))
    return DqnState(params, jax.tree.map(jnp.copy, params), ADAM.init(params), jnp.zeros((), jnp.int32))


def update(state: DqnState, batch: Picks, learning_rate: jax.Array, settings: DqnSettings) -> tuple[DqnState, Metrics]:
    """One gradient step on the squared error, then the target copy when it is due."""
    (loss, value), grads = jax.value_and_grad(squared_error, has_aux=True)(
        state.params, state.target, batch, settings.activation
    )
    steps, adam = ADAM.update(grads, state.adam)
    params = jax.tree.map(lambda p, s: p - learning_rate * s, state.params, steps)
    updates = state.updates + 1
    due = updates % settings.target_copy_every == 0
    target = jax.tree.map(lambda t, p: jnp.where(due, p, t), state.target, params)
    return DqnState(params, target, adam, updates), {"loss": loss, "value": value}


def squared_error(
    params: Mlp | Priced, target: Mlp | Priced, batch: Picks, activation: str
) -> tuple[jax.Array, jax.Array]:
    """Mean squared temporal-difference error: the online network picks, the target network values the pick."""

    def valued(network: Mlp | Priced, observation: jax.Array) -> jax.Array:
        if not isinstance(network, Priced):
            return mlp(network, observation, activation)
        assert batch.charge is not None, "a master that knows its prices learns from picks that carry them"
        earned = mlp(network.earnings, observation[:, :-1], activation)
        return earned + mlp(network.level, observation, activation) - batch.charge

    best = valued(jax.lax.stop_gradient(params), batch.next_observation).argmax(axis=-1)
    next_values = valued(target, batch.next_observation)
    next_value = jnp.take_along_axis(next_values, best[:, None], axis=-1)[:, 0]
    goal = batch.reward + batch.discount * next_value
    values = valued(params, batch.observation)
    value = jnp.take_along_axis(values, batch.choice[:, None], axis=-1)[:, 0]
    return jnp.square(value - jax.lax.stop_gradient(goal)).mean(), value.mean()


def acting(params: Mlp | Priced) -> Mlp:
    """What is deployed: all that tells choices apart."""
    return params.earnings if isinstance(params, Priced) else params
