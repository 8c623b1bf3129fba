"""Which episode each row belongs to and how far it goes, against a plain model of the whole history."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import replay
from lowgear.learning.replay import Columns, Replay, ReplaySettings

COLUMNS = Columns(obs_dim=1, act_dim=1)
SETTINGS = ReplaySettings(COLUMNS, gear_count=2, longest_pick=1, master_capacity=1_000, track_episodes=True)
CASES = [(12, 4), (12, 12), (15, 1), (16, 8), (64, 16), (7, 7), (1, 1)]  # capacity and chunk
RATES = (0.0, 0.02, 0.1, 0.5, 0.9, 1.0)  # how often an episode ends: never, to at every step

insert = jax.jit(replay.insert, static_argnames="settings")


def history(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Rows of one agent; how often its episodes end changes now and then."""
    rows = np.zeros((steps, COLUMNS.width), np.float32)
    rows[:, COLUMNS.age] = rows[:, COLUMNS.closed] = 1
    rates = np.repeat(rng.choice(RATES, steps), rng.integers(1, 40, steps))[:steps]
    rows[:, COLUMNS.ended] = rng.random(steps) < rates
    return rows


def check(ring: Replay, rows: np.ndarray) -> None:
    """Every row in the ring knows how far its episode goes, and no two episodes are taken for one."""
    capacity, written = ring.rows.shape[1], rows.shape[1]
    assert ring.written == written
    assert ring.episodes is not None
    of_row, last, ended = jax.device_get(ring.episodes)
    times = np.arange(max(written - capacity, 0), written)
    for agent, steps in enumerate(rows):
        ends = np.flatnonzero(steps[:, COLUMNS.ended])
        assert ended[agent] == len(ends)
        episode = np.searchsorted(ends, times)  # the first end at the step or after it
        number = of_row[agent, times % capacity]
        np.testing.assert_array_equal(last[agent, number], np.append(ends, written - 1)[episode])
        assert len(set(zip(number, episode, strict=True))) == len(set(number)) == len(set(episode))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("capacity", "chunk"), CASES)
def test_episodes_after_every_insertion(capacity: int, chunk: int, seed: int) -> None:
    rng = np.random.default_rng((seed, capacity))
    rows = np.stack([history(rng, 8 * capacity + 5 * chunk) for _ in range(2)])
    ring = replay.init(2, capacity, SETTINGS)
    for stop in range(chunk, rows.shape[1] + 1, chunk):
        ring = insert(ring, rows[:, stop - chunk : stop], jnp.ones(2, bool), SETTINGS)
        check(ring, rows[:, :stop])


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_one_endless_episode_and_episodes_of_one_step(rate: float) -> None:
    rows = np.zeros((1, 40, COLUMNS.width), np.float32)
    rows[:, :, COLUMNS.ended] = rate
    ring = replay.init(1, 8, SETTINGS)
    for stop in range(4, 41, 4):
        ring = insert(ring, rows[:, stop - 4 : stop], jnp.ones(1, bool), SETTINGS)
        check(ring, rows[:, :stop])
    assert len(set(np.asarray(ring.episodes.of_row[0]))) == (8 if rate else 1)


def ahead(ring: Replay) -> np.ndarray:
    """How many steps follow in the episode of each row, from the oldest row to the newest."""
    capacity = ring.rows.shape[1]
    times = int(ring.written) - capacity + np.arange(capacity)
    number = np.asarray(ring.episodes.of_row)[:, times % capacity]
    return np.take_along_axis(np.asarray(ring.episodes.last), number, axis=1) - times


@pytest.mark.parametrize("seed", range(3))
def test_rebuilt_from_the_last_rows_and_going_on_as_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.stack([history(rng, 240) for _ in range(2)])
    put = partial(insert, shared=jnp.ones(2, bool), settings=SETTINGS)
    original, rebuilt = (replay.init(2, 24, SETTINGS) for _ in range(2))
    for begin in range(0, 240, 4):
        original = put(original, rows[:, begin : begin + 4])
        if begin >= 120:
            rebuilt = put(rebuilt, rows[:, begin : begin + 4])
        if begin >= 120 + 24:
            np.testing.assert_array_equal(ahead(rebuilt), ahead(original))


def test_agents_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(5)
    rows = np.stack([history(rng, 120) for _ in range(3)])

    def fill(rows: np.ndarray) -> Replay:
        ring = replay.init(len(rows), 24, SETTINGS)
        for begin in range(0, 120, 8):
            ring = insert(ring, rows[:, begin : begin + 8], jnp.ones(len(rows), bool), SETTINGS)
        return ring

    together = fill(rows)
    for agent in range(3):
        alone = fill(rows[agent : agent + 1])
        jax.tree.map(
            np.testing.assert_array_equal,
            jax.tree.map(lambda x: x[0], alone.episodes),
            jax.tree.map(lambda x, a=agent: x[a], together.episodes),
        )


def test_without_hindsight_nothing_is_kept_of_them() -> None:
    settings = SETTINGS._replace(track_episodes=False)
    rows = history(np.random.default_rng(0), 4)[None]
    ring = replay.init(1, 8, settings)
    assert ring.episodes is None
    assert insert(ring, rows, jnp.ones(1, bool), settings).episodes is None


def test_nothing_is_promoted_silently() -> None:
    rows = jnp.asarray(history(np.random.default_rng(0), 4)[None])
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        put = partial(replay.insert, settings=SETTINGS)
        ring = jax.eval_shape(put, replay.init(1, 8, SETTINGS), rows, jnp.ones(1, bool))
    assert {leaf.dtype for leaf in jax.tree.leaves(ring.episodes)} == {jnp.dtype("int32")}
