"""Probes with known answers for the master: gears against their price, all along a dial, and how long to hold them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import dqn, method, replay
from lowgear.learning.dqn import DqnState, Priced
from lowgear.learning.method import Draw, Knobs, Method
from lowgear.learning.networks import Mlp, mlp
from lowgear.policy import dial
from tests.learning.test_method import COLUMNS, METHOD, PERIOD, knobs, steps

EARN, COST = np.array([0.1, 1.0]), np.array([1.0, 10.0])  # of a step in each gear: they tie at a coefficient of 0.1
MASTER = (len(METHOD.gears),)


def train(rows: np.ndarray, settings: Knobs, method: Method, updates: int) -> Mlp | Priced:
    """The masters of a population that saw `rows` (P, steps, width), one network for each."""
    insert = jax.jit(partial(replay.insert, settings=method.replay))
    ring = insert(replay.init(*rows.shape[:2], method.replay), rows, settings.shared)
    inputs, choices = method.obs_dim + method.dial, len(method.gears) * method.durations

    @jax.jit
    @jax.vmap
    def init(seed: jax.Array) -> DqnState:
        return dqn.init(jax.random.key(seed), inputs, choices, method.master_units, method.priced)

    learn = jax.jit(partial(method.learn, which=MASTER, updates=updates, method=method))
    learned, metrics = learn((init(settings.seed),), ring, settings, jnp.int32(0))
    assert np.isfinite(metrics["master_loss"]).all()
    return learned[0].params


def values(masters: Mlp | Priced, inputs) -> np.ndarray:
    """Each agent's values for the same inputs, (P, rows, choices), before anything is charged."""
    inputs = jnp.asarray(inputs, jnp.float32)

    def one(params: Mlp | Priced) -> jax.Array:
        if not isinstance(params, Priced):
            return mlp(params, inputs, "tanh")
        return mlp(params.earnings, inputs[:, :-1], "tanh") + mlp(params.level, inputs, "tanh")

    return np.asarray(jax.vmap(one)(masters))


def blind(rows: np.ndarray) -> np.ndarray:
    """With one state to be in."""
    rows = rows.copy()
    rows[..., COLUMNS.observation] = rows[..., COLUMNS.next_observation] = 0
    return rows


def answer(coefficient: float) -> np.ndarray:
    """Values of the two gears, the discount of 0.5 once a pick: q = Σ(reward - λ·cost) + 0.5 · max q."""
    gain = PERIOD * (EARN - coefficient * COST)
    return gain + gain.max()


def test_earnings_are_weighed_against_cost() -> None:
    settings = knobs([3, 3, 3], coefficients=jnp.array([0.0, 0.05, 0.3]), master_discount=0.5)
    rows = blind(np.stack([steps(np.random.default_rng(3), 24, earn=EARN)] * 3))
    found = values(train(rows, settings, METHOD, 800), np.zeros((1, 2)))[:, 0]
    assert found.argmax(axis=-1).tolist() == [1, 1, 0]
    for coefficient, value in zip((0.0, 0.05, 0.3), found, strict=True):
        np.testing.assert_allclose(value, answer(coefficient), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
def test_one_agent_learns_the_right_choice_all_along_its_dial_and_one_without_a_range_its_own(known: bool) -> None:
    # The first agent's dial goes from 0.01 to 1 and ties in its middle; the other two know one coefficient each.
    settings = knobs([3, 4, 5], coefficients=jnp.array([0.01, 0.05, 0.3]), ratio=jnp.array([100.0, 1, 1]))
    settings = settings._replace(master_discount=jnp.full(3, 0.5))
    rows = blind(np.stack([steps(np.random.default_rng(3), 24, earn=EARN)] * 3))
    method = METHOD._replace(dial=True, priced=known, master_units=16, master_batch=64)
    positions = np.array([-1, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1])
    inputs = np.stack([0 * positions, 0 * positions, positions], axis=1)
    tariff = np.array([0.0, PERIOD * (COST[1] - COST[0])], np.float32) if known else np.zeros(2, np.float32)
    if known:
        settings = settings._replace(tariff=jnp.tile(tariff, (3, 1)))
    masters = train(rows, settings, method, 4000)
    assert isinstance(masters, Priced) == known
    coefficients = np.array([dial.price(position, 0.01, 100) for position in positions])
    first = values(masters, inputs)[0] - np.outer(coefficients, tariff)
    assert first.argmax(axis=-1).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    for position, value in zip(positions, first, strict=True):
        np.testing.assert_allclose(value, answer(dial.price(position, 0.01, 100)), rtol=0.1, atol=0.3)
    single = values(masters, np.zeros((1, 3)))[1:, 0] - np.outer([0.05, 0.3], tariff)
    assert single.argmax(axis=-1).tolist() == [1, 0]
    for coefficient, value in zip((0.05, 0.3), single, strict=True):
        np.testing.assert_allclose(value, answer(coefficient), rtol=0.1, atol=0.1)


def held(rng: np.random.Generator, count: int, durations: tuple[int, ...], later: float) -> np.ndarray:
    """Rows of random choices in one state: the first step of a pick earns 1, those after it `later`."""
    rows = np.zeros((count, COLUMNS.width), np.float32)
    rows[:, COLUMNS.alive] = 1
    t = 0
    while t < count:
        number, gear = int(rng.integers(len(durations))), int(rng.integers(2))
        stop = min(t + durations[number], count)
        rows[t:stop, COLUMNS.choice] = gear + 2 * number
        rows[t:stop, COLUMNS.age] = np.arange(1, stop - t + 1)
        rows[t:stop, COLUMNS.reward] = [1.0] + [later] * (stop - t - 1)
        rows[stop - 1, COLUMNS.closed] = stop == t + durations[number]
        t = stop
    return rows


def test_a_long_duration_where_picks_are_dear_and_a_short_one_where_holding_on_loses() -> None:
    # A pick costs as much as four steps of the small gear. Holding on loses a little, or for the last agent much.
    durations, pick_cost, discount, later = (1, 4), 4.0, 0.9, (0.8, 0.8, -1.0)
    method = METHOD._replace(
        pick_cost=pick_cost,
        durations=2,
        discount_by_step=True,
        master_units=8,
        master_batch=32,
        replay=METHOD.replay._replace(longest_pick=4),
    )
    coefficients = (0.0, 0.2, 0.2)
    rows = np.stack([held(np.random.default_rng(5), 64, durations, each) for each in later])
    settings = knobs([1, 2, 3], coefficients=jnp.array(coefficients), master_discount=discount)
    found = values(train(rows, settings, method, 4000), np.zeros((1, 2)))[:, 0]
    best = found.argmax(axis=-1)
    assert best[0] // 2 == 0  # free: a fresh pick at every step, in either gear
    assert best[1:].tolist() == [2, 0]  # the small gear, held long, and at every step anew
    for coefficient, after, value in zip(coefficients, later, found, strict=True):
        weight = np.array([1, sum(discount**k for k in range(4))])
        earned = 1 + after * (weight - 1)
        paid = earned[:, None] - coefficient * (COST * weight[:, None] + pick_cost)  # (duration, gear)
        onward = (discount ** np.array(durations))[:, None]
        best_value = (paid / (1 - onward)).max()  # the best choice again and again
        np.testing.assert_allclose(value, (paid + onward * best_value).ravel(), atol=0.15)


def test_the_papers_scheme_is_what_is_left_without_dial_durations_and_price_of_picks() -> None:
    # A real end cuts the second pick short. Σ reward - λ·c·steps, and the discount once a pick.
    rows = np.zeros((5, COLUMNS.width), np.float32)
    rows[:, COLUMNS.reward] = 1, 2, 3, 4, 5
    rows[:, COLUMNS.age] = 1, 2, 3, 1, 2
    rows[:, COLUMNS.choice] = 0, 0, 0, 1, 1
    rows[:, COLUMNS.alive] = 1, 1, 1, 1, 0
    rows[:, COLUMNS.observation] = np.arange(10).reshape(5, 2)
    settings = jax.tree.map(lambda x: x[0], knobs([1], coefficients=0.1, master_discount=0.9))
    # The positions that chance offers are not looked at.
    draw = Draw(rows=jnp.array([2, 4]), chance=jnp.array([-1.0, 1.0]), told=None)
    paid = method._picks(jnp.asarray(rows), settings, None, draw, METHOD)
    np.testing.assert_allclose(paid.reward, [6 - 0.1 * 1 * 3, 9 - 0.1 * 10 * 2], rtol=1e-6)
    np.testing.assert_allclose(paid.discount, [0.9, 0], rtol=1e-6)
    np.testing.assert_array_equal(paid.observation, [[0, 1], [6, 7]])
    np.testing.assert_array_equal(paid.choice, [0, 1])


@pytest.mark.parametrize("ratio", [100.0, 1.0])
def test_each_pick_of_a_dial_agent_is_paid_at_the_position_it_is_shown(ratio: float) -> None:
    rows = np.zeros((3, COLUMNS.width), np.float32)
    rows[:, COLUMNS.reward] = 4
    rows[:, COLUMNS.age] = 1, 2, 3
    rows[:, COLUMNS.alive] = 1
    settings = jax.tree.map(lambda x: x[0], knobs([1], coefficients=0.01, ratio=ratio, master_discount=0.5))
    method = METHOD._replace(dial=True, discount_by_step=True, pick_cost=2.0)
    drawn = np.array([-1.0, 0, 1])
    draw = Draw(rows=jnp.array([2, 2, 2]), chance=jnp.asarray(drawn), told=None)
    paid = method._picks(jnp.asarray(rows), settings, None, draw, method)
    seen, price = (drawn, [0.01, 0.1, 1.0]) if ratio > 1 else (0 * drawn, [0.01] * 3)
    np.testing.assert_array_equal(paid.observation[:, -1], seen)
    np.testing.assert_array_equal(paid.next_observation[:, -1], seen)
    np.testing.assert_allclose(paid.reward, 4 * 1.75 - np.array(price) * (1 * 1.75 + 2), rtol=1e-5)
    np.testing.assert_allclose(paid.discount, 0.5**3)
    assert paid.charge is None
    tariff = jnp.array([0.0, 30.0], jnp.float32)
    charged = method._picks(jnp.asarray(rows), settings._replace(tariff=tariff), None, draw, method)
    np.testing.assert_allclose(charged.charge, np.outer(price, [0, 30]), rtol=1e-5)
    np.testing.assert_array_equal(charged.reward, paid.reward)  # it is a baseline, and pays nothing
