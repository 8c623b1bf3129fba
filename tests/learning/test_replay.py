"""Rings and their index against a plain model: the whole history in NumPy, and rules about which of it is live."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import replay
from lowgear.learning.replay import Columns, Replay, ReplaySettings
from lowgear.learning.transitions import Transitions

COLUMNS = Columns(obs_dim=2, act_dim=1)
GEARS, MASTER = 2, 2
insert = jax.jit(replay.insert, static_argnames="settings")
PLAIN = jnp.float32(1)  # every step of a pick weighs the same


@partial(jax.jit, static_argnames="settings")
def all_picks(rows: jax.Array, last: jax.Array, discount: jax.Array, settings: ReplaySettings) -> replay.UnpaidPicks:
    """Picks as they were lived."""
    return replay.picks(rows, last, replay.steps_of_picks(rows, last, settings), discount, settings)


@partial(jax.jit, static_argnames=("agent", "number"))
def sample(ring: Replay, agent: int, number: int, uniform: jax.Array) -> jax.Array:
    return replay.sample_rows(jax.tree.map(lambda x: x[agent : agent + 1], ring.samples), number, uniform)


@dataclass(frozen=True)
class Case:
    capacity: int
    chunk: int
    periods: tuple[int, ...]
    master_capacity: int = 1_000

    @property
    def settings(self) -> ReplaySettings:
        return ReplaySettings(COLUMNS, GEARS, max(self.periods), self.master_capacity)


CASES = [
    Case(capacity=12, chunk=4, periods=(5,)),  # picks longer than a chunk
    Case(capacity=24, chunk=4, periods=(1, 3, 5)),
    Case(capacity=15, chunk=1, periods=(4,)),
    Case(capacity=15, chunk=1, periods=(1, 3, 5)),
    Case(capacity=16, chunk=8, periods=(2, 8)),
    Case(capacity=24, chunk=6, periods=(6,), master_capacity=10_000),
]


def history(rng: np.random.Generator, steps: int, periods: tuple[int, ...]) -> np.ndarray:
    """Rows of one agent: picks of random gears and periods, some of them cut short by an episode's end.

    How often episodes end changes with time, so that later chunks hold more picks or fewer than those they replace.
    """
    rows = np.zeros((steps, COLUMNS.width), np.float32)
    age, gear, number = 0, 0, 0
    for t, row in enumerate(rows):
        if age == 0:
            gear, number = int(rng.integers(GEARS)), int(rng.integers(len(periods)))
        age += 1
        ends = rng.random() < (0.6 if t // 20 % 2 else 0.1)
        closed = ends or age == periods[number]
        row[COLUMNS.observation] = t, -t
        row[COLUMNS.next_observation] = t + 1, -t - 1
        row[COLUMNS.action] = rng.normal()
        row[COLUMNS.reward] = rng.integers(-8, 8)  # sums are exact
        row[COLUMNS.alive] = not (ends and rng.random() < 0.5)
        row[COLUMNS.choice] = gear + GEARS * number
        row[COLUMNS.age] = age
        row[COLUMNS.closed] = closed
        age = 0 if closed else age
    return rows


def population(seed: int, steps: int, periods: tuple[int, ...]) -> tuple[np.ndarray, jax.Array]:
    """Rows of two agents that share their gears' experience or not, (2, steps, width)."""
    rng = np.random.default_rng(seed)
    return np.stack([history(rng, steps, periods) for _ in range(2)]), jnp.array([True, False])


def fill(rows: np.ndarray, shared: jax.Array, case: Case, ring: Replay | None = None) -> Replay:
    ring = replay.init(len(rows), case.capacity, case.settings) if ring is None else ring
    for begin in range(0, rows.shape[1], case.chunk):
        ring = insert(ring, rows[:, begin : begin + case.chunk], shared, case.settings)
    return ring


def live(ring: Replay, agent: int, number: int) -> np.ndarray:
    """The rows that can be sampled, oldest first, with one number for each entry."""
    count = int(ring.samples.stop[agent, number] - ring.samples.start[agent, number])
    assert 0 <= count <= ring.rows.shape[1], f"agent {agent}, list {number}: {count} entries"
    uniform = np.zeros(ring.rows.shape[1], np.float32)
    uniform[:count] = (np.arange(count) + 0.5) / max(count, 1)
    return np.asarray(sample(ring, agent, number, uniform))[:count]


def expected(rows: np.ndarray, shared: bool, number: int, case: Case) -> np.ndarray:
    """The steps, as times in one agent's history, that should be live in a list."""
    times = np.arange(len(rows))
    oldest = max(len(rows) - case.capacity, 0)
    if number == MASTER:
        first = times - rows[:, COLUMNS.age] + 1
        return times[(rows[:, COLUMNS.closed] == 1) & (first >= oldest)][-case.master_capacity :]
    return times[(times >= oldest) & (shared | (rows[:, COLUMNS.choice] % GEARS == number))]


def check(ring: Replay, rows: np.ndarray, shared: jax.Array, case: Case) -> None:
    for agent in range(len(rows)):
        for number in range(GEARS + 1):
            found = np.asarray(ring.rows[agent])[live(ring, agent, number)]
            wanted = rows[agent, expected(rows[agent], bool(shared[agent]), number, case)]
            np.testing.assert_array_equal(found, wanted, err_msg=f"agent {agent}, list {number}")


def test_columns_do_not_overlap_and_fill_the_row() -> None:
    places = np.arange(Columns(3, 2).width)
    columns = Columns(3, 2)
    parts = [places[columns.observation], places[columns.next_observation], places[columns.action]]
    singles = [columns.reward, columns.alive, columns.choice, columns.age, columns.closed, columns.ended]
    assert [len(part) for part in parts] == [3, 3, 2]
    assert sorted([*np.concatenate(parts), *singles]) == places.tolist()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lists_hold_exactly_what_is_live_after_every_insertion(case: Case) -> None:
    rows, shared = population(1, 8 * case.capacity, case.periods)
    ring = replay.init(2, case.capacity, case.settings)
    check(ring, rows[:, :0], shared, case)
    for stop in range(case.chunk, rows.shape[1] + 1, case.chunk):
        ring = insert(ring, rows[:, stop - case.chunk : stop], shared, case.settings)
        assert ring.written == stop
        check(ring, rows[:, :stop], shared, case)


@pytest.mark.parametrize("seed", range(3))
def test_master_capacity_keeps_the_newest_picks(seed: int) -> None:
    case = Case(capacity=24, chunk=4, periods=(1, 3), master_capacity=6)
    rows, shared = population(seed, 6 * case.capacity, case.periods)
    ring = replay.init(2, case.capacity, case.settings)
    for stop in range(case.chunk, rows.shape[1] + 1, case.chunk):
        ring = insert(ring, rows[:, stop - case.chunk : stop], shared, case.settings)
        check(ring, rows[:, :stop], shared, case)


def test_ring_of_a_single_chunk() -> None:
    case = Case(capacity=8, chunk=8, periods=(3,))
    rows, shared = population(2, 64, case.periods)
    ring = replay.init(2, case.capacity, case.settings)
    for stop in range(case.chunk, rows.shape[1] + 1, case.chunk):
        ring = insert(ring, rows[:, stop - case.chunk : stop], shared, case.settings)
        check(ring, rows[:, :stop], shared, case)


def test_a_pick_lives_until_its_first_row_is_overwritten() -> None:
    # One pick over rows 2, 3, 4: across chunks of one row, and later around the ring's end.
    case = Case(capacity=6, chunk=1, periods=(3,))
    rows = np.zeros((1, 30, COLUMNS.width), np.float32)
    rows[0, :, COLUMNS.age] = 1
    for begin in (2, 10):  # rows 10, 11, 12 stand at 4, 5, 0
        rows[0, begin : begin + 3, COLUMNS.age] = 1, 2, 3
        rows[0, begin : begin + 3, COLUMNS.reward] = 1, 10, 100
        rows[0, begin + 2, COLUMNS.closed] = 1
    ring = replay.init(1, case.capacity, case.settings)
    alive = []
    for t in range(30):
        ring = insert(ring, rows[:, t : t + 1], jnp.array([True]), case.settings)
        found = live(ring, 0, MASTER)
        if len(found):
            alive.append(t)
            assert all_picks(ring.rows[0], jnp.asarray(found), PLAIN, case.settings).transitions.reward == 111
    assert alive == [4, 5, 6, 7, 12, 13, 14, 15]  # row 2 is overwritten by row 8, row 10 by row 16


@pytest.mark.parametrize("discount", [1.0, 0.5])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_picks_sum_their_own_steps(case: Case, discount: float) -> None:
    rows, shared = population(3, 5 * case.capacity + 2 * case.chunk, case.periods)
    ring = fill(rows, shared, case)
    for agent in range(2):
        last = expected(rows[agent], bool(shared[agent]), MASTER, case)
        padded = np.resize(live(ring, agent, MASTER), case.capacity)
        found = jax.device_get(all_picks(ring.rows[agent], padded, jnp.float32(discount), case.settings))
        assert len(last) > 1
        periods = rows[agent, last, COLUMNS.age].astype(int)
        np.testing.assert_array_equal(found.steps[: len(last)], periods)
        for i, (t, duration) in enumerate(zip(last, periods, strict=True)):
            steps = rows[agent, t - duration + 1 : t + 1]
            weight = discount ** np.arange(duration)  # powers of two: these sums are exact too
            assert found.transitions.reward[i] == (steps[:, COLUMNS.reward] * weight).sum()
            assert found.discounted_steps[i] == weight.sum()
            np.testing.assert_array_equal(found.transitions.observation[i], steps[0, COLUMNS.observation])
            np.testing.assert_array_equal(found.transitions.next_observation[i], steps[-1, COLUMNS.next_observation])
            assert (found.transitions.choice[i] == steps[:, COLUMNS.choice]).all()
            assert found.transitions.discount[i] == steps[-1, COLUMNS.alive]
    assert found.transitions.choice.dtype == found.steps.dtype == np.int32


def test_a_discount_weighs_the_steps_of_a_pick_by_hand() -> None:
    # In a ring of eight: rows 0, 1 cut short by a real end; row 2 alone; rows 6, 7, 0' around the ring's end.
    settings = Case(capacity=8, chunk=1, periods=(1, 3)).settings
    rows = np.zeros((8, COLUMNS.width), np.float32)
    rows[:, COLUMNS.alive] = 1
    rows[:, COLUMNS.observation] = rows[:, COLUMNS.next_observation] = np.arange(8)[:, None]
    rows[3:6, COLUMNS.reward] = 1000  # nobody's
    rows[[0, 1], COLUMNS.age], rows[[0, 1], COLUMNS.reward], rows[1, COLUMNS.alive] = (1, 2), (8, 4), 0
    rows[2, [COLUMNS.age, COLUMNS.reward, COLUMNS.choice]] = 1, -3, 1
    early = all_picks(rows, jnp.array([1, 2]), jnp.float32(0.5), settings)
    np.testing.assert_array_equal(early.transitions.reward, [8 + 0.5 * 4, -3])
    np.testing.assert_array_equal(early.discounted_steps, [1 + 0.5, 1])
    np.testing.assert_array_equal(early.steps, [2, 1])
    np.testing.assert_array_equal(early.transitions.discount, [0, 1])
    np.testing.assert_array_equal(early.transitions.choice, [0, 1])
    rows[[6, 7, 0], COLUMNS.age], rows[[6, 7, 0], COLUMNS.reward] = (1, 2, 3), (1, 10, 100)
    rows[[6, 7, 0], COLUMNS.choice] = 3
    for discount, reward, held in ((0.5, 1 + 5 + 25, 1.75), (1.0, 111, 3), (0.0, 1, 1)):
        late = all_picks(rows, jnp.array([0, 0]), jnp.float32(discount), settings)
        assert (late.transitions.reward[0], late.discounted_steps[0], late.steps[0]) == (reward, held, 3)
        assert late.transitions.choice[0] == 3  # the large gear for the second duration
        assert (late.transitions.observation[0, 0], late.transitions.next_observation[0, 0]) == (6, 0)


def test_transitions_read_back_what_was_written() -> None:
    case = CASES[1]
    rows, shared = population(4, 2 * case.capacity, case.periods)
    ring = fill(rows, shared, case)
    number = live(ring, 1, 0)
    steps = replay.transitions(ring.rows[1], number, jnp.float32(0.75), COLUMNS)
    wanted = rows[1, expected(rows[1], False, 0, case)]
    np.testing.assert_array_equal(steps.observation, wanted[:, COLUMNS.observation])
    np.testing.assert_array_equal(steps.action, wanted[:, COLUMNS.action])
    np.testing.assert_array_equal(steps.reward, wanted[:, COLUMNS.reward])
    np.testing.assert_array_equal(steps.next_observation, wanted[:, COLUMNS.next_observation])
    np.testing.assert_array_equal(steps.discount, 0.75 * wanted[:, COLUMNS.alive])
    assert set(np.asarray(steps.discount)) == {0.0, 0.75}


@pytest.mark.parametrize("number", range(GEARS + 1))
def test_samples_are_uniform_over_the_live_entries(number: int) -> None:
    case = CASES[1]
    rows, shared = population(5, 3 * case.capacity, case.periods)
    ring = fill(rows, shared, case)
    entries = live(ring, 1, number)
    # Every number on a fine grid: each entry gets its share, to one, and nothing else is ever sampled.
    grid = 2**14
    sampled, counts = np.unique(sample(ring, 1, number, np.arange(grid, dtype=np.float32) / grid), return_counts=True)
    np.testing.assert_array_equal(sampled, np.sort(entries))
    assert np.abs(counts - grid / len(entries)).max() <= 1
    # The ends of [0, 1) are the list's ends.
    ends = np.array([0.0, np.nextafter(np.float32(1), np.float32(0))], np.float32)
    np.testing.assert_array_equal(sample(ring, 1, number, ends), entries[[0, -1]])


def test_largest_number_gives_the_last_entry_of_a_long_list() -> None:
    count = 2**19 + 1
    fresh = replay.init(1, count, CASES[0].settings).samples
    rows = jnp.broadcast_to(jnp.arange(count), (1, 3, count))
    index = fresh._replace(rows=rows, stop=jnp.full((1, 3), count, jnp.int32))
    assert replay.sample_rows(index, 0, jnp.array([1 - 2**-24], jnp.float32)) == count - 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "case", [CASES[0], CASES[1], Case(capacity=24, chunk=4, periods=(1, 3), master_capacity=6)], ids=str
)
def test_rings_rebuilt_from_the_last_rows_sample_the_same(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = case.chunk * int(rng.integers(2, 10 * case.capacity // case.chunk))
    rows, shared = population(seed + 100, steps, case.periods)
    original = fill(rows, shared, case)
    uniform = rng.random(64, np.float32)
    for extra in (0, case.chunk, 3 * case.chunk):
        kept = rows[:, -min(case.capacity + extra, steps) :]
        rebuilt = fill(kept, shared, case)
        for agent in range(2):
            for number in range(GEARS + 1):
                assert len(live(original, agent, number)) == len(live(rebuilt, agent, number))
                if not len(live(original, agent, number)):
                    continue
                one, two = (sample(ring, agent, number, uniform) for ring in (original, rebuilt))
                np.testing.assert_array_equal(original.rows[agent][one], rebuilt.rows[agent][two])
                if number == MASTER:
                    jax.tree.map(
                        np.testing.assert_array_equal,
                        all_picks(original.rows[agent], one, PLAIN, case.settings),
                        all_picks(rebuilt.rows[agent], two, PLAIN, case.settings),
                    )


@pytest.mark.parametrize("seed", range(3))
def test_rebuilt_rings_go_on_as_the_original_does(seed: int) -> None:
    case = Case(capacity=24, chunk=4, periods=(2, 5), master_capacity=7)
    rows, shared = population(seed + 200, 400, case.periods)
    original = fill(rows[:, :200], shared, case)
    rebuilt = fill(rows[:, 200 - case.capacity : 200], shared, case)
    for begin in range(200, 400, 20):
        new = rows[:, begin : begin + 20]
        original, rebuilt = (fill(new, shared, case, ring) for ring in (original, rebuilt))
        for agent in range(2):
            for number in range(GEARS + 1):
                one, two = live(original, agent, number), live(rebuilt, agent, number)
                np.testing.assert_array_equal(original.rows[agent][one], rebuilt.rows[agent][two])


def test_agents_do_not_touch_each_other() -> None:
    case = CASES[0]
    rows, shared = population(6, 5 * case.capacity, case.periods)
    together = fill(rows, shared, case)
    for agent in range(2):
        alone = fill(rows[agent : agent + 1], shared[agent : agent + 1], case)
        np.testing.assert_array_equal(alone.rows[0], together.rows[agent])
        for number in range(GEARS + 1):
            np.testing.assert_array_equal(live(alone, 0, number), live(together, agent, number))


def test_nothing_is_promoted_silently() -> None:
    case = CASES[0]
    rows, shared = population(7, case.chunk, case.periods)

    def everything(ring: Replay, rows: jax.Array, uniform: jax.Array) -> tuple[replay.UnpaidPicks, Transitions]:
        ring = replay.insert(ring, rows, shared, case.settings)
        index = jax.tree.map(lambda x: x[:1], ring.samples)
        number = replay.sample_rows(index, 0, uniform)
        steps = replay.steps_of_picks(ring.rows[0], number, case.settings)
        picks = replay.picks(ring.rows[0], number, steps, jnp.float32(0.9), case.settings)
        return picks, replay.transitions(ring.rows[0], number, jnp.float32(0.9), COLUMNS)

    ring = replay.init(2, case.capacity, case.settings)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        picks, steps = jax.eval_shape(everything, ring, jnp.asarray(rows), jnp.zeros(3, jnp.float32))
    assert {leaf.dtype for leaf in jax.tree.leaves(steps)} == {jnp.dtype("float32")}
    assert picks.steps.dtype == picks.transitions.choice.dtype == jnp.dtype("int32")


@pytest.mark.parametrize("track_episodes", [False, True])
def test_inserting_copies_no_ring(track_episodes: bool) -> None:
    settings = replay.ReplaySettings(COLUMNS, 2, 5, 1000, track_episodes)
    ring = replay.init(2, 64 * 1000, settings)
    chunk = jnp.zeros((2, 64, COLUMNS.width), jnp.float32)
    insert = jax.jit(lambda r, c, s: replay.insert(r, c, s, settings), donate_argnums=0)
    memory = insert.lower(ring, chunk, jnp.ones(2, bool)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < ring.rows.nbytes / 20
    assert memory.alias_size_in_bytes >= ring.rows.nbytes + ring.samples.rows.nbytes
