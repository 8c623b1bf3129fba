"""Behaviour cloning: a student is fitted to the teacher's actions by regression.

The loss is the mean squared error between the student's deterministic action and the teacher's. The paper names
learning rate, epochs, batch and optimiser but not the loss; rate and batch are the defaults of Stable-Baselines'
`pretrain`, whose loss and held-out share are therefore taken to be the authors'. That one holds out single pairs.
Neighbouring pairs are all but equal, so whole trajectories are held out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from lowgear.baselines.student import Students
from lowgear.learning.networks import Mlp
from lowgear.training.parallel import keep_compiled_programs

Batches = tuple[Any, Any]  # rows and weights of 1 and 0, (P, batches, B) each: a row of weight 0 does not count
ADAM = optax.flatten(optax.scale_by_adam())
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


PAPER = CloneSettings()
# A number of updates, because the paper's epochs over 25 × 50 pairs are too few to learn anything (docs/baselines.md).
MODERN = CloneSettings(learning_rate=1e-3, updates=20_000, held_out=0.1, anneal=True)


class Fit(NamedTuple):
    """One student while it is fitted."""

    network: Mlp
    adam: optax.OptState


class Pairs(NamedTuple):
    """D sets of demonstrations, padded to the same length."""

    observations: jax.Array  # (D, N, obs)
    actions: jax.Array  # (D, N, act)


def fit(
    demonstrations: Sequence[Demonstrations],
    units: int,
    seeds: Sequence[int],
    settings: CloneSettings = PAPER,
    progress: Progress | None = None,
    room: int = 0,
) -> Students:
    """Student p of width `units` learns from `demonstrations[p]` with `seeds[p]`; `progress` is told of every epoch.

    Fits with the same `room`, a number of pairs that none of them exceeds, share one compiled program.

    The history holds `training_loss` and `validation_loss`, (epochs, P): NaN where a student has no held-out
    trajectories, or after its last epoch. A student's numbers do not depend on who else is fitted beside it.
    """
    student.check(demonstrations, units, seeds)
    _check(settings, demonstrations)
    keep_compiled_programs()
    room = max(room, *(len(d) for d in demonstrations), 1)
    pairs, which = _pairs(demonstrations, room)
    splits = [_split(d, seed, settings.held_out) for d, seed in zip(demonstrations, seeds, strict=True)]
    epochs = np.array([epochs_for(settings, len(rows)) for rows, _ in splits])
    networks = student.init(seeds, demonstrations[0].origin, units)
    state = Fit(networks, jax.vmap(ADAM.init)(networks))
    held = _padded([rows for _, rows in splits], settings.batch, room)
    history: list[tuple[npt.NDArray[np.float32], ...]] = []
    for number in range(epochs.max()):
        orders = [_order(rows, seed, number) for (rows, _), seed in zip(splits, seeds, strict=True)]
        rows, weights = _padded(orders, settings.batch, room)
        weights[number >= epochs] = 0
        state, training = epoch(state, pairs, which, (rows, weights), _rates(settings, number, epochs))
        validation = validate(state.network, pairs, which, held)
        over = np.where(number < epochs, np.float32(0), np.float32(np.nan))
        history.append((np.array(training) + over, np.array(validation) + over))
        if progress:
            progress(1)
    origins, lengths = [d.origin for d in demonstrations], [len(d) for d in demonstrations]
    policies = student.policies_of(student.layers_of(state.network), "bc", origins, seeds, lengths)
    training_loss, validation_loss = (np.stack(column) for column in zip(*history, strict=True))
    return Students(policies, {"training_loss": training_loss, "validation_loss": validation_loss})


def epochs_for(settings: CloneSettings, rows: int) -> int:
    """How often so many rows are gone through."""
    return settings.epochs if settings.updates is None else -(-settings.updates // -(-rows // settings.batch))


def epochs_of(demonstrations: Sequence[Demonstrations], seeds: Sequence[int], settings: CloneSettings) -> int:
    """How many epochs a `fit` takes, and tells of: those of the student that takes the most."""
    splits = [_split(d, seed, settings.held_out) for d, seed in zip(demonstrations, seeds, strict=True)]
    return max(epochs_for(settings, len(rows)) for rows, _ in splits)


def loss(network: Mlp, observations: jax.Array, actions: jax.Array, weights: jax.Array) -> jax.Array:
    """Mean squared error over the rows (B,) that count, by `weights` of 1 and 0; 0 where none does."""
    error = jnp.square(student.mean_action(network, observations) - actions).mean(axis=-1)
    return (weights * error).sum() / jnp.maximum(weights.sum(), 1)


def update(
    fit: Fit, observations: jax.Array, actions: jax.Array, weights: jax.Array, rate: jax.Array
) -> tuple[Fit, jax.Array]:
    """One step of Adam; a batch without rows that count leaves everything as it is."""
    value, grads = jax.value_and_grad(loss)(fit.network, observations, actions, weights)
    steps, adam = ADAM.update(grads, fit.adam)
    new = Fit(jax.tree.map(lambda p, s: p - rate * s, fit.network, steps), adam)
    counts = weights.sum() > 0
    return jax.tree.map(lambda a, b: jnp.where(counts, a, b), new, fit), value


@jax.jit
def epoch(state: Fit, pairs: Pairs, which: jax.Array, batches: Batches, rates: jax.Array) -> tuple[Fit, jax.Array]:
    """Every batch once, for all students, each with its own learning rate (P,); also the mean losses (P,)."""
    rows, weights = (jnp.asarray(part) for part in batches)

    def one(fit: Fit, which: jax.Array, rows: jax.Array, weights: jax.Array, rate: jax.Array) -> tuple[Fit, jax.Array]:
        return update(fit, pairs.observations[which, rows], pairs.actions[which, rows], weights, rate)

    def step(i: jax.Array, carry: tuple[Fit, jax.Array]) -> tuple[Fit, jax.Array]:
        fit, losses = jax.vmap(one)(carry[0], which, rows[:, i], weights[:, i], rates)
        return fit, carry[1] + losses * weights[:, i].sum(axis=1)

    # As many steps as there are batches that count, not as there is room for: one program serves fits of any length.
    count = (weights.sum(axis=(0, 2)) > 0).sum()
    fit, total = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(len(rows), jnp.float32)))
    return fit, total / jnp.maximum(weights.sum(axis=(1, 2)), 1)


@jax.jit
def validate(networks: Mlp, pairs: Pairs, which: jax.Array, batches: Batches) -> jax.Array:
    """Losses (P,) on held-out rows; NaN where there are none."""

    def one(network: Mlp, which: jax.Array, batches: Batches) -> jax.Array:
        rows, weights = (x.reshape(-1) for x in batches)
        value = loss(network, pairs.observations[which, rows], pairs.actions[which, rows], weights)
        return jnp.where(weights.sum() > 0, value, jnp.nan)

    return jax.vmap(one)(networks, which, batches)


def _pairs(demonstrations: Sequence[Demonstrations], room: int) -> tuple[Pairs, jax.Array]:
    """Every different set once, and which one each student has."""
    different = {id(d): d for d in demonstrations}

    def padded(name: str) -> jax.Array:
        arrays = [getattr(d, name) for d in different.values()]
        return jnp.asarray(np.stack([np.pad(a, ((0, room - len(a)), (0, 0))) for a in arrays]))

    which = [list(different).index(id(d)) for d in demonstrations]
    return Pairs(padded("observations"), padded("actions")), jnp.asarray(which, jnp.int32)


def _split(demonstrations: Demonstrations, seed: int, held_out: float) -> tuple[npt.NDArray[np.int64], ...]:
    """Rows to learn from and rows to validate on, by whole trajectories."""
    total = demonstrations.trajectories
    held = min(max(1, round(held_out * total)), total - 1) if held_out else 0
    order = np.random.default_rng((seed, SPLITS)).permutation(total)
    bounds = demonstrations.bounds
    rows = [np.arange(bounds[i], bounds[i + 1]) for i in order]
    none = [np.zeros(0, np.int64)]
    return np.concatenate(none + rows[held:]), np.concatenate(none + rows[:held])


def _order(rows: npt.NDArray[np.int64], seed: int, number: int) -> npt.NDArray[np.int64]:
    """The rows in an epoch's own order."""
    return np.random.default_rng((seed, ORDERS, number)).permutation(rows)


def _padded(rows: Sequence[npt.NDArray[np.int64]], batch: int, room: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows of P students in equal numbers of batches, enough for `room` rows, with weights."""
    batches = -(-room // batch)
    found = np.zeros((len(rows), batches * batch), np.int32)
    weights = np.zeros_like(found, np.float32)
    for p, r in enumerate(rows):
        found[p, : len(r)], weights[p, : len(r)] = r, 1
    return found.reshape(len(rows), batches, batch), weights.reshape(len(rows), batches, batch)


def _rates(settings: CloneSettings, number: int, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
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
