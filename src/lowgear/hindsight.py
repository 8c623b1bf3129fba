"""Hindsight experience replay: Andrychowicz et al. 2017, strategy `future`, relabelled when a batch is drawn.

A step is told that its goal was what the same episode achieved at that step or later; what it then would have paid is
computed anew. A pick of the master is told the same about its last step, and its rewards are those of all its steps
under that goal, so that nothing of its sum is lost. Goals never come from beyond the episode's end.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lowgear.replay import PickSteps, Replay, ReplaySettings, along, rows_of_picks


class Goals(NamedTuple):
    """The static side: where goals stand in an observation, and what reaching them means."""

    achieved: tuple[int, int]  # [start, stop) in the observation
    desired: tuple[int, int]
    rule: Any  # envs.goals.GoalRule
    share: float  # of a batch that is relabelled
    shift: float  # added to every reward
    ends: bool  # an episode ends once its goal is reached


class Steps(NamedTuple):
    """What steps pay under the goals they are told, (B,) each."""

    reward: jax.Array
    alive: jax.Array


def steps(
    ring: Replay, row: jax.Array, chance: jax.Array, goals: Goals, settings: ReplaySettings
) -> tuple[jax.Array, Steps]:
    """Goals (B, d) for the steps in the given rows of one agent's ring, by `chance` uniform in [0, 1)."""
    columns = settings.columns
    goal, changed = _goals(ring, row, chance, goals, settings)
    reward, reached = _judge(_achieved(ring, row, goals, settings), goal, goals)
    alive = ring.rows[row, columns.alive]
    if goals.ends:
        alive = jnp.where(changed, 1.0 - reached.astype(jnp.float32), alive)
    return goal, Steps(jnp.where(changed, reward, ring.rows[row, columns.reward]) + goals.shift, alive)


def picks(
    ring: Replay, last: jax.Array, chance: jax.Array, goals: Goals, settings: ReplaySettings
) -> tuple[jax.Array, PickSteps]:
    """Goals (B, d) for the picks that end in the rows `last`, and what all their steps pay under them."""
    columns = settings.columns
    goal, changed = _goals(ring, last, chance, goals, settings)
    where, within = rows_of_picks(ring.rows, last, settings)
    reward, reached = _judge(_achieved(ring, where, goals, settings), goal[:, None], goals)
    alive = ring.rows[last, columns.alive]
    taken = within
    if goals.ends:  # a pick that reaches its new goal ends there
        reached = reached & within & changed[:, None]
        times = reached.astype(jnp.int32)
        taken = within & (jnp.cumsum(times, axis=1) == times)  # none before this step
        alive = jnp.where(changed, 1.0 - reached.any(axis=1).astype(jnp.float32), alive)
    rewards = jnp.where(changed[:, None], reward, ring.rows[where, columns.reward]) + goals.shift
    return goal, PickSteps(rewards, taken, alive)


def with_goal(observation: jax.Array, goal: jax.Array, goals: Goals) -> jax.Array:
    """Observations (B, obs) that ask for another goal (B, d)."""
    start, stop = goals.desired
    return jnp.concatenate([observation[:, :start], goal, observation[:, stop:]], axis=1)


def _goals(
    ring: Replay, row: jax.Array, chance: jax.Array, goals: Goals, settings: ReplaySettings
) -> tuple[jax.Array, jax.Array]:
    """The goal of each row, and whether it is another than its own."""
    assert ring.episodes is not None
    capacity = ring.rows.shape[0] // settings.lanes
    changed = chance < goals.share
    count = ring.written - 1 - (ring.written - 1 - row) % capacity  # of the row, from the run's beginning
    episode = row - row % capacity + ring.episodes.of_row[row]
    ahead = ring.episodes.last[episode] - count
    offset = (chance / max(goals.share, 1e-6) * (ahead + 1).astype(jnp.float32)).astype(jnp.int32)
    later = along(row, jnp.minimum(offset, ahead), ring.rows, settings)
    own = ring.rows[row, slice(*goals.desired)]
    return jnp.where(changed[:, None], _achieved(ring, later, goals, settings), own), changed


def _achieved(ring: Replay, row: jax.Array, goals: Goals, settings: ReplaySettings) -> jax.Array:
    """What the steps in these rows achieved: the goal where they led."""
    first = settings.columns.next_observation.start
    start, stop = goals.achieved
    return ring.rows[row, first + start : first + stop]


def _judge(achieved: jax.Array, goal: jax.Array, goals: Goals) -> tuple[jax.Array, jax.Array]:
    """Rewards and successes; asked of the host, all at once, where the device can't tell."""
    goal = jnp.broadcast_to(goal, achieved.shape)
    rule = goals.rule
    if rule.on_device:
        return rule.reward(achieved, goal), rule.reached(achieved, goal)
    if not goals.ends:  # then nobody asks whether it was reached
        reward = _ask(rule, achieved, goal)
        return reward, jnp.zeros(reward.shape, jnp.bool_)
    reward, most = _ask(rule, jnp.stack([achieved, goal]), jnp.stack([goal, goal]))
    return reward, reward >= most  # as envs.goals.Asked has it


def _ask(rule: Any, achieved: jax.Array, goal: jax.Array) -> jax.Array:
    shape = jax.ShapeDtypeStruct(achieved.shape[:-1], jnp.float32)
    asked: jax.Array = jax.pure_callback(rule.reward, shape, achieved, goal, vmap_method="broadcast_all")
    return asked
