import gymnasium
import numpy as np
import pytest

import lowgear
from lowgear import LowgearError
from lowgear.policy.dial import Dial
from lowgear.policy.gears import gears_of
from tests.fixtures.probes import Valley
from tests.fixtures.training import SMALL
from tests.fixtures.weights import thrifty


@pytest.fixture(scope="module")
def agent():
    return lowgear.Agent(Valley(), gears=(2, 16), cost_coefficient=0.001, recipe="paper", **SMALL).learn(256)


def test_predict_follows_the_spaces_bounds_and_shapes(agent):
    action, state = agent.predict(np.array([0.3], np.float32))
    assert action.shape == (1,)
    actions, state = agent.predict(np.linspace(-1, 1, 50, dtype=np.float32)[:, None])
    assert actions.shape == (50, 1)
    assert actions.dtype == np.float32
    assert (np.abs(actions) <= 2).all()
    sampled, _ = agent.predict(np.zeros((500, 1), np.float32), deterministic=False)
    assert np.abs(sampled).max() > 1  # the space reaches to 2
    assert sampled.std() > 0
    choice, age = state
    assert choice.shape == age.shape == (50,)


def test_state_holds_the_gear_for_the_period(agent):
    rng = np.random.default_rng(0)
    state, start, picked = None, np.ones(8, bool), []
    for _step in range(15):
        observation = rng.uniform(-1, 1, (8, 1)).astype(np.float32)
        _, state = agent.predict(observation, state, start, master="boltzmann")
        start = np.zeros(8, bool)
        picked.append(state[0])
    picked = np.array(picked)
    for block in picked.reshape(3, 5, 8):
        assert (block == block[0]).all()
    assert len({tuple(block[0]) for block in picked.reshape(3, 5, 8)}) > 1


def test_an_episode_start_asks_the_master_at_once(agent):
    observation = np.zeros((2, 1), np.float32)
    _, state = agent.predict(observation)
    assert state[1].tolist() == [1, 1]
    _, state = agent.predict(observation, state)
    assert state[1].tolist() == [2, 2]
    _, state = agent.predict(observation, state, np.array([True, False]))
    assert state[1].tolist() == [1, 3]


def test_save_and_load(agent, tmp_path):
    path = tmp_path / "valley.safetensors"
    agent.save(path)
    loaded = lowgear.load(path)
    observation = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(loaded.predict(observation)[0], agent.predict(observation)[0])
    with pytest.raises(LowgearError, match="not the critics"):
        loaded.learn(100)


@pytest.mark.usefixtures("optimised")
def test_learning_makes_it_better():
    agent = lowgear.Agent(
        Valley,
        gears=(1, 32),
        cost_coefficient=0.0,
        variant="large-only",
        recipe="paper",
        learning_rate=3e-3,
        discount=0.5,
        batch=64,
    )
    seen = []
    agent.learn(4000, callback=lambda line: seen.append(line["steps"]))
    assert seen == sorted(seen)
    assert len(seen) >= 3
    observation = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    agent_error = np.abs(agent.predict(observation)[0][:, 0] / 2 - (2 * np.abs(observation[:, 0]) - 1)).mean()
    assert agent_error < 0.2  # doing nothing is 0.5 off


def test_dict_observations_go_in_the_layouts_order(agent, tmp_path):
    from dataclasses import replace

    from lowgear.policy.file import Policy

    header = replace(agent.policy.header, layout=(("position", 1),))
    path = tmp_path / "dict.safetensors"
    Policy(header, agent.policy.weights).save(path)
    loaded = lowgear.load(path)
    flat, _ = loaded.predict(np.array([[0.1], [0.2]], np.float32))
    named, _ = loaded.predict({"position": np.array([[0.1], [0.2]])})
    np.testing.assert_array_equal(flat, named)
    with pytest.raises(LowgearError, match="position"):
        loaded.predict({"speed": np.zeros((2, 1))})


def test_wrong_use_is_named(agent):
    with pytest.raises(LowgearError, match=r"\(3,\)"):
        agent.predict(np.zeros((2, 3), np.float32))
    with pytest.raises(LowgearError, match="state is for 2"):
        agent.predict(np.zeros((3, 1), np.float32), agent.predict(np.zeros((2, 1), np.float32))[1])
    with pytest.raises(LowgearError, match="not learned"):
        lowgear.Agent(Valley(), gears=(2, 4), cost_coefficient=0.1).predict(np.zeros(1))
    with pytest.raises(LowgearError, match="give cost_coefficient "):
        lowgear.Agent(Valley(), recipe="paper")
    with pytest.raises(LowgearError, match="master 'loud'"):
        agent.predict(np.zeros(1, np.float32), master="loud")
    with pytest.raises(LowgearError, match=r"-0\.1: write a number of 0 or more"):
        lowgear.Agent(Valley(), gears=(2, 4), cost_coefficient=(-0.1, 0.0))
    with pytest.raises(LowgearError, match="banana"):
        lowgear.Agent(Valley(), gears=(2, 4), cost_coefficient=0.1, banana=3)


@pytest.mark.parametrize("known", [True, False], ids=["known", "learned"])
def test_a_dial_agent_learns_and_is_set_afterwards(tmp_path, known):
    settings = SMALL | {"periods": (2, 3), "master_units": 4} | ({} if known else {"known_prices": False})
    dialled = lowgear.Agent(Valley(), gears=(2, 16), cost_coefficient=(0.001, 0.1), **settings)
    with pytest.raises(LowgearError, match="not learned"):
        dialled.cost_coefficient = 0.1
    dialled.learn(160)
    assert dialled.cost_coefficient == pytest.approx(0.01)  # the middle, unless told otherwise
    header = dialled.policy.header
    assert (header.recipe, header.dial, header.periods) == ("modern", Dial(0.001, 0.1), (2, 3))
    weights = dialled.policy.weights
    assert weights.master[0][0].shape == (1, 1 if known else 2, 4)  # the dial's position is one more input
    assert (weights.tariff is not None) == header.known_prices == known
    assert weights.master[-1][0].shape == (1, 4, 4)
    dialled.cost_coefficient = 0.1
    assert dialled.policy.weights is weights
    path = tmp_path / "set.safetensors"
    dialled.save(path)
    assert lowgear.load(path).cost_coefficient == 0.1


def test_an_agent_needs_neither_widths_nor_prices():
    settings = SMALL | {"periods": (2, 3), "master_units": 4}
    found = lowgear.Agent(Valley(), **settings).learn(160)
    header = found.policy.header
    assert (header.gears, header.relative_coefficient) == (gears_of((16, 128)), 2.0)
    assert found.cost_coefficient == pytest.approx(2 * header.cost_unit)
    found.cost_coefficient = -header.cost_unit  # the low end: the large gear earns a bonus
    assert found.policy.header.relative_coefficient == -1


@pytest.fixture
def thrifty_agent(tmp_path):
    """Goes by its dial: the large gear for 2 steps below 0.01, the small one for 5 above."""
    path = tmp_path / "thrifty.safetensors"
    thrifty().save(path)
    return lowgear.load(path)


def test_the_dial_is_set_at_any_time_and_refuses_what_it_never_learned(thrifty_agent):
    observation = np.array([[0.3]], np.float32)
    found = {}
    for coefficient in (0.001, 0.1, 0.02, 0.001):
        thrifty_agent.cost_coefficient = coefficient
        assert thrifty_agent.cost_coefficient == coefficient
        action, (choice, _) = thrifty_agent.predict(observation)
        found[coefficient] = (choice.tolist(), action.tolist())
    assert {coefficient: choice for coefficient, (choice, _) in found.items()} == {0.001: [1], 0.1: [2], 0.02: [2]}
    assert found[0.1] == found[0.02] != found[0.001]
    with pytest.raises(LowgearError, match=r"0\.2 is outside .* 0\.001 to 0\.1"):
        thrifty_agent.cost_coefficient = 0.2
    assert thrifty_agent.cost_coefficient == 0.001
    assert thrifty_agent.predict(observation)[1][0].tolist() == [1]


def test_a_new_setting_waits_for_the_pick_under_way(thrifty_agent):
    observation = np.array([[0.3]], np.float32)
    thrifty_agent.cost_coefficient = 0.1
    state, choices = None, []
    for step in range(8):
        if step == 2:
            thrifty_agent.cost_coefficient = 0.001
        _, state = thrifty_agent.predict(observation, state)
        choices.append(state[0].tolist())
    assert choices == [[2]] * 5 + [[1]] * 3


@pytest.mark.parametrize(("coefficient", "ages"), [(0.001, [1, 0] * 3), (0.1, [1, 2, 3, 4, 0, 1])])
def test_state_holds_each_pick_over_its_own_period(thrifty_agent, coefficient, ages):
    thrifty_agent.cost_coefficient = coefficient
    state, held = None, []
    for _step in range(6):
        _, state = thrifty_agent.predict(np.zeros((3, 1), np.float32), state)
        assert isinstance(state, tuple)
        choice, age = state  # as Stable-Baselines3 passes a recurrent policy's: arrays, the environments first
        assert choice.shape == age.shape == (3,)
        held.append(age.tolist())
    assert held == [[age] * 3 for age in ages]


def test_a_state_that_was_passed_in_is_left_as_it_was(thrifty_agent):
    _, state = thrifty_agent.predict(np.zeros((2, 1), np.float32))
    before = [part.copy() for part in state]
    thrifty_agent.predict(np.zeros((2, 1), np.float32), state, np.array([True, False]))
    for part, kept in zip(state, before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_an_agent_of_one_price_has_no_dial_to_set(agent):
    assert agent.cost_coefficient == 0.001
    with pytest.raises(LowgearError, match=r"0\.001: it has no dial"):
        agent.cost_coefficient = 0.001


@pytest.mark.peers
def test_sb3_evaluates_a_lowgear_agent_as_it_is(agent):
    from stable_baselines3.common.evaluation import evaluate_policy

    from lowgear import envs
    from lowgear.evaluation.evaluate import play

    returns, lengths = evaluate_policy(agent, Valley(), n_eval_episodes=200, return_episode_rewards=True, warn=False)
    ours = play([agent.policy], envs.wrap(Valley, 10), 200, "greedy", 0).returns[0]
    error = np.hypot(np.std(returns), np.std(ours)) / np.sqrt(200)
    assert set(lengths) == {20}
    assert abs(np.mean(returns) - np.mean(ours)) < 4 * error
    assert isinstance(Valley(), gymnasium.Env)


def test_bad_observations_act_as_readable_ones(agent):
    size = agent.policy.header.obs_dim
    for bad, read in ((np.nan, 0.0), (np.inf, 1e6), (-np.inf, -1e6)):
        (found, _), (wanted, _) = (agent.predict(np.full(size, value, np.float32)) for value in (bad, read))
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, wanted)
