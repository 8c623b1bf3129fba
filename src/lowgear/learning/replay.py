"""The replay buffer: rings of steps on the learner's device, and an index of which rows each learner may sample.

Every environment has a ring; to what samples from them, the rings of one agent stand end to end. A row is one step:
everything that gears and master learn from is read off it. Entry g of the index holds the rows that gear g learns from,
in order of time: all of them where the gears share their experience, its own steps where they do not. The last entry
holds the rows at which a pick of the master ended; the rows of its steps stand just before.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lowgear.learning.transitions import MasterTransitions, Transitions
from lowgear.policy.arrays import FloatArray


class Columns(NamedTuple):
    """Where the parts of a row stand."""

    obs_dim: int
    act_dim: int
    keeps_last: bool = False  # the action before the step stands in a row too: where a gear can hold it

    @property
    def observation(self) -> slice:
        """What the agent saw."""
        return slice(0, self.obs_dim)

    @property
    def next_observation(self) -> slice:
        """Where the action led, the true last observation at an episode's end."""
        return slice(self.obs_dim, 2 * self.obs_dim)

    @property
    def action(self) -> slice:
        """What the gear did."""
        return slice(2 * self.obs_dim, 2 * self.obs_dim + self.act_dim)

    def end(self, rows: FloatArray) -> None:
        """Mark rows, (..., width), as the last ones of their picks and episodes, in place."""
        rows[..., [self.closed, self.ended]] = 1

    @property
    def reward(self) -> int:
        """What the environment paid."""
        return 2 * self.obs_dim + self.act_dim

    @property
    def alive(self) -> int:
        """0 after a real end, else 1: a time limit is no end."""
        return self.reward + 1

    @property
    def choice(self) -> int:
        """What the master had picked: the gear, and the number of its duration times the number of gears."""
        return self.reward + 2

    @property
    def age(self) -> int:
        """How many steps the pick had held after this one, from 1."""
        return self.reward + 3

    @property
    def closed(self) -> int:
        """1 where the pick ended with this step."""
        return self.reward + 4

    @property
    def ended(self) -> int:
        """1 where the episode ended with this step, for real or not."""
        return self.reward + 5

    @property
    def last_action(self) -> slice:
        """What was done before this step, where that is kept; zeros at an episode's start."""
        return slice(self.reward + 6, self.width)

    @property
    def width(self) -> int:
        """Floats in a row."""
        return self.reward + 6 + self.act_dim * self.keeps_last


class SampleIndex(NamedTuple):
    """Which rows each learner may sample: gears first, then the master. Each list of rows is a ring too."""

    rows: jax.Array  # (R, L, capacity) int32: row numbers in order of time
    evicted: jax.Array  # (R, L) int32: entries whose rows have been overwritten, counted from the run's beginning
    start: jax.Array  # (R, L) int32: oldest entry to sample, as `evicted` but for the bound on the master's list
    stop: jax.Array  # (R, L) int32: one past the newest


class Episodes(NamedTuple):
    """Which episode each row belongs to, and how far each episode goes. Episodes are numbered modulo the capacity."""

    of_row: jax.Array  # (R, capacity) int32
    last: jax.Array  # (R, capacity) int32: the newest row of an episode, counted from the run's beginning
    ended: jax.Array  # (R,) int32: episodes that have, so far


class Replay(NamedTuple):
    """R rings; equally many rows have been written to each.

    `by_agent` puts the rings of an agent end to end: row r of its environment e is then row `e · capacity + r`.
    """

    rows: jax.Array  # (R, capacity, width) float32
    samples: SampleIndex
    episodes: Episodes | None  # kept for hindsight alone
    written: jax.Array  # () int32: rows so far


class ReplaySettings(NamedTuple):
    """What inserting and sampling need to know besides the rings."""

    columns: Columns
    gear_count: int
    longest_pick: int  # steps
    master_capacity: int  # picks
    track_episodes: bool = False  # for hindsight
    environments: int = 1  # rings of each agent


def init(rings: int, capacity: int, settings: ReplaySettings) -> Replay:
    """Empty rings; `capacity` must be a multiple of the chunks that will be inserted."""
    lists = settings.gear_count + 1
    table = partial(jnp.zeros, (rings, capacity), jnp.int32)
    return Replay(
        rows=jnp.zeros((rings, capacity, settings.columns.width), jnp.float32),
        samples=SampleIndex(
            rows=jnp.zeros((rings, lists, capacity), jnp.int32),
            evicted=jnp.zeros((rings, lists), jnp.int32),
            start=jnp.zeros((rings, lists), jnp.int32),
            stop=jnp.zeros((rings, lists), jnp.int32),
        ),
        episodes=Episodes(table(), table(), jnp.zeros(rings, jnp.int32)) if settings.track_episodes else None,
        written=jnp.zeros((), jnp.int32),
    )


def insert(replay: Replay, chunk: jax.Array, shared: jax.Array, settings: ReplaySettings) -> Replay:
    """Write a chunk (R, K, width) over the oldest rows; `shared` (R,) says whose gears share their experience."""
    size, capacity = chunk.shape[1], replay.rows.shape[1]
    position = replay.written % capacity
    evict = partial(_evicted, written=replay.written, position=position, size=size, settings=settings)
    evicted = replay.samples.evicted + jax.vmap(evict)(replay.rows, shared)
    # `evicted` is never negative, which the compiler can't know: it must read the old rows before it overwrites them,
    # and so needs no copy of the ring.
    rows = jax.lax.dynamic_update_slice(replay.rows, chunk, (0, position + jnp.minimum(evicted.min(), 0), 0))

    def enlist(index: SampleIndex, evicted: jax.Array, new: jax.Array, share: jax.Array) -> SampleIndex:
        member = _members(new, share, settings)
        # A pick whose first step lies before the oldest row in the ring can't be rebuilt.
        before = jnp.minimum(replay.written, capacity - size)
        known = new[:, settings.columns.age].astype(jnp.int32) <= before + 1 + jnp.arange(size)
        member = member.at[-1].set(member[-1] & known)
        slot = (index.stop[:, None] + jnp.cumsum(member, axis=1) - 1) % capacity
        slot = jnp.where(member, slot, capacity)
        number = position + jnp.arange(size, dtype=jnp.int32)
        listed = jax.vmap(lambda rows, s: rows.at[s].set(number, mode="drop"))(index.rows, slot)
        stop = index.stop + member.sum(axis=1, dtype=jnp.int32)
        start = evicted.at[-1].max(stop[-1] - settings.master_capacity)
        return SampleIndex(listed, evicted, start, stop)

    def follow(episodes: Episodes, new: jax.Array) -> Episodes:
        ended = new[:, settings.columns.ended].astype(jnp.int32)
        number = (episodes.ended + jnp.cumsum(ended) - ended) % capacity
        of_row = jax.lax.dynamic_update_slice(episodes.of_row, number, (position,))
        last = episodes.last.at[number].max(replay.written + jnp.arange(size, dtype=jnp.int32))
        return Episodes(of_row, last, episodes.ended + ended.sum(dtype=jnp.int32))

    index = jax.vmap(enlist)(replay.samples, evicted, chunk, shared)
    episodes = None if replay.episodes is None else jax.vmap(follow)(replay.episodes, chunk)
    return Replay(rows, index, episodes, replay.written + size)


def by_agent(replay: Replay, environments: int) -> Replay:
    """The rings of each agent as one, with its indices side by side, (P, environments, ...)."""

    def beside(x: jax.Array) -> jax.Array:
        return x.reshape(-1, environments, *x.shape[1:])

    def joined(x: jax.Array) -> jax.Array:
        return x.reshape(-1, environments * x.shape[1], *x.shape[2:])

    episodes = replay.episodes
    if episodes is not None:
        episodes = Episodes(joined(episodes.of_row), joined(episodes.last), beside(episodes.ended))
    return Replay(joined(replay.rows), SampleIndex(*map(beside, replay.samples)), episodes, replay.written)


def sample_rows(index: SampleIndex, learner: int, uniform: jax.Array) -> jax.Array:
    """Rows that one agent's learner may sample, for numbers `uniform` in [0, 1)."""
    rows, start, stop = index.rows[:, learner], index.start[:, learner], index.stop[:, learner]
    ends = jnp.cumsum(stop - start)
    count = ends[-1]
    offset = jnp.minimum((uniform * count.astype(jnp.float32)).astype(jnp.int32), jnp.maximum(count - 1, 0))
    ring = (offset[:, None] >= ends[None, :-1]).sum(axis=1, dtype=jnp.int32)  # of one ring, none to compare with
    within = offset - (ends - (stop - start))[ring]
    capacity = rows.shape[1]
    return ring * capacity + take(rows, ring, (start[ring] + within) % capacity)


def take(array: jax.Array, *index: jax.Array | slice | int) -> jax.Array:
    """`array[index]` for indices that are within bounds for sure: the compiler need not check each."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def rows_after(row: jax.Array, by: jax.Array, rows: jax.Array, settings: ReplaySettings) -> jax.Array:
    """The rows that stand `by` steps after others in the same ring of one agent, less than once around."""
    capacity = rows.shape[0] // settings.environments
    within = row_in_ring(row, rows, settings)
    # Compared, not divided: a remainder takes many times as long.
    moved = within + by
    moved = jnp.where(moved < 0, moved + capacity, jnp.where(moved >= capacity, moved - capacity, moved))
    return row - within + moved


def row_in_ring(row: jax.Array, rows: jax.Array, settings: ReplaySettings) -> jax.Array:
    """Where rows of one agent stand in their own ring."""
    return row if settings.environments == 1 else row % (rows.shape[0] // settings.environments)


def transitions(rows: jax.Array, number: jax.Array, discount: jax.Array, columns: Columns) -> Transitions:
    """The steps in the given rows of one agent's ring."""
    row = take(rows, number)
    return Transitions(
        observation=row[:, columns.observation],
        action=row[:, columns.action],
        reward=row[:, columns.reward],
        discount=discount * row[:, columns.alive],
        next_observation=row[:, columns.next_observation],
    )


class PickSteps(NamedTuple):
    """What the steps of picks paid, (B, longest) each, and whether life went on after them."""

    reward: jax.Array
    taken: jax.Array  # bool: the steps that really ran
    alive: jax.Array  # (B,)


class UnpaidPicks(NamedTuple):
    """Whole picks read off the ring: reward and time apart, so that any coefficient can be paid afterwards."""

    transitions: MasterTransitions  # with the sum of rewards, no cost paid, and discount 1 or 0
    discounted_steps: jax.Array  # (B,) the steps that really ran, each weighed as its reward is
    steps: jax.Array  # (B,) these steps, counted


def rows_of_picks(rows: jax.Array, last: jax.Array, settings: ReplaySettings) -> tuple[jax.Array, jax.Array]:
    """The rows (B, longest) of picks that end in the rows `last`, oldest first, and which of them are theirs.

    The others repeat the last one.
    """
    duration = take(rows, last, settings.columns.age).astype(jnp.int32)[:, None]
    offset = jnp.arange(settings.longest_pick)[None]
    return rows_after(last[:, None], jnp.minimum(offset - duration + 1, 0), rows, settings), offset < duration


def steps_of_picks(rows: jax.Array, last: jax.Array, settings: ReplaySettings) -> PickSteps:
    """The steps of picks as they were lived."""
    where, within = rows_of_picks(rows, last, settings)
    return PickSteps(take(rows, where, settings.columns.reward), within, take(rows, last, settings.columns.alive))


def picks(
    rows: jax.Array, last: jax.Array, steps: PickSteps, discount: jax.Array, settings: ReplaySettings
) -> UnpaidPicks:
    """The master's transitions that end in the rows `last` of one agent's ring.

    `discount` weighs the steps within a pick; 1 is the paper's plain sum. Where rows keep the last action, the master
    sees it beside the observation: the one before the pick's first step, then that of its last step.
    """
    columns = settings.columns
    row = take(rows, last)
    first = rows_after(last, 1 - row[:, columns.age].astype(jnp.int32), rows, settings)
    offset = jnp.arange(settings.longest_pick, dtype=jnp.float32)[None]
    weight = jnp.where(steps.taken, discount**offset, 0.0)
    observation, next_observation = take(rows, first, columns.observation), row[:, columns.next_observation]
    if columns.keeps_last:
        observation = jnp.concatenate([observation, take(rows, first, columns.last_action)], axis=-1)
        next_observation = jnp.concatenate([next_observation, row[:, columns.action]], axis=-1)
    return UnpaidPicks(
        MasterTransitions(
            observation=observation,
            choice=row[:, columns.choice].astype(jnp.int32),
            reward=(steps.reward * weight).sum(axis=1),
            discount=steps.alive,
            next_observation=next_observation,
        ),
        weight.sum(axis=1),
        steps.taken.sum(axis=1, dtype=jnp.int32),
    )


def _members(new: jax.Array, share: jax.Array, settings: ReplaySettings) -> jax.Array:
    """Which rows belong to which learner, (L, rows)."""
    gear = new[:, settings.columns.choice].astype(jnp.int32) % settings.gear_count
    own = gear[None, :] == jnp.arange(settings.gear_count)[:, None]
    return jnp.concatenate([own | share, new[None, :, settings.columns.closed] > 0])


def _evicted(
    rows: jax.Array,
    share: jax.Array,
    *,
    written: jax.Array,
    position: jax.Array,
    size: int,
    settings: ReplaySettings,
) -> jax.Array:
    """How many entries of the index each learner loses when `size` rows from `position` are overwritten.

    A pick is lost with its first row, and its entry stands at its last one.
    """
    capacity = rows.shape[0]
    offset = jnp.arange(min(size + settings.longest_pick, capacity))
    old = rows[(position + offset) % capacity]
    first = offset - old[:, settings.columns.age].astype(jnp.int32) + 1
    member = _members(old, share, settings)
    gone = jnp.concatenate([member[:-1] & (offset < size)[None], member[-1:] & ((first >= 0) & (first < size))[None]])
    return jnp.where(written >= capacity, gone.sum(axis=1, dtype=jnp.int32), 0)
