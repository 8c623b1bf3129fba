import copy
import os
import pickle
import signal

import numpy as np
import pytest

import lowgear
from lowgear import LowgearError
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.policy.networks import leaves_of
from lowgear.training.loop import Training
from tests.fixtures.probes import Valley
from tests.fixtures.training import ONE_GEAR, SMALL

SETTINGS = SMALL | {"periods": (2, 3), "master_units": 4, "explore_share": 0.0}


def new(env=Valley):
    return lowgear.Agent(env, gears=(2, 16), cost_coefficient=(0.001, 0.1), **SETTINGS)


def apart(*agents):
    """How far the agents' weights are apart."""
    first, *others = (agent.policy for agent in agents)
    pairs = [pair for one in others for pair in zip(leaves_of(first.weights), leaves_of(one.weights), strict=True)]
    return max(float(np.abs(a - b).max()) for a, b in pairs)


@pytest.fixture(scope="module")
def trained():
    """Learned three times."""
    agent, counts = new(), []
    for steps, reset in ((96, True), (64.0, False), (np.int64(96), True)):
        agent.learn(steps, reset_num_timesteps=reset)
        counts.append((agent.num_timesteps, agent.total_steps))
    assert counts == [(96, 96), (160, 160), (96, 256)]
    return agent


def test_learning_in_parts_is_learning_at_once(trained):
    assert apart(trained, new().learn(256)) == 0


def test_a_copy_and_a_saved_run_learn_on_alike(trained, tmp_path):
    pickled, copied = pickle.loads(pickle.dumps(trained)), copy.deepcopy(trained)
    assert apart(trained, pickled, copied) == 0
    assert pickled.history == trained.history != []
    trained.save_run(tmp_path / "run")
    loaded = lowgear.load(tmp_path / "run", Valley)
    assert apart(trained, loaded) == 0
    for agent in (pickled, loaded):
        agent.learn(64)
        assert agent.total_steps == agent.policy.header.steps == 320
    assert apart(pickled, loaded) < 1e-5 < apart(trained, loaded)  # their buffers have other sizes
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]
    with pytest.raises(LowgearError, match="exists"):
        trained.save_run(tmp_path / "run")
    _check_growth(pickled._trainable.training.learner)


def _check_growth(learner):
    """A buffer with more room holds what it held."""
    (shard,) = learner._shards
    rows, before = learner.rows(), shard.buffer
    learner.grow(1 << 17, 32)
    after = shard.buffer
    assert (rows.shape[1], after.rows.shape[1]) == (320, 1 << 17)
    np.testing.assert_array_equal(learner.rows(), rows)
    for name in ("evicted", "start", "stop"):
        np.testing.assert_array_equal(getattr(after.samples, name), getattr(before.samples, name))


def test_what_a_copy_cannot_have_is_told(trained):
    alone = copy.deepcopy(trained)
    alone.set_env(Valley())  # an environment, not a function that makes one
    copied = copy.deepcopy(alone)
    with pytest.raises(LowgearError, match=r"set_env\(env\) first"):
        copied.learn(32)
    with pytest.raises(LowgearError, match="2 observations"):
        copied.set_env("MountainCarContinuous-v0")


@pytest.fixture
def interruptible():
    """Ctrl-C as at a terminal: a process in a shell's background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_what_was_learned(interruptible):  # noqa: ARG001
    agent = lowgear.Agent(Valley(), **ONE_GEAR)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(10_000, callback=lambda _: os.kill(os.getpid(), signal.SIGINT), log_interval=6)
    assert signal.getsignal(signal.SIGINT) is handler
    assert agent.policy.header.steps == agent.total_steps == 128  # six episodes of 20 steps, and the chunk's rest
    agent.learn(32)
    assert agent.total_steps == 160


class Slow(Valley):
    """Ctrl-C comes while it is made ready, before a step is taken."""

    presses = 1

    def reset(self, **others):
        while self.presses:
            self.presses -= 1
            os.kill(os.getpid(), signal.SIGINT)
        return super().reset(**others)


def test_ctrl_c_before_the_first_step_is_not_lost(interruptible):  # noqa: ARG001
    env = Slow()
    agent = lowgear.Agent(env, **ONE_GEAR)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(10_000)
    assert env.presses == 0
    assert agent.total_steps == 0
    assert not agent.is_trained
    agent.learn(64)
    assert agent.total_steps == 64


class Fragile(Valley):
    taken = 0

    def step(self, action):
        self.taken += 1
        if self.taken == 150:
            raise ZeroDivisionError("a wire broke")
        return super().step(action)


def test_an_environments_error_keeps_what_was_learned():
    agent = lowgear.Agent(Fragile(), **ONE_GEAR)
    with pytest.raises(LowgearError, match="a wire broke"):
        agent.learn(320)
    assert agent.policy.header.steps == 128
    before = copy.copy(agent)
    agent.learn(64)
    assert agent.total_steps == 192
    assert apart(before, agent) > 0


@pytest.mark.slow
def test_an_agent_of_a_run_goes_on_exactly_as_the_run_does(tmp_path):
    task, settings = find("gym:Pendulum-v1"), {"gears": (2, 8), "seeds": (0, 1), "evaluate_every": 0}
    config = resolve(task, steps=160, variants=("large-only",), overrides=SMALL, **settings)
    run = RunDirectory(tmp_path / "run")
    run.create(config, {})
    _train(config, run)
    loaded = lowgear.load(run.path, agent=1).learn(96)
    _train(run.extend(config, 256), run)
    assert apart(loaded, lowgear.load(run.path, agent=1)) == 0
    assert loaded.policy.header.seed == 1
    with pytest.raises(LowgearError, match=r"agent=2: .* has agents 0 to 1"):
        lowgear.load(run.path, agent=2)


def _train(config, run):
    training = Training(config, make_env(config, 2), None, run)
    training.run()
    training.close()


@pytest.mark.parametrize("steps", [0, -5, 1.5, float("nan"), float("inf"), "100", None, True])
def test_steps_are_a_whole_number(trained, steps):
    with pytest.raises(LowgearError, match=r"total_timesteps=.* whole number"):
        trained.learn(steps)
