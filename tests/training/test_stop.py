"""Runs that are stopped at any chunk go on bit for bit; one process at a time trains into a directory."""

import errno
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.policy.files import hold
from lowgear.policy.networks import leaves_of
from lowgear.training import parallel
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Training
from lowgear.training.shard import programs_of
from tests.fixtures.training import SMALL, Hear, StopAt, StopsAt, policy_bytes, without_speed

slow = pytest.mark.slow
TASK = find("envpool:Pendulum-v1")
SETTINGS = resolve(
    TASK,
    steps=512,
    gears=(2, 4),
    seeds=(1, 2, 3),
    variants=("asymmetric", "large-only"),
    evaluate_every=128,
    evaluate_episodes=1,
    checkpoint_every=256,
    overrides=SMALL | {"master_units": 4, "actor_every": 1, "environments": 2, "periods": (2, 7)},
)
CONFIG = replace(SETTINGS, log_every=96)


def make(directory, config=CONFIG, groups=None):
    if not directory.path.exists():
        directory.create(config, {})
    own = lambda count: envs.make(TASK, count)  # noqa: E731
    return Training(config, own(config.environments), own, directory, groups=groups)


def go(directory, stop_at=None, crash_at=None, config=CONFIG, groups=None):
    training = make(directory, config, groups)
    listeners = [StopsAt(training, stop_at)] if stop_at else [StopAt(crash_at)] if crash_at else []
    try:
        return training.run(listeners)
    finally:
        training.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("whole") / "run")
    assert go(directory) is True
    return directory


def same(directory, whole):
    assert without_speed(directory) == without_speed(whole)
    assert policy_bytes(directory, 6) == policy_bytes(whole, 6)


# Within the second segment, twice; before the first updates; within the first; at its checkpoint; at the last chunk.
@pytest.mark.parametrize("stops", [(288, 416), *(pytest.param((at,), marks=slow) for at in (32, 160, 256, 480))])
def test_a_run_that_was_stopped_ends_as_an_unbroken_one(whole, tmp_path, stops):
    directory = RunDirectory(tmp_path / "run")
    for steps in stops:
        assert go(directory, stop_at=steps) is False
        assert read_latest(directory).steps == steps
        assert [policy.header.steps for policy in directory.load_policies()] == [steps] * 6
        assert not directory.finished(CONFIG)
    assert go(directory) is True
    assert directory.finished(CONFIG)
    same(directory, whole)


class StopsCompiling(Hear):
    """Asks a run to stop when it has begun to compile its first updates."""

    def __init__(self, training):
        super().__init__()
        self.training = training

    def on_phase(self, phase):
        if phase is not None and phase.startswith("compiling"):
            self.training.stop()


@pytest.mark.parametrize("queues", [False, pytest.param(True, marks=slow)], ids=["cores", "device"])
def test_a_run_that_is_stopped_while_it_compiles_waits_no_longer(whole, tmp_path, monkeypatch, queues):
    monkeypatch.setattr(parallel, "has_accelerator", lambda: queues)
    directory = RunDirectory(tmp_path / "run")
    for again in range(2):  # a run that goes on compiles anew, in another process
        programs_of.cache_clear()
        training = make(directory)
        assert training.run([StopsCompiling(training)]) is False
        assert training.learner.rounds == 0
        training.close()
        assert read_latest(directory).steps == CONFIG.recipe.random_steps, again
        assert [policy.header.steps for policy in directory.load_policies()] == [CONFIG.recipe.random_steps] * 6
    assert go(directory) is True
    same(directory, whole)


@slow
def test_what_was_stopped_then_killed_then_stopped_in_processes(whole, tmp_path):
    directory = RunDirectory(tmp_path / "run")
    assert go(directory, stop_at=320) is False
    with pytest.raises(KeyboardInterrupt):
        go(directory, crash_at=448)  # rows after the checkpoint are cut off
    assert go(directory, stop_at=352, groups=2) is False
    assert go(directory) is True
    same(directory, whole)


@slow
def test_a_finished_run_goes_on(tmp_path):
    """As the unbroken one, but for what depends on the whole length: exploring, and a log line at the first end."""
    directory = RunDirectory(tmp_path / "run")
    short = replace(CONFIG, steps=320, recipe=replace(CONFIG.recipe, explore_share=0.0))
    long = replace(CONFIG, recipe=replace(CONFIG.recipe, explore_share=0.0))
    assert go(directory, config=short) is True
    assert directory.finished(short)
    extended = directory.extended(directory.read_config(), 512)
    assert (extended.steps, directory.read_config()) == (512, short)
    assert go(directory, config=extended) is True
    assert directory.read_config() == extended
    unbroken = RunDirectory(tmp_path / "unbroken")
    assert go(unbroken, config=long) is True
    assert [directory.policy(agent).read_bytes() for agent in range(6)] == [
        unbroken.policy(agent).read_bytes() for agent in range(6)
    ]
    with pytest.raises(LowgearError, match=r"--steps 100: .* is a run of 512; write that many or more"):
        directory.extended(extended, 100)


class Whim(gymnasium.Env):
    """Never twice the same: its observations go by a clock of their own."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    clock = itertools.count()

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        self.left = 50
        return self._look(), {}

    def step(self, action):  # noqa: ARG002
        self.left -= 1
        return self._look(), 1.0, False, self.left == 0, {}

    def _look(self):
        return np.array([np.sin(next(self.clock))], np.float32)


def test_environments_that_do_not_repeat_themselves_begin_anew(tmp_path):
    recipe = replace(CONFIG.recipe, random_steps=CONFIG.steps)  # nothing is learned, or compiled
    config = replace(CONFIG, agents=CONFIG.agents[:1], evaluate_every=0, recipe=recipe)
    directory = RunDirectory(tmp_path / "run")
    directory.create(config, {})
    seen = []
    for stop_at in (96, 160, None):
        training = Training(config, envs.wrap(Whim, 2), None, directory)
        seen.append(training.begins_anew)
        training.run([StopsAt(training, stop_at)] if stop_at else [])
        training.close()
    assert seen == [False, True, True]
    assert directory.finished(config)
    # The buffers were told that the episodes ended there.
    columns, chunk = training.collector.columns, config.recipe.chunk
    rows = np.fromfile(directory.rows(0), np.float32).reshape(-1, 1, 2, chunk // 2, columns.width)
    assert [bool(rows[steps // chunk - 1, 0, :, -1, columns.ended].all()) for steps in (96, 160)] == [True, True]


def test_a_directory_that_is_trained_into_is_refused(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    training = make(directory)
    with pytest.raises(LowgearError, match=f"run is in use by process {os.getpid()} on .*: wait until it is done"):
        make(directory)
    training.close()
    make(directory).close()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=slow)], ids=["ctrl-c", "kill"])
def test_the_command_stops_at_a_checkpoint_and_says_how_to_go_on(tmp_path, number):
    options = ["--steps", "200000", "--gears", "2,4", "--evaluate-every", "0", "--set", "batch=16"]
    options += ["--set", "critic_units=4", "--set", "actor_every=1"]
    directory = RunDirectory(tmp_path / "run")
    command = [sys.executable, "-m", "lowgear", "train", "envpool:Pendulum-v1", *options, "--out", str(directory.path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        deadline = time.monotonic() + 240
        while not (directory.metrics.exists() and directory.metrics.stat().st_size) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number, said
    latest = read_latest(directory)
    assert f"stopped at {latest.steps} of 200000 steps; go on with `lowgear train --resume {directory.path}`" in said
    assert latest.steps > 0
    assert directory.load_policies()[0].header.steps == latest.steps
    assert not list(directory.path.rglob("*.partial"))


class Fever(gymnasium.Env):
    """Gives a bad number at its 90th step, if it is `bad`."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, bad):
        self.bad = bad

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.steps, self.left = 0 if seed is not None else self.steps, 50
        return np.array([0.5], np.float32), {}

    def step(self, action):
        self.steps += 1
        self.left -= 1
        seen = np.array([np.sin(self.steps + float(action[0]))], np.float32)
        return seen * (np.nan if self.bad and self.steps == 90 else 1), float(seen[0]), False, self.left == 0, {}


def population(path, rates, bad=(), stop_at=None):
    """Run agents that differ in their rates; the environments numbered `bad` fail at their 90th step."""
    overrides = SMALL | {"master_units": 4, "actor_every": 1, "environments": 1}
    options = {"steps": 320, "gears": (2, 4), "evaluate_every": 0, "checkpoint_every": 128, "overrides": overrides}
    config = replace(resolve(TASK, learning_rates=rates, **options), log_every=32)
    directory, made = RunDirectory(path), itertools.count()
    if not path.exists():
        directory.create(config, {})
    env = envs.wrap(lambda: Fever(next(made) in bad), len(config.agents))
    training = Training(config, env, None, directory)
    listener = StopsAt(training, stop_at or config.steps)
    try:
        training.run([listener])
    finally:
        training.close()
    return directory, config, listener


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    directory, *_ = population(tmp_path_factory.mktemp("healthy") / "run", (1e-3, 2e-3))
    return directory


def lines_of(directory, agent):
    return [line for line in without_speed(directory) if line["agent"] == agent]


def test_an_agent_that_diverges_stops_alone(healthy, tmp_path):
    directory, config, heard = population(tmp_path / "run", (1e-3, 1e30), stop_at=192)
    assert directory.read_stopped()[1][0] <= 160
    (notice,) = heard.notices
    for words in (
        "agent 1 (asymmetric, seed 0) stopped at",
        "it diverged (",
        "lower its learning rate",
        "others go on",
    ):
        assert words in notice
    population(tmp_path / "run", (1e-3, 1e30))  # goes on with what is left
    assert directory.finished(config)
    assert directory.policy(0).read_bytes() == healthy.policy(0).read_bytes()
    assert lines_of(directory, 0) == lines_of(healthy, 0)
    last = lines_of(directory, 1)[-1]
    assert "diverged" in last["stopped"]
    assert "gear0_critic_loss" not in last
    policy = directory.load_policies()[1]
    assert policy.header.steps == directory.read_stopped()[1][0]
    assert all(np.isfinite(leaf).all() for leaf in leaves_of(policy.weights))


def test_an_agent_whose_environment_gives_bad_numbers_stops_alone(healthy, tmp_path):
    directory, config, heard = population(tmp_path / "run", (1e-3, 2e-3), bad=(1,))
    steps, why = directory.read_stopped()[1]
    assert steps == 96  # the end of the chunk of its 90th step
    assert "Fever returned nan in its observation[0] at step 90 (environment 1, seed " in why
    assert heard.notices == [f"agent 1 (asymmetric, seed 0) stopped at 96 steps: {why}; the others go on"]
    assert directory.finished(config)
    assert directory.policy(0).read_bytes() == healthy.policy(0).read_bytes()
    assert lines_of(directory, 0) == lines_of(healthy, 0)


def test_the_last_agent_ends_the_run_before_the_round_in_which_it_diverged(tmp_path):
    said = r"agent \d stopped at (\d+) steps: it diverged .*lower its learning rate.*tries again from (\d+) steps"
    found = []
    for _ in range(2):  # the second time it goes on from there, to the same end
        with pytest.raises(LowgearError, match=said) as error:
            population(tmp_path / "run", (1e30, 1e29))
        found.append(str(error.value))
    directory, (ended, kept) = RunDirectory(tmp_path / "run"), map(int, re.search(said, found[0]).groups())
    assert found[0] == found[1]
    assert read_latest(directory).steps == kept == ended - 32
    for policy in directory.load_policies():
        assert all(np.isfinite(leaf).all() for leaf in leaves_of(policy.weights))


def test_a_lock_that_a_system_refuses_by_another_name(tmp_path, monkeypatch):
    """POSIX lets a lock that is held be EACCES as well; where there are no locks nobody is refused."""
    path = tmp_path / "lock"
    hold(path).close()

    def flock(number):
        def refuse(*_):
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr("fcntl.flock", flock(errno.EACCES))
    with pytest.raises(LowgearError, match=f"in use by process {os.getpid()} on "):
        hold(path)
    monkeypatch.setattr("fcntl.flock", flock(errno.ENOLCK))
    hold(path).close()
