"""Rings of steps on the learner's device, one for each environment, and lists of which rows each learner may draw.

An agent with several environments has as many rings; to what draws from them they are lanes of one long ring. A row is
one environment step: everything that gears and master learn from is read off it. List g holds the rows that gear g
learns from, in order of time: all of them where the gears share their experience, its own steps where they do not. The
last list holds the rows at which a pick of the master ended; the rows of its steps stand just before.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lowgear.learning.dqn import Picks
from lowgear.learning.sac import Transitions


class Columns(NamedTuple):
    """Where the parts of a row stand."""

    obs_dim: int
    act_dim: int

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
    def width(self) -> int:
        """Floats in a row."""
        return self.reward + 6


class Lists(NamedTuple):
    """Which rows each learner may draw: gears first, then the master. Each list is a ring too."""

    order: jax.Array  # (P, L, capacity) int32: row numbers in order of time
    gone: jax.Array  # (P, L) int32: entries whose rows have been overwritten, counted from the run's beginning
    start: jax.Array  # (P, L) int32: oldest entry that may be drawn, as `gone` but for the bound on the master's list
    stop: jax.Array  # (P, L) int32: one past the newest


class Episodes(NamedTuple):
    """Which episode each row belongs to, and how far each episode goes. Episodes are numbered modulo the capacity."""

    of_row: jax.Array  # (P, capacity) int32
    last: jax.Array  # (P, capacity) int32: the newest row of an episode, counted from the run's beginning
    ended: jax.Array  # (P,) int32: episodes that have, so far


class Replay(NamedTuple):
    """P rings; equally many rows have been written to each.

    `by_agent` puts the rings of an agent end to end: row r of lane l is then row `l · capacity + r`.
    """

    rows: jax.Array  # (P, capacity, width) float32
    lists: Lists
    episodes: Episodes | None  # kept for hindsight alone
    written: jax.Array  # () int32: rows so far


class ReplaySettings(NamedTuple):
    """What insertion and drawing need to know besides the rings."""

    columns: Columns
    gears: int
    longest_pick: int  # steps
    master_capacity: int  # picks
    hindsight: bool = False  # episodes are kept track of
    lanes: int = 1  # rings of each agent


def init(population: int, capacity: int, settings: ReplaySettings) -> Replay:
    """Empty rings; `capacity` must be a multiple of the chunks that will be inserted."""
    lists = settings.gears + 1
    table = partial(jnp.zeros, (population, capacity), jnp.int32)
    return Replay(
        rows=jnp.zeros((population, capacity, settings.columns.width), jnp.float32),
        lists=Lists(
            order=jnp.zeros((population, lists, capacity), jnp.int32),
            gone=jnp.zeros((population, lists), jnp.int32),
            start=jnp.zeros((population, lists), jnp.int32),
            stop=jnp.zeros((population, lists), jnp.int32),
        ),
        episodes=Episodes(table(), table(), jnp.zeros(population, jnp.int32)) if settings.hindsight else None,
        written=jnp.zeros((), jnp.int32),
    )


def insert(replay: Replay, chunk: jax.Array, shared: jax.Array, settings: ReplaySettings) -> Replay:
    """Write a chunk (P, K, width) over the oldest rows; `shared` (P,) says whose gears share their experience."""
    size, capacity = chunk.shape[1], replay.rows.shape[1]
    position = replay.written % capacity
    evict = partial(_evicted, written=replay.written, position=position, size=size, settings=settings)
    gone = replay.lists.gone + jax.vmap(evict)(replay.rows, shared)
    # `gone` is never negative, which the compiler can't know: it must read the old rows before it overwrites them, and
    # so needs no copy of the ring.
    rows = jax.lax.dynamic_update_slice(replay.rows, chunk, (0, position + jnp.minimum(gone.min(), 0), 0))

    def enlist(lists: Lists, gone: jax.Array, new: jax.Array, share: jax.Array) -> Lists:
        member = _members(new, share, settings)
        # A pick whose first step lies before the oldest row in the ring can't be rebuilt.
        before = jnp.minimum(replay.written, capacity - size)
        known = new[:, settings.columns.age].astype(jnp.int32) <= before + 1 + jnp.arange(size)
        member = member.at[-1].set(member[-1] & known)
        slot = (lists.stop[:, None] + jnp.cumsum(member, axis=1) - 1) % capacity
        slot = jnp.where(member, slot, capacity)
        number = position + jnp.arange(size, dtype=jnp.int32)
        order = jax.vmap(lambda o, s: o.at[s].set(number, mode="drop"))(lists.order, slot)
        stop = lists.stop + member.sum(axis=1, dtype=jnp.int32)
        start = gone.at[-1].max(stop[-1] - settings.master_capacity)
        return Lists(order, gone, start, stop)

    def follow(episodes: Episodes, new: jax.Array) -> Episodes:
        ended = new[:, settings.columns.ended].astype(jnp.int32)
        number = (episodes.ended + jnp.cumsum(ended) - ended) % capacity
        of_row = jax.lax.dynamic_update_slice(episodes.of_row, number, (position,))
        last = episodes.last.at[number].max(replay.written + jnp.arange(size, dtype=jnp.int32))
        return Episodes(of_row, last, episodes.ended + ended.sum(dtype=jnp.int32))

    lists = jax.vmap(enlist)(replay.lists, gone, chunk, shared)
    episodes = None if replay.episodes is None else jax.vmap(follow)(replay.episodes, chunk)
    return Replay(rows, lists, episodes, replay.written + size)


def by_agent(replay: Replay, lanes: int) -> Replay:
    """The rings of each agent as one, with its lists side by side, (P / lanes, lanes, ...)."""

    def beside(x: jax.Array) -> jax.Array:
        return x.reshape(-1, lanes, *x.shape[1:])

    def joined(x: jax.Array) -> jax.Array:
        return x.reshape(-1, lanes * x.shape[1], *x.shape[2:])

    episodes = replay.episodes
    if episodes is not None:
        episodes = Episodes(joined(episodes.of_row), joined(episodes.last), beside(episodes.ended))
    return Replay(joined(replay.rows), Lists(*map(beside, replay.lists)), episodes, replay.written)


def draw(lists: Lists, number: int, chance: jax.Array) -> jax.Array:
    """Rows drawn uniformly from one agent's lists `number`, for `chance` uniform in [0, 1)."""
    order, start, stop = lists.order[:, number], lists.start[:, number], lists.stop[:, number]
    ends = jnp.cumsum(stop - start)
    count = ends[-1]
    offset = jnp.minimum((chance * count.astype(jnp.float32)).astype(jnp.int32), jnp.maximum(count - 1, 0))
    lane = (offset[:, None] >= ends[None, :-1]).sum(axis=1, dtype=jnp.int32)  # of one lane, none to compare with
    within = offset - (ends - (stop - start))[lane]
    capacity = order.shape[1]
    return lane * capacity + take(order, lane, (start[lane] + within) % capacity)


def take(array: jax.Array, *index: jax.Array | slice | int) -> jax.Array:
    """`array[index]` for indices that are within bounds for sure: the compiler need not check each."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def along(row: jax.Array, by: jax.Array, rows: jax.Array, settings: ReplaySettings) -> jax.Array:
    """The rows that stand `by` steps after others in the same lane of one agent's rings, less than once around."""
    capacity = rows.shape[0] // settings.lanes
    within = in_lane(row, rows, settings)
    # Compared, not divided: a remainder takes many times as long.
    moved = within + by
    moved = jnp.where(moved < 0, moved + capacity, jnp.where(moved >= capacity, moved - capacity, moved))
    return row - within + moved


def in_lane(row: jax.Array, rows: jax.Array, settings: ReplaySettings) -> jax.Array:
    """Where rows of one agent's rings stand in their own lane."""
    return row if settings.lanes == 1 else row % (rows.shape[0] // settings.lanes)


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


class PickRows(NamedTuple):
    """Whole picks read off the ring: reward and time apart, so that any price can be paid afterwards."""

    picks: Picks  # with the sum of rewards, no cost paid, and discount 1 or 0
    held: jax.Array  # (B,) the steps that really ran, each weighed as its reward is
    duration: jax.Array  # (B,) these steps, counted


def rows_of_picks(rows: jax.Array, last: jax.Array, settings: ReplaySettings) -> tuple[jax.Array, jax.Array]:
    """The rows (B, longest) of picks that end in the rows `last`, oldest first, and which of them are theirs.

    The others repeat the last one.
    """
    duration = take(rows, last, settings.columns.age).astype(jnp.int32)[:, None]
    offset = jnp.arange(settings.longest_pick)[None]
    return along(last[:, None], jnp.minimum(offset - duration + 1, 0), rows, settings), offset < duration


def steps_of_picks(rows: jax.Array, last: jax.Array, settings: ReplaySettings) -> PickSteps:
    """The steps of picks as they were lived."""
    where, within = rows_of_picks(rows, last, settings)
    return PickSteps(take(rows, where, settings.columns.reward), within, take(rows, last, settings.columns.alive))


def picks(
    rows: jax.Array, last: jax.Array, steps: PickSteps, discount: jax.Array, settings: ReplaySettings
) -> PickRows:
    """The master's transitions that end in the rows `last` of one agent's ring.

    `discount` weighs the steps within a pick; 1 is the paper's plain sum.
    """
    columns = settings.columns
    row = take(rows, last)
    first = along(last, 1 - row[:, columns.age].astype(jnp.int32), rows, settings)
    offset = jnp.arange(settings.longest_pick, dtype=jnp.float32)[None]
    weight = jnp.where(steps.taken, discount**offset, 0.0)
    return PickRows(
        Picks(
            observation=take(rows, first, columns.observation),
            choice=row[:, columns.choice].astype(jnp.int32),
            reward=(steps.reward * weight).sum(axis=1),
            discount=steps.alive,
            next_observation=row[:, columns.next_observation],
        ),
        weight.sum(axis=1),
        steps.taken.sum(axis=1, dtype=jnp.int32),
    )


def _members(new: jax.Array, share: jax.Array, settings: ReplaySettings) -> jax.Array:
    """Which rows belong to which list, (L, rows)."""
    gear = new[:, settings.columns.choice].astype(jnp.int32) % settings.gears
    own = gear[None, :] == jnp.arange(settings.gears)[:, None]
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
    """How many entries each list loses when `size` rows from `position` are overwritten.

    A pick is lost with its first row, and its entry stands at its last one.
    """
    capacity = rows.shape[0]
    offset = jnp.arange(min(size + settings.longest_pick, capacity))
    old = rows[(position + offset) % capacity]
    first = offset - old[:, settings.columns.age].astype(jnp.int32) + 1
    member = _members(old, share, settings)
    gone = jnp.concatenate([member[:-1] & (offset < size)[None], member[-1:] & ((first >= 0) & (first < size))[None]])
    return jnp.where(written >= capacity, gone.sum(axis=1, dtype=jnp.int32), 0)
