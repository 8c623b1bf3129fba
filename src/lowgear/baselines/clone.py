"""Behaviour cloning: a student is fitted to the teacher's actions by regression.

The loss is the mean squared error between the student's deterministic action and the teacher's. The paper names
learning rate, epochs, batch and optimiser but not the loss; rate and batch are the defaults of Stable-Baselines'
`pretrain`, whose loss and held-out share are therefore taken to be the authors'. That one holds out single pairs.
Neighbouring pairs are all but equal, so whole trajectories are held out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from lowgear import LowgearError
from lowgear.baselines import student
from lowgear.baselines.demonstrations import Demonstrations
from lowgear.baselines.record import Progress
from lowgear.baselines.student import Pairs, Students
from lowgear.learning.networks import Mlp
from lowgear.learning.normalisation import fold
from lowgear.learning.optimiser import ADAM, adam_step
from lowgear.policy.arrays import FloatArray
from lowgear.training.device import keep_compiled_programs

Rows = npt.NDArray[np.int64]  # numbers of pairs
SPLITS, ORDERS = 30, 31  # streams of random numbers


@dataclass(frozen=True)
class CloneSettings:
    """How a student is fitted; by default as in the paper."""

    learning_rate: float = 1e-4  # Adam's
    batch: int = 64
    epochs: int = 100
    updates: int | None = None  # instead of `epochs`: as many as make this number of batches, rounded up
    held_out: float = 0.3  # share of the trajectories that only validate; 0: none
    anneal: bool = False  # the learning rate falls to zero along a cosine
    normalise: bool = False  # observations, by the student's own pairs; its first layer takes that in


PAPER = CloneSettings()
# A number of updates, because the paper's epochs over 25 × 50 pairs are too few to learn anything (docs/baselines.md).
MODERN = CloneSettings(learning_rate=1e-3, updates=20_000, held_out=0.1, anneal=True)
# For as many labels as a teacher that can be asked at will gives (`slim`).
DISTIL = replace(MODERN, learning_rate=3e-3, batch=256, updates=None, epochs=256, normalise=True)


class CloneState(NamedTuple):
    """One student while it is fitted."""

    network: Mlp
    adam: optax.OptState


class Batches(NamedTuple):
    """An epoch of P students, (P, batches, B) each."""

    rows: Any  # of the student's pairs
    weights: Any  # 1, or 0 for a row that does not count


def fit(
    demonstrations: Sequence[Demonstrations],
    units: int,
    seeds: Sequence[int],
    settings: CloneSettings = PAPER,
    progress: Progress | None = None,
    capacity: int = 0,
) -> Students:
    """Student p of width `units` learns from `demonstrations[p]` with `seeds[p]`; `progress` counts epochs.

    Fits with the same `capacity`, a number of pairs that none of them exceeds, share one compiled program.

    The history holds `training_loss` and `validation_loss`, (epochs, P): NaN where a student has no held-out
    trajectories, or after its last epoch. A student's numbers do not depend on who else is fitted beside it.
    """
    student.check(demonstrations, units, seeds)
    _check(settings, demonstrations)
    keep_compiled_programs()
    pairs = student.stack_pairs(demonstrations, capacity)
    normaliser = student.normaliser_of(demonstrations) if settings.normalise else None
    if normaliser is not None:
        seen = (pairs.observations - normaliser.mean[:, None]) / normaliser.std[:, None]
        pairs = pairs._replace(observations=seen)
    capacity = pairs.observations.shape[1]
    splits = [split(d, seed, settings.held_out) for d, seed in zip(demonstrations, seeds, strict=True)]
    epochs = np.array([epochs_for(settings, len(rows)) for rows, _ in splits])
    networks = student.init(seeds, demonstrations[0].origin, units)
    state = CloneState(networks, jax.vmap(ADAM.init)(networks))
    validation = batched([rows for _, rows in splits], settings.batch, capacity)
    history: list[tuple[FloatArray, FloatArray]] = []
    for number in range(epochs.max()):
        running = number < epochs
        orders = [
            np.random.default_rng((seed, ORDERS, number)).permutation(rows if runs else rows[:0])
            for (rows, _), seed, runs in zip(splits, seeds, running, strict=True)
        ]
        batches = batched(orders, settings.batch, capacity)
        state, training_loss = epoch(state, pairs, batches, _learning_rates(settings, number, epochs))
        validation_loss = validate(state.network, pairs, validation)
        history.append((np.where(running, training_loss, np.nan), np.where(running, validation_loss, np.nan)))
        if progress:
            progress(number + 1, int(epochs.max()))
    origins, lengths = [d.origin for d in demonstrations], [len(d) for d in demonstrations]
    fitted = state.network if normaliser is None else fold(state.network, normaliser)
    policies = student.policies_of(student.layers_of(fitted), "bc", origins, seeds, lengths)
    training, validating = (np.stack(column) for column in zip(*history, strict=True))
    return Students(policies, {"training_loss": training, "validation_loss": validating})


def epochs_for(settings: CloneSettings, rows: int) -> int:
    """How often so many rows are gone through."""
    return settings.epochs if settings.updates is None else -(-settings.updates // -(-rows // settings.batch))


def split(demonstrations: Demonstrations, seed: int, held_out: float) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to validate on, by whole trajectories."""
    total = demonstrations.trajectories
    held = min(max(1, round(held_out * total)), total - 1) if held_out else 0
    order = np.random.default_rng((seed, SPLITS)).permutation(total)
    bounds = demonstrations.bounds
    rows = [np.zeros(0, np.int64), *(np.arange(bounds[i], bounds[i + 1]) for i in order)]
    return np.concatenate([rows[0], *rows[1 + held :]]), np.concatenate(rows[: 1 + held])


def batched(rows: Sequence[Rows], batch: int, capacity: int) -> Batches:
    """Rows of P students in equal numbers of batches, enough for `capacity` rows."""
    shape = len(rows), -(-capacity // batch), batch
    numbers, weights = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    for p, own in enumerate(rows):
        numbers[p].reshape(-1)[: len(own)] = own
        weights[p].reshape(-1)[: len(own)] = 1
    return Batches(numbers, weights)


def loss(network: Mlp, observations: jax.Array, actions: jax.Array, weights: jax.Array) -> jax.Array:
    """Mean squared error over the rows (B,) that count, by `weights` of 1 and 0; 0 where none does."""
    error = jnp.square(student.mean_action(network, observations) - actions).mean(axis=-1)
    return (weights * error).sum() / jnp.maximum(weights.sum(), 1)


def update(
    state: CloneState, observations: jax.Array, actions: jax.Array, weights: jax.Array, learning_rate: jax.Array
) -> tuple[CloneState, jax.Array]:
    """One step of Adam; a batch without rows that count leaves everything as it is."""
    value, grads = jax.value_and_grad(loss)(state.network, observations, actions, weights)
    new = CloneState(*adam_step(state.network, grads, state.adam, learning_rate))
    counts = weights.sum() > 0
    return jax.tree.map(lambda a, b: jnp.where(counts, a, b), new, state), value


@jax.jit
def epoch(state: CloneState, pairs: Pairs, batches: Batches, learning_rates: jax.Array) -> tuple[CloneState, jax.Array]:
    """Every batch once, for all students, each with its own learning rate (P,); also the mean losses (P,)."""
    rows, weights = (jnp.asarray(part) for part in batches)

    def one(
        state: CloneState, pairs: Pairs, rows: jax.Array, weights: jax.Array, learning_rate: jax.Array
    ) -> tuple[CloneState, jax.Array]:
        return update(state, pairs.observations[rows], pairs.actions[rows], weights, learning_rate)

    def step(i: jax.Array, carry: tuple[CloneState, jax.Array]) -> tuple[CloneState, jax.Array]:
        state, losses = jax.vmap(one)(carry[0], pairs, rows[:, i], weights[:, i], learning_rates)
        return state, carry[1] + losses * weights[:, i].sum(axis=1)

    # As many steps as there are batches that count, not as there is room for: one program serves fits of any length.
    count = (weights.sum(axis=(0, 2)) > 0).sum()
    state, total = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(len(rows), jnp.float32)))
    return state, total / jnp.maximum(weights.sum(axis=(1, 2)), 1)


@jax.jit
def validate(networks: Mlp, pairs: Pairs, batches: Batches) -> jax.Array:
    """Losses (P,) on held-out rows; NaN where there are none."""

    def one(network: Mlp, pairs: Pairs, batches: Batches) -> jax.Array:
        rows, weights = (part.reshape(-1) for part in batches)
        value = loss(network, pairs.observations[rows], pairs.actions[rows], weights)
        return jnp.where(weights.sum() > 0, value, jnp.nan)

    return jax.vmap(one)(networks, pairs, batches)


def _learning_rates(settings: CloneSettings, number: int, epochs: npt.NDArray[np.int64]) -> FloatArray:
    share = (1 + np.cos(np.pi * np.minimum(number / epochs, 1))) / 2 if settings.anneal else np.ones(len(epochs))
    return (settings.learning_rate * share).astype(np.float32)


def _check(settings: CloneSettings, demonstrations: Sequence[Demonstrations]) -> None:
    numbers = (settings.epochs, settings.batch, 1 if settings.updates is None else settings.updates)
    if min(numbers) < 1 or not 0 < settings.learning_rate < float("inf"):
        raise LowgearError(f"{settings}: epochs, updates and batch are 1 or more, the learning rate is above 0")
    if not 0 <= settings.held_out < 1:
        raise LowgearError(f"held-out share {settings.held_out}: write a number from 0 to less than 1")
    if settings.held_out and min(d.trajectories for d in demonstrations) < 2:
        raise LowgearError("one trajectory cannot be held out and learned from: record two, or set held_out to 0")
