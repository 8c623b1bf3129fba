"""Batches that learners update on. `discount` is 0 after a real end, so nothing else has to ask for it."""

from typing import NamedTuple

import jax


class Transitions(NamedTuple):
    """Steps of the environment, for gears."""

    observation: jax.Array  # (B, obs)
    action: jax.Array  # (B, act)
    reward: jax.Array  # (B,)
    discount: jax.Array  # (B,): the agent's, or 0
    next_observation: jax.Array  # (B, obs)


class MasterTransitions(NamedTuple):
    """Picks of the master, each over all the steps that it held."""

    observation: jax.Array  # (B, inputs)
    choice: jax.Array  # (B,) int32
    reward: jax.Array  # (B,): of the steps, the cost paid
    discount: jax.Array  # (B,): over these steps
    next_observation: jax.Array  # (B, inputs)
    choice_cost: jax.Array | None = None  # (B, choices): known cost of each choice, for a master that need not learn it
