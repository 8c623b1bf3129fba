"""Deep Q-learning for the master: Mnih et al. 2015 with the double estimator of van Hasselt et al. 2016.

Where a dial's costs are known, values are split: Q(s, c) = A(s, c) + V(s, position) − cost of c. The advantages A see
the observation alone and are all that is deployed; the value V, the same for all choices, is needed to learn them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from lowgear.learning.learners import AgentParameters, Metrics
from lowgear.learning.networks import Mlp, init_mlp, mlp, scale_output
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.learning.transitions import MasterTransitions

VALUE_UNITS = 32  # only learning pays for it


class Dueling(NamedTuple):
    """A master's networks where costs are known."""

    advantage: Mlp  # of the observation: one for each choice
    value: Mlp  # of the observation and the dial's position


Network = Mlp | Dueling


class DqnState(NamedTuple):
    """The master's learner."""

    params: Network
    target: Network
    adam: optax.OptState
    updates: jax.Array  # int32, counts the updates towards the next target copy
    reward_scale: jax.Array  # (): that its values are on; 0 before the first update


class DqnSettings(NamedTuple):
    """What an update needs to know besides its state."""

    activation: str
    target_copy_every: int


@dataclass(frozen=True)
class Dqn:
    """The master's learner: two hidden layers and one value for each choice."""

    inputs: int  # the observation, the last action where a gear holds it, the dial's position where there is one
    choices: int
    units: int
    batch: int
    known_costs: bool
    settings: DqnSettings

    def init(self, key: jax.Array) -> DqnState:
        """A fresh master."""
        return init(key, self.inputs, self.choices, self.units, self.known_costs)

    def update(self, state: DqnState, batch: MasterTransitions, agent: AgentParameters) -> tuple[DqnState, Metrics]:
        """One gradient step."""
        return update(rescale(state, agent.master_scale), batch, agent.master_learning_rate, self.settings)

    def actor(self, state: DqnState) -> Mlp:
        """What is deployed: all that tells choices apart, in the task's rewards."""
        network = state.params.advantage if isinstance(state.params, Dueling) else state.params
        return scale_output(network, jnp.where(state.reward_scale > 0, state.reward_scale, 1.0))

    def flops(self) -> int:
        """Of the products of one update: two forward passes for the target, one forward and backward."""
        networks = [(self.inputs - self.known_costs, self.units, self.choices)]
        if self.known_costs:
            networks.append((self.inputs, VALUE_UNITS, 1))
        total = 0
        for inputs, units, outputs in networks:
            forward = inputs * units + units * units + units * outputs
            total += 2 * self.batch * (5 * forward - inputs * units)
        return total


def init(key: jax.Array, inputs: int, choices: int, units: int, known_costs: bool = False) -> DqnState:
    """A fresh master; `inputs` counts the dial's position, where there is one, which advantages do not see."""
    network = init_mlp(key, (inputs - known_costs, units, units, choices))
    params: Network = network
    if known_costs:
        params = Dueling(network, init_mlp(jax.random.fold_in(key, 1), (inputs, VALUE_UNITS, VALUE_UNITS, 1)))
    return DqnState(params, jax.tree.map(jnp.copy, params), ADAM.init(params), jnp.zeros((), jnp.int32), jnp.zeros(()))


def rescale(state: DqnState, reward_scale: jax.Array) -> DqnState:
    """The master on another scale of rewards, its values meaning the same: van Hasselt et al. 2016, PopArt."""
    ratio = jnp.where(state.reward_scale > 0, state.reward_scale / reward_scale, 1.0)

    def scaled(network: Network) -> Network:
        if isinstance(network, Dueling):
            return Dueling(*(scale_output(part, ratio) for part in network))
        return scale_output(network, ratio)

    return state._replace(params=scaled(state.params), target=scaled(state.target), reward_scale=reward_scale)


def update(
    state: DqnState, batch: MasterTransitions, learning_rate: jax.Array, settings: DqnSettings
) -> tuple[DqnState, Metrics]:
    """One gradient step on the squared error, then the target copy when it is due."""
    (loss, value), grads = jax.value_and_grad(squared_error, has_aux=True)(
        state.params, state.target, batch, settings.activation
    )
    params, adam = adam_step(state.params, grads, state.adam, learning_rate)
    updates = state.updates + 1
    due = updates % settings.target_copy_every == 0
    target = jax.tree.map(lambda t, p: jnp.where(due, p, t), state.target, params)
    return DqnState(params, target, adam, updates, state.reward_scale), {"loss": loss, "value": value}


def squared_error(
    params: Network, target_params: Network, batch: MasterTransitions, activation: str
) -> tuple[jax.Array, jax.Array]:
    """Mean squared temporal-difference error: the online network picks, the target network values the pick."""
    best = q_values(jax.lax.stop_gradient(params), batch, batch.next_observation, activation).argmax(axis=-1)
    next_values = q_values(target_params, batch, batch.next_observation, activation)
    next_value = jnp.take_along_axis(next_values, best[:, None], axis=-1)[:, 0]
    target = batch.reward + batch.discount * next_value
    values = q_values(params, batch, batch.observation, activation)
    value = jnp.take_along_axis(values, batch.choice[:, None], axis=-1)[:, 0]
    return jnp.square(value - jax.lax.stop_gradient(target)).mean(), value.mean()


def q_values(network: Network, batch: MasterTransitions, observation: jax.Array, activation: str) -> jax.Array:
    """Q of every choice, (B, choices)."""
    if not isinstance(network, Dueling):
        return mlp(network, observation, activation)
    assert batch.choice_cost is not None, "a master that knows its costs learns from transitions that carry them"
    advantage = mlp(network.advantage, observation[:, :-1], activation)
    return advantage + mlp(network.value, observation, activation) - batch.choice_cost
