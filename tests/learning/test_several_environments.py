"""Several environments for each agent: rings side by side, sampled from as one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import replay
from lowgear.learning.replay import Columns, ReplaySettings

COLUMNS = Columns(2, 1)
ENVIRONMENTS, CAPACITY, CHUNK, PERIOD = 3, 12, 4, 3
SETTINGS = ReplaySettings(COLUMNS, 2, PERIOD, 1_000, environments=ENVIRONMENTS)


def history(agent, environment, steps):
    """Picks that hold three steps, alternating gears; observations tell agent, environment and time."""
    rows = np.zeros((steps, COLUMNS.width), np.float32)
    for t, row in enumerate(rows):
        row[COLUMNS.observation] = 10 * agent + environment, t
        row[COLUMNS.next_observation] = 10 * agent + environment, t + 1
        row[COLUMNS.reward] = 100 * environment + t
        row[COLUMNS.alive] = 1
        row[COLUMNS.choice] = t // PERIOD % 2
        row[COLUMNS.age] = t % PERIOD + 1
        row[COLUMNS.closed] = t % PERIOD == PERIOD - 1
    return rows


@pytest.fixture(scope="module")
def rings():
    """Two agents of three environments, 20 steps each: the rings have wrapped; as one ring for each agent."""
    steps = 20
    rows = np.stack([history(agent, environment, steps) for agent in range(2) for environment in range(ENVIRONMENTS)])
    ring = replay.init(len(rows), CAPACITY, SETTINGS)
    insert = jax.jit(partial(replay.insert, settings=SETTINGS))
    shared = jnp.repeat(jnp.array([True, False]), ENVIRONMENTS)
    for begin in range(0, steps, CHUNK):
        ring = insert(ring, rows[:, begin : begin + CHUNK], shared)
    return replay.by_agent(ring, ENVIRONMENTS)


def everything(ring, agent, number):
    """Each row of an agent's list once."""
    index = jax.tree.map(lambda x: x[agent], ring.samples)
    count = int((index.stop - index.start)[:, number].sum())
    uniform = jnp.asarray((np.arange(count) + 0.5) / count, jnp.float32)
    return np.asarray(jax.jit(replay.sample_rows, static_argnums=1)(index, number, uniform))


@pytest.mark.parametrize("agent", [0, 1])
def test_samples_reach_every_row_of_every_environment_once(rings, agent):
    found = rings.rows[agent][everything(rings, agent, 0)]
    seen = sorted(map(tuple, np.asarray(found[:, COLUMNS.observation]).tolist()))
    # The last 12 of 20 steps are live; the second agent's gears learn from their own steps alone.
    times = [t for t in range(8, 20) if agent == 0 or t // PERIOD % 2 == 0]
    assert seen == [(10 * agent + environment, t) for environment in range(ENVIRONMENTS) for t in times]


@pytest.mark.parametrize("agent", [0, 1])
def test_picks_stay_within_their_environment(rings, agent):
    rows = rings.rows[agent]
    last = jnp.asarray(everything(rings, agent, 2))
    steps = replay.steps_of_picks(rows, last, SETTINGS)
    picks = replay.picks(rows, last, steps, jnp.float32(1), SETTINGS)
    found = sorted(
        zip(np.asarray(picks.transitions.observation[:, 1]), np.asarray(picks.transitions.reward), strict=True)
    )
    # Picks begin at 9, 12 and 15; the one that began at 18 is still open.
    wanted = [(t, 3 * (100 * environment + t) + 3) for environment in range(ENVIRONMENTS) for t in (9, 12, 15)]
    assert found == sorted(wanted)
    np.testing.assert_array_equal(picks.transitions.observation[:, 0], picks.transitions.next_observation[:, 0])
    np.testing.assert_array_equal(picks.steps, 3)


def test_the_next_row_turns_round_in_its_ring(rings):
    rows = rings.rows[0]
    row = jnp.array([0, CAPACITY - 1, CAPACITY, 3 * CAPACITY - 1])
    np.testing.assert_array_equal(replay.rows_after(row, jnp.int32(1), rows, SETTINGS), [1, 0, 13, 24])
    np.testing.assert_array_equal(replay.rows_after(row, jnp.int32(-1), rows, SETTINGS), [11, 10, 23, 34])
