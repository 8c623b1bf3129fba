"""Several environments for each agent: rings side by side, drawn from as one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.run import resolve
from lowgear.config.tasks import Task
from lowgear.learning import replay
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.training.blueprint import behaviour_of
from lowgear.training.collect import Collector
from lowgear.training.loop import Training
from tests.fixtures.probes import Counting
from tests.training.test_collect import weights

COLUMNS = Columns(2, 1)
LANES, CAPACITY, CHUNK, PERIOD = 3, 12, 4, 3
SETTINGS = ReplaySettings(COLUMNS, 2, PERIOD, 1_000, lanes=LANES)
TASK = Task(name="counting", source="gym", env_id="counting")


def history(agent, lane, steps):
    """Picks that hold three steps, alternating gears; observations tell agent and lane and time."""
    rows = np.zeros((steps, COLUMNS.width), np.float32)
    for t, row in enumerate(rows):
        row[COLUMNS.observation] = 10 * agent + lane, t
        row[COLUMNS.next_observation] = 10 * agent + lane, t + 1
        row[COLUMNS.reward] = 100 * lane + t
        row[COLUMNS.alive] = 1
        row[COLUMNS.choice] = t // PERIOD % 2
        row[COLUMNS.age] = t % PERIOD + 1
        row[COLUMNS.closed] = t % PERIOD == PERIOD - 1
    return rows


@pytest.fixture(scope="module")
def rings():
    """Two agents of three lanes, 20 steps each: the rings have wrapped; as one ring for each agent."""
    steps = 20
    rows = np.stack([history(agent, lane, steps) for agent in range(2) for lane in range(LANES)])
    ring = replay.init(len(rows), CAPACITY, SETTINGS)
    insert = jax.jit(partial(replay.insert, settings=SETTINGS))
    shared = jnp.repeat(jnp.array([True, False]), LANES)
    for begin in range(0, steps, CHUNK):
        ring = insert(ring, rows[:, begin : begin + CHUNK], shared)
    return replay.by_agent(ring, LANES)


def everything(ring, agent, number):
    """Each entry of an agent's lists once."""
    lists = jax.tree.map(lambda x: x[agent], ring.lists)
    count = int((lists.stop - lists.start)[:, number].sum())
    chance = jnp.asarray((np.arange(count) + 0.5) / count, jnp.float32)
    return np.asarray(jax.jit(replay.draw, static_argnames="number")(lists, number=number, chance=chance))


@pytest.mark.parametrize("agent", [0, 1])
def test_draws_reach_every_row_of_every_lane_once(rings, agent):
    found = rings.rows[agent][everything(rings, agent, 0)]
    seen = sorted(map(tuple, np.asarray(found[:, COLUMNS.observation]).tolist()))
    # The last 12 of 20 steps are live; the second agent's gears learn from their own steps alone.
    times = [t for t in range(8, 20) if agent == 0 or t // PERIOD % 2 == 0]
    assert seen == [(10 * agent + lane, t) for lane in range(LANES) for t in times]


@pytest.mark.parametrize("agent", [0, 1])
def test_picks_stay_within_their_lane(rings, agent):
    rows = rings.rows[agent]
    last = jnp.asarray(everything(rings, agent, 2))
    steps = replay.steps_of_picks(rows, last, SETTINGS)
    picks = replay.picks(rows, last, steps, jnp.float32(1), SETTINGS)
    found = sorted(zip(np.asarray(picks.picks.observation[:, 1]), np.asarray(picks.picks.reward), strict=True))
    # Picks begin at 9, 12 and 15; the one that began at 18 is still open.
    wanted = [(t, 3 * (100 * lane + t) + 3) for lane in range(LANES) for t in (9, 12, 15)]
    assert found == sorted(wanted)
    np.testing.assert_array_equal(picks.picks.observation[:, 0], picks.picks.next_observation[:, 0])
    np.testing.assert_array_equal(picks.duration, 3)


def test_along_turns_round_in_its_lane(rings):
    rows = rings.rows[0]
    row = jnp.array([0, CAPACITY - 1, CAPACITY, 3 * CAPACITY - 1])
    np.testing.assert_array_equal(replay.along(row, jnp.int32(1), rows, SETTINGS), [1, 0, 13, 24])
    np.testing.assert_array_equal(replay.along(row, jnp.int32(-1), rows, SETTINGS), [11, 10, 23, 34])


def collector(seeds, environments, lengths):
    config = resolve(
        TASK,
        seeds=seeds,
        steps=640,
        gears=(4, 8),
        cost_coefficients=(0.01, 0.1),
        overrides={"environments": environments},
    )
    return Collector(Counting(lengths), behaviour_of(config)._replace(gears=2, periods=(5,)))


def test_rows_come_lane_by_lane():
    found = collector([0, 1], 2, [7, 12, 9, 30])
    policies = weights(2, np.random.default_rng(0))
    found._pick = lambda *_: found._shifter.pick(np.zeros((2, 2), np.int32))
    rows, episodes = found.collect(policies, 32)
    assert rows.shape == (2, 32, found.columns.width)
    assert found.steps == 32
    lanes = rows.reshape(4, 16, -1)
    for lane, length in enumerate([7, 12, 9, 30]):
        np.testing.assert_array_equal(lanes[lane][:, found.columns.observation.start], lane)
        assert lanes[lane][:, found.columns.reward].tolist() == [t % length + 1 for t in range(16)]
        assert lanes[lane][:, found.columns.ended].tolist() == [float(t % length == length - 1) for t in range(16)]
    assert sorted((e.agent, e.length) for e in episodes) == [(0, 7), (0, 7), (0, 12), (1, 9)]


def test_environments_of_an_agent_differ_and_company_changes_nothing():
    alone, company = collector([5], 2, [50, 50]), collector([4, 5], 2, [50] * 4)
    assert len(set(company.env.seeds)) == 4
    assert company.env.seeds[2:] == alone.env.seeds
    np.testing.assert_array_equal(company._position[1], alone._position[0])
    one, two = alone._draw(8), company._draw(8)
    for mine, its in zip(one, two, strict=True):
        np.testing.assert_array_equal(its[1], mine[0])


def test_chunks_must_divide():
    with pytest.raises(LowgearError, match=r"3 environments.*64"):
        resolve(TASK, gears=(4, 8), cost_coefficients=(0.1,), overrides={"environments": 3})


def test_a_run_with_several_environments_learns_from_all_of_them():
    config = resolve(
        TASK,
        steps=256,
        seeds=(0, 1),
        gears=(2, 3),
        cost_coefficients=(0.01, 0.1),
        evaluate_every=0,
        overrides={"environments": 4, "random_steps": 64, "critic_units": 4, "batch": 8, "master_batch": 8},
    )
    training = Training(config, Counting([9] * config.environments), None)
    training.run()
    ring = training.learner._rings[0]
    assert ring.rows.shape[0] * len(training.learner._rings) == 8
    assert int(ring.written) == 64  # of 256 steps, in each of four environments
    assert all(np.isfinite(value).all() for value in training._metrics.values())
    training.close()
