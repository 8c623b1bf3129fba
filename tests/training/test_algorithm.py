"""Algorithm 1: what the master is paid and sees, and that agents and learners never read each other."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import normalisation, replay
from lowgear.learning.learners import AgentParameters
from lowgear.learning.method import sample_gear_batch
from lowgear.learning.replay import Replay, UnpaidPicks
from lowgear.learning.transitions import MasterTransitions
from lowgear.training import algorithm
from lowgear.training.algorithm import Learners
from tests.fixtures.compilations import compilations
from tests.fixtures.methods import (
    CAPACITY,
    COLUMNS,
    METHOD,
    agent,
    assert_close,
    buffer_of,
    cost,
    equal,
    method,
    one_agent,
    only,
    parameters,
    steps,
)

UPDATES = 200
ALL = (0, 1, 2)
init = jax.jit(partial(algorithm.init, method=METHOD))
compiled = jax.jit(partial(algorithm.update, method=METHOD), static_argnames=("which", "updates"))


def update(learners: Learners, buffer: Replay, agents: AgentParameters, time: int = 0, which=ALL, updates=UPDATES):
    return compiled(learners, buffer, agents, None, jnp.int32(time), which=which, updates=updates)


def written(rows: np.ndarray, shared: jax.Array) -> Replay:
    return buffer_of(rows, shared, METHOD.replay, CAPACITY, CAPACITY)


@pytest.fixture(scope="module")
def population() -> tuple[Learners, Replay, AgentParameters]:
    """Three agents: the second is the first again, the third has another seed; all saw the same."""
    agents = parameters([4, 4, 5])
    rows = np.broadcast_to(steps(np.random.default_rng(0), CAPACITY), (3, CAPACITY, COLUMNS.width))
    return init(agents.seed), written(rows, agents.shared), agents


@pytest.fixture(scope="module")
def together(population) -> tuple[Learners, dict[str, jax.Array]]:
    return update(*population)


def unpaid(choice, reward, discount, discounted_steps, held) -> UnpaidPicks:
    zero = jnp.zeros((len(choice), 2))
    picks = MasterTransitions(zero, jnp.array(choice, jnp.int32), jnp.array(reward), jnp.array(discount), zero)
    return UnpaidPicks(picks, jnp.array(discounted_steps), jnp.array(held, jnp.int32))


@pytest.mark.parametrize("by_step", [False, True])
def test_pay_by_hand(by_step: bool) -> None:
    picks = unpaid([0, 1, 1], [5.0, 5.0, -1.0], [1.0, 1.0, 0.0], [3.0, 2.0, 1.0], [3, 2, 1])
    paid = algorithm.pay(picks, one_agent(), jnp.zeros(3), METHOD._replace(discount_by_step=by_step))
    np.testing.assert_allclose(paid.reward, [5 - 0.1 * 1 * 3, 5 - 0.1 * 10 * 2, -1 - 0.1 * 10 * 1], rtol=1e-6)
    np.testing.assert_allclose(paid.discount, [0.9**3, 0.9**2, 0] if by_step else [0.9, 0.9, 0], rtol=1e-6)
    np.testing.assert_array_equal(paid.choice, picks.transitions.choice)


def test_pay_of_no_cost_is_the_reward() -> None:
    picks = unpaid([1], [2.5], [1.0], [3.0], [3])
    paid = algorithm.pay(picks, one_agent(coefficients=0.0), jnp.zeros(1), METHOD._replace(cost=cost(pick=7)))
    np.testing.assert_array_equal(paid.reward, [2.5])


def test_pay_charges_the_pick_once_and_each_step_as_it_is_weighed() -> None:
    # Two gears for three periods: choices 0, 3 and 5 are gears 0, 1 and 1, the second was cut short by an end.
    picks = unpaid([0, 3, 5], [5.0, 5.0, 5.0], [1.0, 0.0, 1.0], [1.0, 1.5, 1.75], [1, 2, 3])
    dialled = method(periods=3, dial=True, discount_by_step=True, cost=cost(pick=2.5))
    agent = one_agent(coefficients=0.1, high=0.2, master_discount=0.5)
    with jax.numpy_rank_promotion("raise"):
        paid = algorithm.pay(picks, agent, jnp.array([0.0, 0.0, 1.0]), dialled)  # each pick at a price of its own
    charged = np.array([1 * 1 + 2.5, 10 * 1.5 + 2.5, 10 * 1.75 + 2.5])
    np.testing.assert_allclose(paid.reward, 5 - np.array([0.1, 0.1, 0.2]) * charged, rtol=1e-5)
    np.testing.assert_allclose(paid.discount, [0.5, 0, 0.125], rtol=1e-6)
    np.testing.assert_array_equal(paid.choice, [0, 3, 5])  # the master learns the choice, not the gear alone


def test_the_dials_position_comes_last_before_and_after_the_pick() -> None:
    picks = unpaid([0, 1], [1.0, 2.0], [1.0, 0.0], [1.0, 1.0], [1, 1]).transitions._replace(
        observation=jnp.array([[1.0, 2], [3, 4]]), next_observation=jnp.array([[5.0, 6], [7, 8]])
    )
    found = algorithm.append_dial_position(picks, jnp.array([-1.0, 0.5]))
    np.testing.assert_array_equal(found.observation, [[1, 2, -1], [3, 4, 0.5]])
    np.testing.assert_array_equal(found.next_observation, [[5, 6, -1], [7, 8, 0.5]])
    for name in ("choice", "reward", "discount"):
        np.testing.assert_array_equal(getattr(found, name), getattr(picks, name))


def picks_of(rows: np.ndarray, last: list[int], discount: float = 1.0) -> UnpaidPicks:
    ended = jnp.array(last)
    lived = replay.steps_of_picks(jnp.asarray(rows), ended, METHOD.replay)
    return replay.picks(jnp.asarray(rows), ended, lived, jnp.float32(discount), METHOD.replay)


def test_the_papers_scheme_is_what_is_left_without_dial_periods_and_price_of_picks() -> None:
    # A real end cuts the second pick short. Σ reward - λ·c·steps, and the discount once a pick.
    rows = np.zeros((5, COLUMNS.width), np.float32)
    rows[:, COLUMNS.reward] = 1, 2, 3, 4, 5
    rows[:, COLUMNS.age] = 1, 2, 3, 1, 2
    rows[:, COLUMNS.choice] = 0, 0, 0, 1, 1
    rows[:, COLUMNS.alive] = 1, 1, 1, 1, 0
    rows[:, COLUMNS.observation] = np.arange(10).reshape(5, 2)
    # The positions that are offered are not looked at.
    paid = algorithm.pay(picks_of(rows, [2, 4]), one_agent(), jnp.array([0.0, 1.0]), METHOD)
    np.testing.assert_allclose(paid.reward, [6 - 0.1 * 1 * 3, 9 - 0.1 * 10 * 2], rtol=1e-6)
    np.testing.assert_allclose(paid.discount, [0.9, 0], rtol=1e-6)
    np.testing.assert_array_equal(paid.observation, [[0, 1], [6, 7]])
    np.testing.assert_array_equal(paid.choice, [0, 1])


@pytest.mark.parametrize("high", [1.0, 0.01])
def test_each_pick_of_a_dial_agent_is_paid_at_the_position_it_sees(high: float) -> None:
    rows = np.zeros((3, COLUMNS.width), np.float32)
    rows[:, COLUMNS.reward] = 4
    rows[:, COLUMNS.age] = 1, 2, 3
    rows[:, COLUMNS.alive] = 1
    agent = one_agent(coefficients=0.01, high=high, master_discount=0.5)
    dialled = method(dial=True, discount_by_step=True, cost=cost(pick=2))
    position = np.array([-1.0, 0, 1])
    picks, uniform = picks_of(rows, [2, 2, 2], 0.5), jnp.asarray((position + 1) / 2, jnp.float32)
    paid = algorithm.pay(picks, agent, uniform, dialled)
    seen, price = (position, [0.01, 0.1, 1.0]) if high > 0.01 else (0 * position, [0.01] * 3)
    np.testing.assert_array_equal(paid.observation[:, -1], seen)
    np.testing.assert_array_equal(paid.next_observation[:, -1], seen)
    np.testing.assert_allclose(paid.reward, 4 * 1.75 - np.array(price) * (1 * 1.75 + 2), rtol=1e-5)
    np.testing.assert_allclose(paid.discount, 0.5**3)
    assert paid.choice_cost is None
    known = agent._replace(choice_cost=jnp.array([0.0, 30.0], jnp.float32))
    charged = algorithm.pay(picks, known, uniform, dialled)
    assert charged.choice_cost is not None
    np.testing.assert_allclose(charged.choice_cost, np.outer(price, [0, 30]), rtol=1e-5)
    np.testing.assert_array_equal(charged.reward, paid.reward)  # it is a baseline, and pays nothing
    # On another scale of rewards all of it is divided by that.
    scaled = algorithm.pay(picks, known._replace(master_scale=jnp.float32(20)), uniform, dialled)
    np.testing.assert_allclose(20 * scaled.reward, charged.reward, rtol=1e-5)
    np.testing.assert_allclose(20 * scaled.choice_cost, charged.choice_cost, rtol=1e-5)
    np.testing.assert_array_equal(scaled.discount, charged.discount)


def test_below_0_the_dear_gear_earns_a_bonus() -> None:
    picks = unpaid([0, 1], [5.0, 5.0], [1.0, 1.0], [1.0, 1.0], [1, 1])
    agent = one_agent(coefficients=-1.0, high=10.0)
    paid = algorithm.pay(picks, agent, jnp.zeros(2), method(dial=True))
    np.testing.assert_allclose(paid.reward, [5 + 1 * 1, 5 + 1 * 10], rtol=1e-5)


def test_cost_units_by_hand() -> None:
    """(1 - discount) times the scale of returns, over the cost of the dearest gear: a typical step's reward buys it."""
    agents = parameters([1, 2], coefficients=-1.0, high=10.0, relative=True)._replace(
        master_discount=jnp.array([0.9, 0.99], jnp.float32)
    )
    fresh = jax.tree.map(lambda x: jnp.stack([x, x]), normalisation.init(2, 1))
    # A reward of 2 after 3: returns of 3 and 0.9 · 3 + 2, or 0.99 · 3 + 2; deviations of 0.85 and 0.985 stay below a
    # fifth of the largest, 0.94 and 0.994.
    rows = np.zeros((2, 2, COLUMNS.width), np.float32)
    rows[..., COLUMNS.reward] = 3, 2
    rows[..., COLUMNS.alive] = 1
    statistics = algorithm.observe(fresh, jnp.asarray(rows), agents, METHOD)
    units = algorithm.cost_units(statistics, agents, METHOD)
    np.testing.assert_allclose(units, [0.1 * 0.94 / 10, 0.01 * 0.994 / 10], rtol=1e-3)
    np.testing.assert_allclose(algorithm.cost_units(fresh, agents, METHOD), [0.1 / 10, 0.01 / 10], rtol=1e-3)


def test_same_seed_equal_other_seed_different(population, together) -> None:
    fresh, learned = population[0], together[0]
    for learners in (fresh, learned):
        assert equal(agent(learners, slice(0, 1)), agent(learners, slice(1, 2)))
        for learner in learners:
            assert not equal(agent(learner, slice(0, 1)), agent(learner, slice(2, 3)))


def test_another_seed_samples_other_batches(population) -> None:
    # The same initial weights under another seed: only the random numbers differ.
    learners, buffer, agents = population
    other, _ = update(learners, buffer, agents._replace(seed=jnp.array([4, 9, 5], jnp.uint32)))
    for learner in other:
        assert not equal(agent(learner, slice(0, 1)), agent(learner, slice(1, 2)))


def test_updates_are_repeatable_and_the_time_matters(population, together) -> None:
    again, _ = update(*population)
    later, _ = update(*population, time=UPDATES)
    assert equal(again, together[0])
    for learner, other in zip(later, together[0], strict=True):
        assert not equal(learner.params, other.params)


def test_an_agent_learns_the_same_alone_and_in_company(population, together) -> None:
    learners, buffer, agents = population
    part = slice(2, 3)
    alone, metrics = update(agent(learners, part), only(buffer, part), agent(agents, part))
    assert_close(alone, agent(together[0], slice(2, 3)))
    assert_close(metrics, agent(together[1], slice(2, 3)))
    assert not equal(alone, agent(learners, slice(2, 3)))


@pytest.mark.parametrize("which", [(0,), (1, 2)])
def test_a_part_of_the_learners_learns_as_all_do(population, together, which: tuple[int, ...]) -> None:
    learners, buffer, agents = population
    part, metrics = update(tuple(learners[n] for n in which), buffer, agents, which=which)
    assert_close(part, tuple(together[0][n] for n in which))
    assert metrics.keys() < together[1].keys()
    assert_close(metrics, {name: together[1][name] for name in metrics})


def test_updates_at_once_are_updates_in_turn(population) -> None:
    """Nothing is computed ahead: two updates are one, then another by the networks that the first has left."""
    learners, buffer, agents = population

    def updated(learner, **options):
        (state,), metrics = update((learner,), buffer, agents, which=(1,), **options)
        return state, metrics

    at_once, metrics = updated(learners[1], updates=2)
    first, one = updated(learners[1], updates=1)
    in_turn, two = updated(first, time=1, updates=1)
    assert_close(in_turn, at_once)
    assert_close({name: (one[name] + two[name]) / 2 for name in metrics}, metrics)
    # By fresh networks the second update is another: it does depend on what the first has left.
    alone, other = updated(learners[1], time=1, updates=1)
    assert not equal(alone.params, in_turn.params)
    assert not np.allclose(other["gear1_critic_loss"], two["gear1_critic_loss"], rtol=1e-6)


@pytest.mark.parametrize("unrolled", [True, False])
def test_each_gear_keeps_to_its_own_cycle(population, unrolled: bool) -> None:
    """The small gear's actor steps in updates 0 and 2, the other learners always do all they do."""
    learners, buffer, agents = population
    small, large = METHOD.gear_learners
    rare = METHOD._replace(gear_learners=(replace(small, settings=small.settings._replace(actor_every=2)), large))
    cycled = jax.jit(partial(algorithm.update, method=rare, which=ALL, updates=4, unrolled=unrolled))
    new, metrics = cycled(learners, buffer, agents, None, jnp.int32(7))
    plain, same = update(learners, buffer, agents, time=7, updates=4)
    assert_close(new[1:], plain[1:])
    assert metrics.keys() == same.keys()
    np.testing.assert_array_equal(new[0].critic_adam.count, [4] * 3)
    np.testing.assert_array_equal(new[0].policy_adam.count, [2] * 3)

    joined = replay.by_agent(buffer, 1)
    alone = Replay(*jax.tree.map(lambda x: x[2], (joined.rows, joined.samples, joined.episodes)), joined.written)
    state, own = jax.tree.map(lambda x: x[2], (learners[0], agents))
    learned = jax.jit(rare.gear_learners[0].update, static_argnums=4)
    for time in range(4):
        batch = sample_gear_batch(0, alone, own, None, jnp.int32(7 + time), rare)
        state, _ = learned(state, batch.transitions, batch.noise, own, time % 2)
    assert_close(jax.tree.map(lambda x: x[2], new[0]), state)


def test_nothing_is_compiled_for_other_agents_of_the_same_shapes(population) -> None:
    learners, _, agents = population
    update(*population)
    rows = np.stack([steps(np.random.default_rng(seed), CAPACITY) for seed in range(3)])
    other = written(rows, jnp.array([True, False, True]))
    changed = agents._replace(cost_low=agents.cost_low * 2, shared=jnp.array([True, False, True]))
    jax.block_until_ready((other, changed))
    with compilations() as names:
        jax.block_until_ready(update(learners, other, changed, time=7))
    assert not names


def test_metrics_are_one_finite_number_for_each_agent(together) -> None:
    assert {name.split("_")[0] for name in together[1]} == {"gear0", "gear1", "master"}
    for metric in together[1].values():
        assert metric.shape == (3,)
        assert np.isfinite(metric).all()


def test_per_agent_values_reach_the_learners_they_belong_to(population, together) -> None:
    learners, buffer, agents = population
    changed = agents._replace(
        cost_low=jnp.array([0.1, 0.9, 0.1], jnp.float32), discount=jnp.array([0.9, 0.9, 0.1], jnp.float32)
    )
    new, _ = update(learners, buffer, changed)
    same = [
        [equal(agent(a, slice(p, p + 1)), agent(b, slice(p, p + 1))) for p in range(3)]
        for a, b in zip(new, together[0], strict=True)
    ]
    assert same == [[True, True, False], [True, True, False], [True, False, True]]


def test_a_gear_without_rows_stays_exactly_as_it_was() -> None:
    agents = parameters([1, 1, 1], shared=jnp.array([False, True, False]))
    rng = np.random.default_rng(1)
    small, mixed = steps(rng, CAPACITY, gear=0), steps(rng, CAPACITY)
    learners, filled = init(agents.seed), written(np.stack([small, small, mixed]), agents.shared)
    new, _ = update(learners, filled, agents)
    assert equal(agent(new[1], slice(0, 1)), agent(learners[1], slice(0, 1)))
    for learner, where in ((0, 0), (2, 0), (1, 1), (1, 2)):
        moved = not equal(
            agent(new[learner].params, slice(where, where + 1)),
            agent(learners[learner].params, slice(where, where + 1)),
        )
        assert moved, f"learner {learner} of agent {where} did not learn"
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))

    # It stops again once its last rows are overwritten.
    emptied = replay.insert(filled, jnp.asarray(np.stack([small] * 3)), agents.shared, METHOD.replay)
    again, _ = update(new, emptied, agents, time=UPDATES)
    assert equal(agent(again[1], slice(2, 3)), agent(new[1], slice(2, 3)))
    assert not equal(agent(again[0].params, slice(2, 3)), agent(new[0].params, slice(2, 3)))


def test_no_rows_at_all_change_nothing() -> None:
    agents = parameters([1, 2, 3])
    learners = init(agents.seed)
    new, _ = update(learners, replay.init(3, CAPACITY, METHOD.replay), agents)
    assert equal(new, learners)


def test_separate_buffers_learn_from_own_steps_alone() -> None:
    agents = parameters([1, 1, 1], shared=jnp.array([False, False, True]))
    rows = np.stack([steps(np.random.default_rng(2), CAPACITY)] * 3)
    changed = rows.copy()
    changed[1:, rows[0, :, COLUMNS.choice] == 1, COLUMNS.reward] += 3  # only what the large gear earned
    assert 0 < (rows[0, :, COLUMNS.choice] == 1).sum() < CAPACITY
    learners = init(agents.seed)
    new, _ = update(learners, written(changed, agents.shared), agents)
    first, second, third = (agent(new, slice(p, p + 1)) for p in range(3))
    assert equal(first[0], second[0])
    assert not equal(first[1], second[1])
    assert not equal(first[2], second[2])
    assert not equal(second[0], third[0])
