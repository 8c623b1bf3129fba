"""The method: what each learner is fed and what the master is paid. Algorithm 1 of the paper's supplement.

The learners of P agents are one pytree with the agents on its leading axis. Gears and master learn from the same rows
but never from each other, so `learn` may be given all of them or a part, and parts may run side by side.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lowgear import dqn, noise, replay, sac
from lowgear.dqn import DqnSettings, DqnState, Picks
from lowgear.replay import Replay, ReplaySettings
from lowgear.sac import SacSettings, SacState

Metrics = dict[str, jax.Array]
Values = Any  # jax.Array, or NumPy's before it is on the device


class Knobs(NamedTuple):
    """Per-agent values, each (P,): what differs within a population without changing a shape."""

    seed: Values  # uint32
    cost_coefficient: Values  # λ; 0 is the no-cost ablation
    discount: Values
    master_discount: Values
    learning_rate: Values
    master_learning_rate: Values
    shared: Values  # bool; False is the separate-buffers ablation


Learner = SacState | DqnState
Learners = tuple[Learner, ...]  # the gears, cheapest first, then the master; P agents on every leading axis


class Method(NamedTuple):
    """The static side of the program: shapes and settings that every agent shares."""

    obs_dim: int
    act_dim: int
    gears: tuple[int, ...]  # hidden width of each gear's actor
    critic_units: tuple[int, ...]  # hidden width of each gear's critics
    gear_costs: tuple[float, ...]  # c_ω, gear 0 costs 1
    master_units: int
    batch: int
    master_batch: int
    discount_by_step: bool  # the master's discount follows the steps a pick held; the paper applies it once a pick
    sac: SacSettings
    dqn: DqnSettings
    replay: ReplaySettings


def init(seeds: jax.Array, method: Method) -> Learners:
    """Fresh learners, each agent's from its own seed alone."""

    def one(seed: jax.Array) -> Learners:
        *gear_keys, master_key = jax.random.split(jax.random.key(seed), len(method.gears) + 1)
        gears = tuple(
            sac.init(key, method.obs_dim, method.act_dim, units, critic_units)
            for key, units, critic_units in zip(gear_keys, method.gears, method.critic_units, strict=True)
        )
        return (*gears, dqn.init(master_key, method.obs_dim, len(method.gears), method.master_units))

    return jax.vmap(one)(seeds)


def learn(
    learners: Learners,
    ring: Replay,
    knobs: Knobs,
    time: jax.Array,
    which: tuple[int, ...],
    updates: int,
    method: Method,
) -> tuple[Learners, Metrics]:
    """Update the learners numbered `which` as many times as told, each time on fresh batches.

    `time` counts the updates before these: it is the clock of the random numbers. Metrics are means, (P,) each.
    """

    def agent(states: Learners, rows: jax.Array, lists: replay.Lists, knobs: Knobs, now: jax.Array):  # type: ignore[no-untyped-def]
        results = [
            _update(number, state, rows, lists, knobs, now, method) for number, state in zip(which, states, strict=True)
        ]
        metrics = {
            f"{learner_name(number, method)}_{name}": value
            for number, (_, found) in zip(which, results, strict=True)
            for name, value in found.items()
        }
        return tuple(state for state, _ in results), metrics

    def body(states: Learners, now: jax.Array) -> tuple[Learners, Metrics]:
        new_states, metrics = jax.vmap(agent, in_axes=(0, 0, 0, 0, None))(states, ring.rows, ring.lists, knobs, now)
        return new_states, metrics

    new_learners, metrics = jax.lax.scan(body, learners, time + jnp.arange(updates))
    # A learner with nothing to draw from yet (a gear never used, with separate buffers) stays as it was.
    ready = ring.lists.stop > ring.lists.start
    kept = tuple(
        _keep(ready[:, number], new, old) for number, new, old in zip(which, new_learners, learners, strict=True)
    )
    return kept, jax.tree.map(lambda m: m.mean(axis=0), metrics)


def learner_name(number: int, method: Method) -> str:
    """What a learner is called in metrics."""
    return f"gear{number}" if number < len(method.gears) else "master"


def pay(rows: replay.PickRows, coefficient: jax.Array, discount: jax.Array, method: Method) -> Picks:
    """The master's batch: rewards minus λ·c_ω over the steps that really ran, and the discount over them."""
    picks = rows.picks
    duration = rows.duration.astype(jnp.float32)
    cost = jnp.asarray(method.gear_costs, jnp.float32)[picks.choice] * duration
    elapsed = duration if method.discount_by_step else jnp.ones_like(duration)
    return picks._replace(reward=picks.reward - coefficient * cost, discount=picks.discount * discount**elapsed)


def _update(
    number: int,
    state: Learner,
    rows: jax.Array,
    lists: replay.Lists,
    knobs: Knobs,
    time: jax.Array,
    method: Method,
) -> tuple[Learner, Metrics]:
    """One update of one agent's learner `number` on a batch of its own."""
    size = method.batch if isinstance(state, SacState) else method.master_batch
    chance = noise.uniform(knobs.seed, noise.stream(noise.ROWS, number), time, size)
    drawn = replay.draw(lists, number, chance)
    if isinstance(state, DqnState):
        paid = pay(replay.picks(rows, drawn, method.replay), knobs.cost_coefficient, knobs.master_discount, method)
        return dqn.update(state, paid, knobs.master_learning_rate, method.dqn)
    steps = replay.transitions(rows, drawn, knobs.discount, method.replay.columns)
    shape = (2, size, method.act_dim)
    normal = noise.normal(knobs.seed, noise.stream(noise.ACTIONS, number), time, 2 * size * method.act_dim)
    return sac.update(state, steps, normal.reshape(shape), knobs.learning_rate, method.sac)


def _keep(ready: jax.Array, new: Learner, old: Learner) -> Learner:
    """`new` for the agents that are ready, `old` for the others."""

    def choose(n: jax.Array, o: jax.Array) -> jax.Array:
        return jnp.where(ready.reshape(ready.shape + (1,) * (n.ndim - 1)), n, o)

    kept: Learner = jax.tree.map(choose, new, old)
    return kept
