"""Hindsight experience replay: Andrychowicz et al. 2017, strategy `future`, relabelled when a batch is sampled.

A transition's goal is replaced by what the same episode achieved at that step or later, and its reward is computed
anew. A pick of the master gets a goal for its last step, and the rewards of all its steps under that goal, so that
nothing of its sum is lost. Goals never come from beyond the episode's end.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from lowgear.learning.replay import PickSteps, Replay, ReplaySettings, row_in_ring, rows_after, rows_of_picks, take
from lowgear.learning.transitions import MasterTransitions, Transitions

Batch = TypeVar("Batch", Transitions, MasterTransitions)


class Goals(NamedTuple):
    """The static side: where goals stand in an observation, and what reaching them means."""

    achieved: tuple[int, int]  # [start, stop) in the observation
    desired: tuple[int, int]
    rule: Any  # envs.goals.GoalRule
    share: float  # of a batch that is relabelled
    shift: float  # added to every reward
    ends: bool  # an episode ends once its goal is reached


class GoalReward(NamedTuple):
    """What steps pay under new goals, and whether they reach them; (B,) or (B, longest) each."""

    reward: jax.Array
    reached: jax.Array


class Relabelling(NamedTuple):
    """New goals of the steps or picks of a batch, (B, ...) each."""

    relabelled: jax.Array  # bool: the others keep their own goals, and what they were paid
    goal: jax.Array  # (B, d)
    from_host: GoalReward | None  # what the host said of them; None where the device can tell


def sample_goals(
    replay: Replay, row: jax.Array, uniform: jax.Array, goals: Goals, settings: ReplaySettings, *, of_picks: bool
) -> Relabelling:
    """Goals for the steps in the given rows of one agent, or for the picks that end there, by `uniform` in [0, 1)."""
    relabelled = uniform < goals.share
    later = _later(replay, row, uniform / max(goals.share, 1e-6), settings)
    new = Relabelling(relabelled, _achieved(replay.rows, later, goals, settings), None)
    if goals.rule.on_device:
        return new
    if of_picks:
        where, _ = rows_of_picks(replay.rows, row, settings)
        achieved, goal = _achieved(replay.rows, where, goals, settings), new.goal[:, None]
    else:
        achieved, goal = _achieved(replay.rows, row, goals, settings), new.goal
    return new._replace(from_host=_rewards_from_host(achieved, goal, goals))


def relabel(batch: Transitions, new: Relabelling, discount: jax.Array, goals: Goals) -> Transitions:
    """The batch under its new goals; `discount` is the agent's."""
    achieved = batch.next_observation[:, slice(*goals.achieved)]
    reward, reached = _rewards(achieved, new.goal, goals) if new.from_host is None else new.from_host
    if goals.ends:
        alive = discount * (1.0 - reached.astype(jnp.float32))
        batch = batch._replace(discount=jnp.where(new.relabelled, alive, batch.discount))
    batch = batch._replace(reward=jnp.where(new.relabelled, reward, batch.reward) + goals.shift)
    return replace_goals(batch, new, goals)


def relabel_picks(
    rows: jax.Array, last: jax.Array, new: Relabelling, goals: Goals, settings: ReplaySettings
) -> PickSteps:
    """What all steps of the picks that end in the rows `last` pay under their new goals."""
    columns = settings.columns
    where, within = rows_of_picks(rows, last, settings)
    if new.from_host is None:
        reward, reached = _rewards(_achieved(rows, where, goals, settings), new.goal[:, None], goals)
    else:
        reward, reached = new.from_host
    alive = take(rows, last, columns.alive)
    taken = within
    if goals.ends:  # a pick that reaches its new goal ends there
        reached = reached & within & new.relabelled[:, None]
        times = reached.astype(jnp.int32)
        taken = within & (jnp.cumsum(times, axis=1) == times)  # none before this step
        alive = jnp.where(new.relabelled, 1.0 - reached.any(axis=1).astype(jnp.float32), alive)
    rewards = jnp.where(new.relabelled[:, None], reward, take(rows, where, columns.reward)) + goals.shift
    return PickSteps(rewards, taken, alive)


def replace_goals(batch: Batch, new: Relabelling, goals: Goals) -> Batch:
    """The batch with observations that ask for its new goals."""
    start, stop = goals.desired

    def asking(observation: jax.Array) -> jax.Array:
        goal = jnp.where(new.relabelled[:, None], new.goal, observation[:, start:stop])
        return jnp.concatenate([observation[:, :start], goal, observation[:, stop:]], axis=1)

    return batch._replace(observation=asking(batch.observation), next_observation=asking(batch.next_observation))


def _later(replay: Replay, row: jax.Array, share: jax.Array, settings: ReplaySettings) -> jax.Array:
    """For each row one of its episode from there on, by its `share` of them."""
    assert replay.episodes is not None
    capacity = replay.rows.shape[0] // settings.environments
    within = row_in_ring(row, replay.rows, settings)
    newest = (replay.written - 1) % capacity
    count = replay.written - 1 - jnp.where(within > newest, newest - within + capacity, newest - within)
    episode = row - within + take(replay.episodes.of_row, row)
    ahead = take(replay.episodes.last, episode) - count  # `count` is the row's own, from the run's beginning
    offset = (share * (ahead + 1).astype(jnp.float32)).astype(jnp.int32)
    return rows_after(row, jnp.minimum(offset, ahead), replay.rows, settings)


def _achieved(rows: jax.Array, row: jax.Array, goals: Goals, settings: ReplaySettings) -> jax.Array:
    """What the steps in these rows achieved: the goal where they led."""
    first = settings.columns.next_observation.start
    start, stop = goals.achieved
    return take(rows, row, slice(first + start, first + stop))


def _rewards(achieved: jax.Array, goal: jax.Array, goals: Goals) -> GoalReward:
    goal = jnp.broadcast_to(goal, achieved.shape)
    return GoalReward(goals.rule.reward(achieved, goal), goals.rule.reached(achieved, goal))


def _rewards_from_host(achieved: jax.Array, goal: jax.Array, goals: Goals) -> GoalReward:
    """As `_rewards`, by the environment itself, all at once."""
    goal = jnp.broadcast_to(goal, achieved.shape)

    def ask(achieved: jax.Array, goal: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(achieved.shape[:-1], jnp.float32)
        asked: jax.Array = jax.pure_callback(goals.rule.reward, shape, achieved, goal, vmap_method="broadcast_all")
        return asked

    if not goals.ends:  # then nobody asks whether it was reached
        reward = ask(achieved, goal)
        return GoalReward(reward, jnp.zeros(reward.shape, jnp.bool_))
    reward, most = ask(jnp.stack([achieved, goal]), jnp.stack([goal, goal]))
    return GoalReward(reward, reward >= most)  # as envs.goals.Asked has it
