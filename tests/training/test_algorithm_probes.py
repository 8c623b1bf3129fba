"""Probes with known answers for the master: gears against their price, all along a dial, and how long to hold them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning.dqn import Dueling
from lowgear.learning.learners import AgentParameters
from lowgear.learning.method import Method
from lowgear.learning.networks import Mlp, mlp
from lowgear.policy import dial
from lowgear.training import algorithm
from tests.fixtures.methods import COLUMNS, METHOD, PERIOD, REPLAY, buffer_of, cost, method, parameters, steps

EARN, COST = np.array([0.1, 1.0]), np.array([1.0, 10.0])  # of a step in each gear: they tie at a coefficient of 0.1


def train(rows: np.ndarray, agents: AgentParameters, method: Method, updates: int) -> Mlp | Dueling:
    """The masters of a population that saw `rows` (P, steps, width), one network for each."""
    buffer = buffer_of(rows, agents.shared, method.replay, rows.shape[1], rows.shape[1])
    init = jax.jit(jax.vmap(lambda seed: method.master.init(jax.random.key(seed))))
    update = jax.jit(partial(algorithm.update, which=(len(method.gear_learners),), updates=updates, method=method))
    (learned,), metrics = update((init(agents.seed),), buffer, agents, None, jnp.int32(0))
    assert np.isfinite(metrics["master_loss"]).all()
    return learned.params


def values(masters: Mlp | Dueling, inputs) -> np.ndarray:
    """Each agent's values for the same inputs, (P, rows, choices), before any known cost is taken off."""
    inputs = jnp.asarray(inputs, jnp.float32)

    def one(params: Mlp | Dueling) -> jax.Array:
        if not isinstance(params, Dueling):
            return mlp(params, inputs, "tanh")
        return mlp(params.advantage, inputs[:, :-1], "tanh") + mlp(params.value, inputs, "tanh")

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
    agents = parameters([3, 3, 3], coefficients=jnp.array([0.0, 0.05, 0.3]), master_discount=0.5)
    rows = blind(np.stack([steps(np.random.default_rng(3), 24, earn=EARN)] * 3))
    found = values(train(rows, agents, METHOD, 800), np.zeros((1, 2)))[:, 0]
    assert found.argmax(axis=-1).tolist() == [1, 1, 0]
    for coefficient, value in zip((0.0, 0.05, 0.3), found, strict=True):
        np.testing.assert_allclose(value, answer(coefficient), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
def test_one_agent_learns_the_right_choice_all_along_its_dial_and_one_without_a_range_its_own(known: bool) -> None:
    # The first agent's dial goes from 0.01 to 1 and ties in its middle; the other two know one coefficient each.
    agents = parameters([3, 4, 5], coefficients=jnp.array([0.01, 0.05, 0.3]), high=jnp.array([1.0, 0.05, 0.3]))
    agents = agents._replace(master_discount=jnp.full(3, 0.5))
    rows = blind(np.stack([steps(np.random.default_rng(3), 24, earn=EARN)] * 3))
    dialled = method(dial=True, known_costs=known, master_units=16, master_batch=64)
    positions = np.array([-1, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1])
    inputs = np.stack([0 * positions, 0 * positions, positions], axis=1)
    tariff = np.array([0.0, PERIOD * (COST[1] - COST[0])], np.float32) if known else np.zeros(2, np.float32)
    if known:
        agents = agents._replace(choice_cost=jnp.tile(tariff, (3, 1)))
    masters = train(rows, agents, dialled, 4000)
    assert isinstance(masters, Dueling) == known
    coefficients = np.array([dial.price(position, 0.01, 1.0) for position in positions])
    first = values(masters, inputs)[0] - np.outer(coefficients, tariff)
    assert first.argmax(axis=-1).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    for position, value in zip(positions, first, strict=True):
        np.testing.assert_allclose(value, answer(dial.price(position, 0.01, 1.0)), rtol=0.1, atol=0.3)
    single = values(masters, np.zeros((1, 3)))[1:, 0] - np.outer([0.05, 0.3], tariff)
    assert single.argmax(axis=-1).tolist() == [1, 0]
    for coefficient, value in zip((0.05, 0.3), single, strict=True):
        np.testing.assert_allclose(value, answer(coefficient), rtol=0.1, atol=0.1)


def held(rng: np.random.Generator, count: int, periods: tuple[int, ...], later: float) -> np.ndarray:
    """Rows of random choices in one state: the first step of a pick earns 1, those after it `later`."""
    rows = np.zeros((count, COLUMNS.width), np.float32)
    rows[:, COLUMNS.alive] = 1
    t = 0
    while t < count:
        number, gear = int(rng.integers(len(periods))), int(rng.integers(2))
        stop = min(t + periods[number], count)
        rows[t:stop, COLUMNS.choice] = gear + 2 * number
        rows[t:stop, COLUMNS.age] = np.arange(1, stop - t + 1)
        rows[t:stop, COLUMNS.reward] = [1.0] + [later] * (stop - t - 1)
        rows[stop - 1, COLUMNS.closed] = stop == t + periods[number]
        t = stop
    return rows


def test_a_long_period_where_picks_are_dear_and_a_short_one_where_holding_on_loses() -> None:
    # A pick costs as much as four steps of the small gear. Holding on loses a little, or for the last agent much.
    periods, pick_cost, discount, later = (1, 4), 4.0, 0.9, (0.8, 0.8, -1.0)
    lasting = method(
        periods=2,
        master_units=8,
        master_batch=32,
        cost=cost(pick=pick_cost),
        discount_by_step=True,
        replay=REPLAY._replace(longest_pick=4),
    )
    coefficients = (0.0, 0.2, 0.2)
    rows = np.stack([held(np.random.default_rng(5), 64, periods, each) for each in later])
    agents = parameters([1, 2, 3], coefficients=jnp.array(coefficients), master_discount=discount)
    found = values(train(rows, agents, lasting, 4000), np.zeros((1, 2)))[:, 0]
    best = found.argmax(axis=-1)
    assert best[0] // 2 == 0  # free: a fresh pick at every step, in either gear
    assert best[1:].tolist() == [2, 0]  # the small gear, held long, and at every step anew
    for coefficient, after, value in zip(coefficients, later, found, strict=True):
        weight = np.array([1, sum(discount**k for k in range(4))])
        earned = 1 + after * (weight - 1)
        paid = earned[:, None] - coefficient * (COST * weight[:, None] + pick_cost)  # (period, gear)
        onward = (discount ** np.array(periods))[:, None]
        best_value = (paid / (1 - onward)).max()  # the best choice again and again
        np.testing.assert_allclose(value, (paid + onward * best_value).ravel(), atol=0.15)
