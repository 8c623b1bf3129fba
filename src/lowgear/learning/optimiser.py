"""Adam on one flat vector: one loop over all parameters instead of one for each array."""

from typing import TypeVar

import jax
import optax

ADAM = optax.flatten(optax.scale_by_adam())
Params = TypeVar("Params")


def adam_step(
    params: Params, grads: Params, state: optax.OptState, learning_rate: jax.Array
) -> tuple[Params, optax.OptState]:
    """New parameters and the optimiser's new state."""
    steps, new_state = ADAM.update(grads, state)
    new_params: Params = jax.tree.map(lambda p, s: p - learning_rate * s, params, steps)
    return new_params, new_state
