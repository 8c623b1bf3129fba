"""Runs that are stopped at any chunk go on bit for bit; one process at a time trains into a directory."""

import itertools
import os
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
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Training
from tests.fixtures.training import SMALL, Hear, StopAt, policy_bytes, without_speed

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


class StopsAt(Hear):
    """Asks a run to stop once it has taken so many steps."""

    def __init__(self, training, steps):
        super().__init__()
        self.training, self.steps = training, steps

    def on_steps(self, steps):
        if steps >= self.steps:
            self.training.stop()


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
    extended = directory.extend(directory.read_config(), 512)
    assert (extended.steps, directory.read_config()) == (512, extended)
    assert go(directory, config=extended) is True
    unbroken = RunDirectory(tmp_path / "unbroken")
    assert go(unbroken, config=long) is True
    assert [directory.policy(agent).read_bytes() for agent in range(6)] == [
        unbroken.policy(agent).read_bytes() for agent in range(6)
    ]
    with pytest.raises(LowgearError, match=r"--steps 100: .* is a run of 512; write that many or more"):
        directory.extend(extended, 100)


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
    config = replace(CONFIG, agents=CONFIG.agents[:1], evaluate_every=0)
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
