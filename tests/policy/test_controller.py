"""The NumPy runtime against the JAX networks, how long picks hold, and a policy's dial."""

import itertools
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
from lowgear.policy.controller import Shifter, Tariff, Weights
from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy, PolicyHeader

OBS, ACT, POPULATION, ENVS = 4, 2, 3, 6
GEARS, MASTER = (3, 5), 7
HEADER = PolicyHeader(
    task="walker-stand",
    recipe="modern",
    variant="asymmetric",
    seed=3,
    cost_coefficient=0.01,
    dial=Dial(0.001, 0.1),
    steps=1000,
    obs_dim=OBS,
    act_dim=ACT,
    layout=(("position", 1), ("velocity", 3)),
    action_low=(-1.0, -2.0),
    action_high=(1.0, 2.0),
    gears=GEARS,
    master_units=MASTER,
    periods=(2, 5, 20),
    activation="tanh",
    forced_gear=None,
    boltzmann=False,
    hindsight=False,
)
KNOWN = replace(HEADER, known_prices=True)
PLAIN = replace(HEADER, recipe="paper", dial=None, periods=(5,))  # one duration, one coefficient, as in the paper
EVERY = pytest.mark.parametrize("header", [HEADER, KNOWN, PLAIN], ids=["dial", "known prices", "no dial"])


def random_weights(population: int = POPULATION, seed: int = 0, header: PolicyHeader = HEADER) -> Weights:
    """Of the shapes that a header asks for, each agent's tariff its own."""
    rng = np.random.default_rng(seed)

    def layers(*sizes: int):
        return [
            (
                rng.normal(size=(population, a, b)).astype(np.float32),
                rng.normal(size=(population, b)).astype(np.float32),
            )
            for a, b in itertools.pairwise(sizes)
        ]

    gears = tuple(layers(OBS, units, units, 2 * ACT) for units in GEARS)
    choices = len(GEARS) * len(header.periods)
    master = layers(OBS + header.sees_position, MASTER, MASTER, choices)
    if not header.known_prices or header.dial is None:
        return Weights(gears, master)
    ends = (np.full(population, end, np.float32) for end in (header.dial.low, header.dial.ratio))
    return Weights(gears, master, Tariff(*ends, rng.uniform(0, 50, (population, choices)).astype(np.float32)))


def batch(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    observation, noise = rng.normal(size=(POPULATION, ENVS, OBS)), rng.normal(size=(POPULATION, ENVS, ACT))
    return observation.astype(np.float32), noise.astype(np.float32)


def assert_same(one: Weights, two: Weights) -> None:
    parts = ((tuple(map(tuple, each.gears)), tuple(each.master), each.tariff) for each in (one, two))
    (leaves, tree), (other, other_tree) = (jax.tree.flatten(jax.tree.map(np.asarray, part)) for part in parts)
    assert tree == other_tree
    for a, b in zip(leaves, other, strict=True):
        np.testing.assert_array_equal(a, b)


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
    found = controller.act(weights.gears, observation, gear, activation, noise if noisy else None)
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
    if header.dial is None:
        found, seen = controller.values(weights, observation, None, activation), observation
    else:
        found = controller.values(weights, observation, position, activation)
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
    before = controller.values(weights, observation, position, "tanh")
    position[1, 2] = 0.7
    changed = (controller.values(weights, observation, position, "tanh") != before).any(axis=-1)
    assert np.argwhere(changed).tolist() == [[1, 2]]


def test_a_tariff_takes_off_what_each_choice_costs_where_the_dial_stands() -> None:
    weights, (observation, _) = random_weights(header=KNOWN), batch()
    assert weights.tariff is not None
    low, each = np.linspace(0.001, 0.01, POPULATION).astype(np.float32), weights.tariff.each
    weights = weights._replace(tariff=Tariff(low, np.full(POPULATION, 100, np.float32), each))
    position = np.tile(np.linspace(-1, 1, ENVS, dtype=np.float32), (POPULATION, 1))
    earned = controller.mlp(weights.master, observation, "tanh")  # the network sees the observation alone
    found = controller.values(weights, observation, position, "tanh")
    coefficient = low[:, None] * 100 ** ((position + 1) / 2)
    np.testing.assert_allclose(found, earned - coefficient[..., None] * each[:, None], rtol=1e-4, atol=1e-4)
    assert found.dtype == np.float32
    # Each agent's own, alone and in company.
    alone = [controller.take(weights, agent) for agent in range(POPULATION)]
    for agent, one in enumerate(alone):
        part = slice(agent, agent + 1)
        np.testing.assert_allclose(
            controller.values(one, observation[part], position[part], "tanh"), found[part], rtol=1e-5
        )
    np.testing.assert_array_equal(controller.values(controller.stack(alone), observation, position, "tanh"), found)


def test_masters_that_know_prices_and_masters_that_learn_them_do_not_mix() -> None:
    one, two = (controller.take(random_weights(header=header), 0) for header in (KNOWN, HEADER))
    with pytest.raises(LowgearError, match="do not mix"):
        controller.stack([one, two])


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
        choice = controller.values(weights, states, turned, activation).argmax(axis=-1)
        paid.append(np.take_along_axis(each, choice[..., None], axis=-1)[..., 0])
    change = np.diff(np.stack(paid), axis=0)
    assert (change <= 0).all()
    assert (change < 0).any(axis=0).mean() > 0.1  # the dial does turn, in one state of ten and more


@EVERY
def test_a_policy_has_a_tariff_just_where_its_header_says_so(header: PolicyHeader) -> None:
    other = {HEADER: KNOWN, KNOWN: HEADER, PLAIN: replace(PLAIN, known_prices=True)}[header]
    weights = controller.take(random_weights(header=header), 0)
    assert Policy(header, weights).weights is weights
    with pytest.raises(AssertionError, match="only where prices are known"):
        Policy(other, weights)


def test_log_std_bounds_are_those_of_training() -> None:
    assert (controller.LOG_STD_MIN, controller.LOG_STD_MAX) == (networks.LOG_STD_MIN, networks.LOG_STD_MAX)


@pytest.mark.parametrize("number", range(2))
def test_all_in_one_gear(number: int) -> None:
    weights, (observation, _) = random_weights(), batch()
    gear = np.full((POPULATION, ENVS), number, np.int32)
    mean = controller.mlp(weights.gears[number], observation, "tanh")[..., :ACT]
    np.testing.assert_array_equal(controller.act(weights.gears, observation, gear, "tanh"), np.tanh(mean))


def shift(shifter: Shifter, ends: list[tuple[int, ...]], choice: list[int]) -> tuple[list, list]:
    """One step for each of `ends`, the same choices wherever due; where a pick was due, and where it ended."""
    due, closed = [], []
    for ended in ends:
        due.append(shifter.due[0].astype(int).tolist())
        shifter.pick(np.array([choice]))
        done = shifter.advance(np.array([ended], bool))
        closed.append(done[0].astype(int).tolist())
        shifter.release(done)
    return due, closed


def test_shifter_holds_a_pick_for_its_period_or_until_the_end() -> None:
    due, closed = shift(Shifter((1, 2), 2, (3,)), [(0, 0), (0, 1), (0, 0), (0, 0), (0, 0)], [0, 1])
    assert due == [[1, 1], [0, 0], [0, 1], [1, 0], [0, 0]]
    assert closed == [[0, 0], [0, 1], [1, 0], [0, 0], [0, 1]]


def test_shifter_holds_each_pick_for_the_duration_it_carries() -> None:
    # Two gears for 1, 3 or 4 steps: choices 1, 2 and 5 are the large gear for 1, the small for 3, the large for 4.
    shifter = Shifter((1, 3), 2, (1, 3, 4))
    due, closed = shift(shifter, [(0, 0, 0)] * 6, [1, 2, 5])
    assert np.array(due).T.tolist() == [[1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0]]
    assert np.array(closed).T.tolist() == [[1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]]
    assert shifter.gear.tolist() == [[1, 0, 1]]
    assert shifter.choice.tolist() == [[1, 2, 5]]
    # An episode's end is everybody's, and what is asked for before a pick is due changes nothing.
    _, closed = shift(shifter, [(1, 1, 1)], [0, 0, 0])
    assert closed == [[1, 1, 1]]
    assert shifter.choice.tolist() == [[0, 0, 5]]  # the third had held two steps of its four
    shifter.pick(np.array([[4, 3, 2]]))
    assert shifter.gear.tolist() == [[0, 1, 0]]


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


def test_boltzmann_never_picks_what_has_no_chance() -> None:
    values = np.array([[-1000.0, 0.0, 0.0]], np.float32)
    assert controller.boltzmann(values, np.zeros(1, np.float32)) == 1


@EVERY
def test_stack_and_take_undo_each_other(header: PolicyHeader) -> None:
    weights = random_weights(header=header)
    parts = [controller.take(weights, agent) for agent in range(POPULATION)]
    assert parts[1].master[0][0].shape == (1, OBS + (header == HEADER), MASTER)
    assert_same(controller.stack(parts), weights)
    assert_same(controller.stack(parts[1:2]), parts[1])


@pytest.mark.parametrize("header", [HEADER, KNOWN], ids=["learned", "known"])
def test_a_policy_is_set_to_a_coefficient_of_its_dial(header: PolicyHeader) -> None:
    policy = Policy(header, controller.take(random_weights(header=header), 0))
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
        Policy(header, controller.take(random_weights(header=header), 0)).at(0.01)


@EVERY
def test_prices_are_those_of_the_networks_that_run(header: PolicyHeader) -> None:
    weights = random_weights(1, header=header)
    products = [sum(weight[0].size for weight, _ in layers) for layers in (*weights.gears, weights.master)]
    assert header.prices.gears == tuple(2 * count + 3 for count in products[:-1])
    assert header.prices.pick == 2 * products[-1]


def test_importing_the_runtime_pulls_in_no_jax() -> None:
    code = "import lowgear.policy.controller, sys; assert 'jax' not in sys.modules and 'optax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
