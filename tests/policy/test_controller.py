"""The controller against the JAX networks, how long its picks hold, and a policy's dial."""

import re
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.learning import networks
from lowgear.policy import controller
from lowgear.policy import networks as acting
from lowgear.policy.controller import ActionBounds, Controller
from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.networks import Tariff
from tests.fixtures.weights import (
    ACT,
    ENVS,
    GEARS,
    HEADER,
    KNOWN,
    MASTER,
    OBS,
    PLAIN,
    POPULATION,
    assert_same,
    batch,
    controller_of,
    random_policy,
    random_weights,
)

EVERY = pytest.mark.parametrize("header", [HEADER, KNOWN, PLAIN], ids=["dial", "known prices", "no dial"])


@pytest.fixture(scope="module")
def jax_actions():
    def sample(layers, observation, noise, activation):
        return networks.sample_action(
            tuple(networks.Layer(*layer) for layer in layers), observation, noise, activation
        )[0]

    return jax.jit(jax.vmap(sample, in_axes=(0, 0, 0, None)), static_argnums=3)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("noisy", [False, True])
def test_actions_equal_those_of_jax_and_each_env_gets_its_gear(jax_actions, activation: str, noisy: bool) -> None:
    weights, (observation, noise) = random_weights(), batch()
    gear = np.random.default_rng(2).integers(0, 2, (POPULATION, ENVS)).astype(np.int32)
    assert 0 < gear.sum() < gear.size
    kept = observation.copy()
    stepped = controller_of(weights, ENVS, activation=activation)
    stepped.choice = gear
    found = stepped.act(observation, noise if noisy else None)
    each = np.stack([jax_actions(g, observation, noise if noisy else 0 * noise, activation) for g in weights.gears])
    expected = np.take_along_axis(each, gear[None, ..., None], axis=0)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(each[0] - each[1]).min(axis=-1).max() > 0.01  # the gears disagree
    assert found.dtype == np.float32
    np.testing.assert_array_equal(observation, kept)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("header", [HEADER, PLAIN], ids=["dial", "no dial"])
def test_master_values_equal_those_of_jax(activation: str, header: PolicyHeader) -> None:
    weights, (observation, _) = random_weights(header=header), batch()
    position = np.linspace(-1, 1, POPULATION * ENVS, dtype=np.float32).reshape(POPULATION, ENVS)
    kept = observation.copy()
    turned = None if header.dial is None else position
    found = controller_of(weights, ENVS, activation=activation, position=turned).values(observation)
    seen = observation
    if header.dial is not None:
        seen = np.concatenate([observation, position[..., None]], axis=-1)  # the position comes last
    layers = tuple(networks.Layer(*map(jnp.asarray, layer)) for layer in weights.master)
    expected = jax.vmap(lambda master, x: networks.mlp(master, x, activation))(layers, seen)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert found.shape == (POPULATION, ENVS, len(GEARS) * len(header.periods))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(observation, kept)


def test_positions_are_each_environments_own() -> None:
    weights, (observation, _) = random_weights(), batch()
    position = np.zeros((POPULATION, ENVS), np.float32)
    before = controller_of(weights, ENVS, position=position).values(observation)
    position[1, 2] = 0.7
    changed = (controller_of(weights, ENVS, position=position).values(observation) != before).any(axis=-1)
    assert np.argwhere(changed).tolist() == [[1, 2]]


def test_a_tariff_takes_off_what_each_choice_costs_where_the_dial_stands() -> None:
    weights, (observation, _) = random_weights(header=KNOWN), batch()
    assert weights.tariff is not None
    low, each = np.linspace(0.001, 0.01, POPULATION).astype(np.float32), weights.tariff.each
    weights = weights._replace(tariff=Tariff(low, 100 * low, each))
    position = np.tile(np.linspace(-1, 1, ENVS, dtype=np.float32), (POPULATION, 1))
    earned = acting.mlp(weights.master, observation, "tanh")  # the network sees the observation alone
    found = controller_of(weights, ENVS, position=position).values(observation)
    coefficient = low[:, None] * 100 ** ((position + 1) / 2)
    np.testing.assert_allclose(found, earned - coefficient[..., None] * each[:, None], rtol=1e-4, atol=1e-4)
    assert found.dtype == np.float32
    # Each agent's own, alone and in company.
    alone = [acting.take(weights, agent) for agent in range(POPULATION)]
    for agent, one in enumerate(alone):
        part = slice(agent, agent + 1)
        own = controller_of(one, ENVS, position=position[part]).values(observation[part])
        np.testing.assert_allclose(own, found[part], rtol=1e-5)
    stacked = controller_of(acting.stack(alone), ENVS, position=position)
    np.testing.assert_array_equal(stacked.values(observation), found)


def test_masters_that_know_prices_and_masters_that_learn_them_do_not_mix() -> None:
    one, two = (acting.take(random_weights(header=header), 0) for header in (KNOWN, HEADER))
    with pytest.raises(LowgearError, match="do not mix"):
        acting.stack([one, two])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_where_prices_are_known_a_higher_coefficient_never_picks_a_dearer_choice(seed: int, activation: str) -> None:
    weights = random_weights(seed=seed, header=KNOWN)
    assert weights.tariff is not None
    states = np.random.default_rng(seed).normal(size=(POPULATION, 500, OBS)).astype(np.float32)
    each = np.broadcast_to(weights.tariff.each[:, None], (*states.shape[:2], weights.tariff.each.shape[-1]))
    paid = []
    for position in np.linspace(-1, 1, 65):
        turned = np.full(states.shape[:2], position, np.float32)
        stepped = controller_of(weights, 500, activation=activation, position=turned)
        stepped.pick(states)
        paid.append(np.take_along_axis(each, stepped.choice[..., None], axis=-1)[..., 0])
    change = np.diff(np.stack(paid), axis=0)
    assert (change <= 0).all()
    assert (change < 0).any(axis=0).mean() > 0.1  # the dial does turn, in one state of ten and more


@EVERY
def test_a_policy_has_a_tariff_just_where_its_header_says_so(header: PolicyHeader) -> None:
    other = {HEADER: KNOWN, KNOWN: HEADER, PLAIN: replace(PLAIN, known_prices=True)}[header]
    weights = acting.take(random_weights(header=header), 0)
    assert Policy(header, weights).weights is weights
    with pytest.raises(AssertionError, match="only where prices are known"):
        Policy(other, weights)


def test_log_std_bounds_are_those_of_training() -> None:
    assert (acting.LOG_STD_MIN, acting.LOG_STD_MAX) == (networks.LOG_STD_MIN, networks.LOG_STD_MAX)


@pytest.mark.parametrize("number", range(2))
def test_all_in_one_gear(number: int) -> None:
    weights, (observation, _) = random_weights(), batch()
    stepped = controller_of(weights, ENVS, forced_gear=[number] * POPULATION)
    assert not stepped.pick(observation).any()
    mean = acting.mlp(weights.gears[number], observation, "tanh")[..., :ACT]
    np.testing.assert_array_equal(stepped.act(observation), np.tanh(mean))
    other = controller_of(weights, ENVS, forced_gear=[1 - number] * POPULATION)
    np.testing.assert_array_equal(other.act_with(number, observation), np.tanh(mean))


def test_due_picks_are_greedy_forced_or_as_the_chooser_has_it() -> None:
    weights, (observation, _) = random_weights(header=PLAIN), batch()
    stepped = controller_of(weights, ENVS, periods=(5,), forced_gear=[-1, 1, -1])
    asked = stepped.pick(observation)
    assert asked.all(axis=1).tolist() == [True, False, True]  # a forced gear asks nobody
    best = stepped.values(observation).argmax(axis=-1)
    best[1] = 1
    np.testing.assert_array_equal(stepped.choice, best)

    # Where nothing is due, nobody is asked and the picks hold.
    def never(values: np.ndarray) -> np.ndarray:
        raise AssertionError(values)

    stepped.advance(np.zeros((POPULATION, ENVS), bool))
    assert not stepped.pick(-observation, never).any()
    np.testing.assert_array_equal(stepped.choice, best)
    # A new episode asks for new picks there alone.
    begun = np.zeros((POPULATION, ENVS), bool)
    begun[0, 2] = begun[1, 3] = True
    stepped.begin(begun)
    np.testing.assert_array_equal(stepped.due, begun)
    asked = stepped.pick(observation, lambda values: 1 - values.argmax(axis=-1))
    assert np.argwhere(asked).tolist() == [[0, 2]]
    best[0, 2] = 1 - best[0, 2]
    np.testing.assert_array_equal(stepped.choice, best)


def step(stepped: Controller, ends: list[tuple[int, ...]], choice: list[int]) -> tuple[list, list, list]:
    """One step for each of `ends`, the same choices wherever due; where a pick was due, what was left, which ended."""
    due, left, closed = [], [], []
    for ended in ends:
        due.append(stepped.due[0].astype(int).tolist())
        left.append(stepped.left[0].tolist())
        stepped.pick(np.zeros((1, len(choice), OBS), np.float32), lambda _: np.array([choice], np.int32))
        age = np.where(stepped.due, 0, stepped.age)
        held = stepped.advance(np.array([ended], bool))
        np.testing.assert_array_equal(held.age, age + 1)
        closed.append(held.closed[0].astype(int).tolist())
    return due, left, closed


def holding(environments: int, periods: tuple[int, ...]) -> Controller:
    return controller_of(random_weights(1, header=replace(PLAIN, periods=periods)), environments, periods=periods)


def test_a_pick_holds_for_its_period_or_until_the_end() -> None:
    due, left, closed = step(holding(2, (3,)), [(0, 0), (0, 1), (0, 0), (0, 0), (0, 0)], [0, 1])
    assert due == [[1, 1], [0, 0], [0, 1], [1, 0], [0, 0]]
    assert left == [[0, 0], [2, 2], [1, 0], [0, 2], [2, 1]]
    assert closed == [[0, 0], [0, 1], [1, 0], [0, 0], [0, 1]]


def test_each_pick_holds_for_the_period_it_carries() -> None:
    # Two gears for 1, 3 or 4 steps: choices 1, 2 and 5 are the large gear for 1, the small for 3, the large for 4.
    stepped = holding(3, (1, 3, 4))
    due, _, closed = step(stepped, [(0, 0, 0)] * 6, [1, 2, 5])
    assert np.array(due).T.tolist() == [[1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0]]
    assert np.array(closed).T.tolist() == [[1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]]
    assert stepped.gear.tolist() == [[1, 0, 1]]
    assert stepped.choice.tolist() == [[1, 2, 5]]
    # An episode's end is everybody's, and what is asked for before a pick is due changes nothing.
    _, _, closed = step(stepped, [(1, 1, 1)], [0, 0, 0])
    assert closed == [[1, 1, 1]]
    assert stepped.choice.tolist() == [[0, 0, 5]]  # the third had held two steps of its four
    step(stepped, [(0, 0, 0)], [4, 3, 2])
    assert stepped.gear.tolist() == [[0, 1, 0]]
    assert stepped.left.tolist() == [[3, 2, 2]]


def test_policies_side_by_side_act_as_each_alone() -> None:
    headers = [KNOWN, replace(KNOWN, forced_gear=1), replace(KNOWN, cost_coefficient=0.1)]
    policies = [random_policy(header, seed) for seed, header in enumerate(headers)]
    together, alone = Controller.from_policies(policies, 2), [Controller.from_policies([p], 2) for p in policies]
    assert together.position is not None
    np.testing.assert_allclose(together.position, [[0, 0], [0, 0], [1, 1]], atol=1e-6)
    rng = np.random.default_rng(0)
    for number in range(12):
        observation = rng.normal(size=(3, 2, OBS)).astype(np.float32)
        asked = together.pick(observation)
        assert not asked[1].any()  # a forced gear asks nobody
        assert (together.gear[1] == 1).all()
        action = together.act(observation)
        ended = np.array([[number == 3, False]] * 3)
        for agent, own in enumerate(alone):
            own.pick(observation[agent : agent + 1])
            np.testing.assert_array_equal(own.choice[0], together.choice[agent])
            np.testing.assert_allclose(own.act(observation[agent : agent + 1])[0], action[agent], atol=1e-5)
            own.advance(ended[:1])
        together.advance(ended)


@pytest.mark.parametrize(
    "other",
    [
        {"task": "fish-swim"},
        {"gears": (3, 6)},
        {"master_units": 8},
        {"periods": (2, 5, 10)},
        {"activation": "relu"},
        {"act_dim": 3},
    ],
    ids=lambda other: next(iter(other)),
)
def test_policies_of_different_shapes_do_not_mix(other: dict) -> None:
    ((name, value),) = other.items()
    policies = [random_policy(), random_policy(replace(HEADER, **other))]
    with pytest.raises(LowgearError, match=rf"do not mix: {name} {re.escape(f'{getattr(HEADER, name)} and {value}')}$"):
        Controller.from_policies(policies)


def test_policies_that_see_their_dial_and_policies_without_one_do_not_mix() -> None:
    with pytest.raises(LowgearError, match="do not mix: sees_position True and False"):
        Controller.from_policies([random_policy(), random_policy(replace(HEADER, dial=None))])


def test_actions_are_scaled_to_the_bounds_and_stay_within_them() -> None:
    bounds = random_policy().bounds
    actions = np.array([[-1, -1], [0, 0.5], [1, 1]], np.float32)
    np.testing.assert_array_equal(bounds.scale(actions), np.float32([[-1, -2], [0, 1], [1, 2]]))
    # Halves of 0.7 and of 1.1 round: the ends are met all the same.
    uneven = ActionBounds(np.array([-0.7]), np.array([0.4]), np.dtype(np.float32))
    ends = uneven.scale(np.array([[-1], [1]], np.float32))
    assert ends.tolist() == np.float32([[-0.7], [0.4]]).tolist()
    assert not uneven.is_unit
    unit = ActionBounds(np.full(2, -1.0), np.full(2, 1.0), np.dtype(np.float64))
    assert unit.is_unit
    np.testing.assert_array_equal(unit.scale(actions), actions.astype(np.float64))


def test_boltzmann_frequencies_are_the_softmax() -> None:
    values = np.array([[0.0, 1.0, -2.0], [1000.0, 1001.0, 999.0]], np.float32)
    grid = 50_000
    chance = np.tile((np.arange(grid, dtype=np.float32) + 0.5) / grid, (2, 1))
    picked = controller.boltzmann(np.repeat(values[:, None], grid, axis=1), chance)
    assert picked.dtype == np.int32
    weight = np.exp(values.astype(np.float64) - values.max(axis=-1, keepdims=True))
    for found, expected in zip(picked, weight / weight.sum(axis=-1, keepdims=True), strict=True):
        np.testing.assert_allclose(np.bincount(found, minlength=3) / grid, expected, atol=1e-4)


def test_boltzmann_stays_in_range_at_the_ends_of_chance() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    top = np.full(1000, np.nextafter(np.float32(1), np.float32(0)), np.float32)
    assert set(controller.boltzmann(values, top)) == {2}
    assert set(controller.boltzmann(values, np.zeros(1000, np.float32))) == {0}


def test_a_master_picks_by_its_name() -> None:
    values = np.array([[[0.0, 1.0], [5.0, -5.0]]], np.float32)
    assert controller.chooser("greedy", np.random.default_rng(0))(values).tolist() == [[1, 0]]
    picked = [controller.chooser("boltzmann", np.random.default_rng(seed))(values)[0, 0] for seed in range(200)]
    assert abs(np.mean(picked) - 1 / (1 + np.exp(-1))) < 0.13  # four standard deviations
    with pytest.raises(LowgearError, match=r"'loud': write greedy or boltzmann"):
        controller.chooser("loud", np.random.default_rng(0))
    assert (PLAIN.master, replace(PLAIN, boltzmann=True).master) == ("greedy", "boltzmann")


def test_boltzmann_never_picks_what_has_no_chance() -> None:
    values = np.array([[-1000.0, 0.0, 0.0]], np.float32)
    assert controller.boltzmann(values, np.zeros(1, np.float32)) == 1


@EVERY
def test_stack_and_take_undo_each_other(header: PolicyHeader) -> None:
    weights = random_weights(header=header)
    parts = [acting.take(weights, agent) for agent in range(POPULATION)]
    assert parts[1].master[0][0].shape == (1, OBS + (header == HEADER), MASTER)
    assert_same(acting.stack(parts), weights)
    assert_same(acting.stack(parts[1:2]), parts[1])


@pytest.mark.parametrize("header", [HEADER, KNOWN], ids=["learned", "known"])
def test_a_policy_is_set_to_a_coefficient_of_its_dial(header: PolicyHeader) -> None:
    policy = Policy(header, acting.take(random_weights(header=header), 0))
    other = policy.at(0.1)
    assert (other.header.cost_coefficient, policy.header.cost_coefficient) == (0.1, 0.01)
    assert other.header == replace(header, cost_coefficient=0.1)
    assert other.weights is policy.weights
    assert other.at(0.01) == policy
    with pytest.raises(LowgearError, match=r"0\.2 is outside .* 0\.001 to 0\.1"):
        policy.at(0.2)


@pytest.mark.parametrize("header", [PLAIN, replace(HEADER, dial=Dial(0.01, 0.01))], ids=["none", "equal ends"])
def test_a_policy_without_a_dial_says_so(header: PolicyHeader) -> None:
    with pytest.raises(LowgearError, match=r"one cost coefficient, 0\.01: it has no dial"):
        Policy(header, acting.take(random_weights(header=header), 0)).at(0.01)


@EVERY
def test_costs_are_those_of_the_networks_that_run(header: PolicyHeader) -> None:
    weights = random_weights(1, header=header)
    products = [sum(weight[0].size for weight, _ in layers) for layers in (*weights.gears, weights.master)]
    assert header.cost.gear_flops == tuple(2 * count + 3 for count in products[:-1])
    assert header.cost.pick_flops == 2 * products[-1]


def test_importing_the_controller_pulls_in_no_jax() -> None:
    code = "import lowgear.policy.controller, sys; assert 'jax' not in sys.modules and 'optax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
