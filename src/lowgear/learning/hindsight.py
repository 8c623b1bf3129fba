"""Hindsight experience replay: Andrychowicz et al. 2017, strategy `future`, relabelled when a batch is drawn.

A step is told that its goal was what the same episode achieved at that step or later; what it then would have paid is
computed anew. A pick of the master is told the same about its last step, and its rewards are those of all its steps
under that goal, so that nothing of its sum is lost. Goals never come from beyond the episode's end.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from lowgear.learning.dqn import Picks
from lowgear.learning.replay import PickSteps, Replay, ReplaySettings, along, in_lane, rows_of_picks, take
from lowgear.learning.sac import Transitions

Batch = TypeVar("Batch", Transitions, Picks)


class Goals(NamedTuple):
    """The static side: where goals stand in an observation, and what reaching them means."""

    achieved: tuple[int, int]  # [start, stop) in the observation
    desired: tuple[int, int]
    rule: Any  # envs.goals.GoalRule
    share: float  # of a batch that is relabelled
    shift: float  # added to every reward
    ends: bool  # an episode ends once its goal is reached


class Verdict(NamedTuple):
    """What steps pay under the goals they are told, and whether they reach them; (B,) or (B, longest) each."""

    reward: jax.Array
    reached: jax.Array


class Told(NamedTuple):
    """What the steps or picks of a batch are told, (B, ...) each."""

    changed: jax.Array  # bool: the others keep their own goals, and what they were paid
    goal: jax.Array  # (B, d)
    asked: Verdict | None  # what the host said; None where the device can judge


def tell(
    ring: Replay, row: jax.Array, chance: jax.Array, goals: Goals, settings: ReplaySettings, *, of_picks: bool
) -> Told:
    """Goals for the steps in the given rows of one agent's ring, or for the picks that end there.

    `chance` is uniform in [0, 1).
    """
    changed = chance < goals.share
    later = _later(ring, row, chance / max(goals.share, 1e-6), settings)
    told = Told(changed, _achieved(ring.rows, later, goals, settings), None)
    if goals.rule.on_device:
        return told
    if of_picks:
        where, _ = rows_of_picks(ring.rows, row, settings)
        return told._replace(asked=_ask(_achieved(ring.rows, where, goals, settings), told.goal[:, None], goals))
    return told._replace(asked=_ask(_achieved(ring.rows, row, goals, settings), told.goal, goals))


def steps(batch: Transitions, told: Told, discount: jax.Array, goals: Goals) -> Transitions:
    """The batch under the goals it is told; `discount` is the agent's."""
    achieved = batch.next_observation[:, slice(*goals.achieved)]
    reward, reached = _judge(achieved, told.goal, goals) if told.asked is None else told.asked
    if goals.ends:
        alive = discount * (1.0 - reached.astype(jnp.float32))
        batch = batch._replace(discount=jnp.where(told.changed, alive, batch.discount))
    batch = batch._replace(reward=jnp.where(told.changed, reward, batch.reward) + goals.shift)
    return with_goals(batch, told, goals)


def picks(rows: jax.Array, last: jax.Array, told: Told, goals: Goals, settings: ReplaySettings) -> PickSteps:
    """What all steps of the picks that end in the rows `last` pay under the goals they are told."""
    columns = settings.columns
    where, within = rows_of_picks(rows, last, settings)
    if told.asked is None:
        reward, reached = _judge(_achieved(rows, where, goals, settings), told.goal[:, None], goals)
    else:
        reward, reached = told.asked
    alive = take(rows, last, columns.alive)
    taken = within
    if goals.ends:  # a pick that reaches its new goal ends there
        reached = reached & within & told.changed[:, None]
        times = reached.astype(jnp.int32)
        taken = within & (jnp.cumsum(times, axis=1) == times)  # none before this step
        alive = jnp.where(told.changed, 1.0 - reached.any(axis=1).astype(jnp.float32), alive)
    rewards = jnp.where(told.changed[:, None], reward, take(rows, where, columns.reward)) + goals.shift
    return PickSteps(rewards, taken, alive)


def with_goals(batch: Batch, told: Told, goals: Goals) -> Batch:
    """The batch with observations that ask for the goals it is told."""
    start, stop = goals.desired

    def asking(observation: jax.Array) -> jax.Array:
        goal = jnp.where(told.changed[:, None], told.goal, observation[:, start:stop])
        return jnp.concatenate([observation[:, :start], goal, observation[:, stop:]], axis=1)

    return batch._replace(observation=asking(batch.observation), next_observation=asking(batch.next_observation))


def _later(ring: Replay, row: jax.Array, share: jax.Array, settings: ReplaySettings) -> jax.Array:
    """For each row one of its episode from there on, by its `share` of them."""
    assert ring.episodes is not None
    capacity = ring.rows.shape[0] // settings.lanes
    within = in_lane(row, ring.rows, settings)
    newest = (ring.written - 1) % capacity
    count = ring.written - 1 - jnp.where(within > newest, newest - within + capacity, newest - within)
    episode = row - within + take(ring.episodes.of_row, row)
    ahead = take(ring.episodes.last, episode) - count  # `count` is the row's own, from the run's beginning
    offset = (share * (ahead + 1).astype(jnp.float32)).astype(jnp.int32)
    return along(row, jnp.minimum(offset, ahead), ring.rows, settings)


def _achieved(rows: jax.Array, row: jax.Array, goals: Goals, settings: ReplaySettings) -> jax.Array:
    """What the steps in these rows achieved: the goal where they led."""
    first = settings.columns.next_observation.start
    start, stop = goals.achieved
    return take(rows, row, slice(first + start, first + stop))


def _judge(achieved: jax.Array, goal: jax.Array, goals: Goals) -> Verdict:
    goal = jnp.broadcast_to(goal, achieved.shape)
    return Verdict(goals.rule.reward(achieved, goal), goals.rule.reached(achieved, goal))


def _ask(achieved: jax.Array, goal: jax.Array, goals: Goals) -> Verdict:
    """As `_judge`, of the host, all at once."""
    goal = jnp.broadcast_to(goal, achieved.shape)

    def ask(achieved: jax.Array, goal: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(achieved.shape[:-1], jnp.float32)
        asked: jax.Array = jax.pure_callback(goals.rule.reward, shape, achieved, goal, vmap_method="broadcast_all")
        return asked

    if not goals.ends:  # then nobody asks whether it was reached
        reward = ask(achieved, goal)
        return Verdict(reward, jnp.zeros(reward.shape, jnp.bool_))
    reward, most = ask(jnp.stack([achieved, goal]), jnp.stack([goal, goal]))
    return Verdict(reward, reward >= most)  # as envs.goals.Asked has it
