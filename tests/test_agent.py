import gymnasium
import numpy as np
import pytest

import lowgear
from lowgear.errors import LowgearError
from tests.probes import Valley

SMALL = {"batch": 16, "critic_units": 8, "random_steps": 64, "chunk": 32, "master_batch": 8}


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
    gear, age = state
    assert gear.shape == age.shape == (50,)


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
    with pytest.raises(LowgearError, match="cannot learn"):
        loaded.learn(100)


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


def test_a_callback_can_stop():
    other = lowgear.Agent(Valley(), gears=(2, 16), cost_coefficient=0.001, recipe="paper", **SMALL)
    seen = []

    def stop(line):
        seen.append(line["steps"])
        return False

    other.learn(5000, callback=stop)
    assert len(seen) == 1


def test_dict_observations_go_in_the_layouts_order(agent, tmp_path):
    from dataclasses import replace

    from lowgear.runtime import Policy

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
    with pytest.raises(LowgearError, match="--gears"):
        lowgear.Agent(Valley())
    with pytest.raises(LowgearError, match="master 'loud'"):
        agent.predict(np.zeros(1, np.float32), master="loud")
    with pytest.raises(LowgearError, match="banana"):
        lowgear.Agent(Valley(), gears=(2, 4), cost_coefficient=0.1, banana=3)


@pytest.mark.peers
def test_sb3_evaluates_a_lowgear_agent_as_it_is(agent):
    from stable_baselines3.common.evaluation import evaluate_policy

    from lowgear import envs
    from lowgear.evaluate import of_policies, play

    returns, lengths = evaluate_policy(agent, Valley(), n_eval_episodes=200, return_episode_rewards=True, warn=False)
    players, _ = of_policies([agent.policy], "greedy")
    ours = play(players, envs.wrap(Valley, 10), episodes=200, seed=0).returns[0]
    error = np.hypot(np.std(returns), np.std(ours)) / np.sqrt(200)
    assert set(lengths) == {20}
    assert abs(np.mean(returns) - np.mean(ours)) < 4 * error
    assert isinstance(Valley(), gymnasium.Env)
