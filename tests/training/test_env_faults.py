"""Environments that raise or hang while agents train: their agents stop, the others and the run's files do not tell."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import watchdog
from lowgear.training.checkpoint import read_latest
from lowgear.training.collect import Collector
from lowgear.training.loop import Training
from lowgear.training.parallel_collector import ParallelCollector
from tests.fixtures.collecting import behaviour, gather_all
from tests.fixtures.faulty import FAILS_AT, Faulty, deadlock, making
from tests.fixtures.policies import KINDS, policy_of
from tests.fixtures.training import SMALL, Hear, without_speed
from tests.fixtures.weights import repeated

pytestmark = pytest.mark.skipif(watchdog.SIGNAL is None, reason="signals of POSIX")
TASK = find("gym:tests.fixtures.faulty:FaultyRaise-v0")
ONE = KINDS["one of each"]  # observation, action
OPTIONS = {"steps": 320, "gears": (2, 4), "evaluate_every": 0, "checkpoint_every": 128}


def configured(seeds=(0, 1, 2), random=False, **options):
    """Agents that learn, or that only take random actions: nothing is compiled then."""
    overrides = SMALL | {"master_units": 4} | ({"random_steps": 320} if random else {})
    return replace(resolve(TASK, seeds=seeds, **OPTIONS | options, overrides=overrides), log_every=32)


def go(path, config, ways, stop_at=None, plays=None, at=FAILS_AT, after=0):
    directory, heard = RunDirectory(path, trust=True), Hear()
    if not path.exists():
        directory.create(config, {})
    env, plays = making(ways, at, after)(config.environments), plays and making(plays, at)
    training = Training(config, env, plays, directory)
    if stop_at:
        heard.on_steps = lambda steps: training.stop() if steps >= stop_at else None
    try:
        training.run([heard])
    finally:
        training.close()
    return directory, heard


def lines_of(directory, agent):
    return [line for line in without_speed(directory) if line["agent"] == agent]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return go(tmp_path_factory.mktemp("healthy") / "run", configured(), ["", "", ""])[0]


def test_they_stop_alone_and_the_run_goes_on_from_any_chunk(healthy, tmp_path):
    """Stopped by a person too: after the failures, within an episode."""
    config, ways = configured(), ["", "raise", "sleep"]
    directory, heard = go(tmp_path / "run", config, ways, stop_at=224)
    stopped = directory.read_stopped()
    assert {agent: steps for agent, (steps, _) in stopped.items()} == {1: 96, 2: 96}  # the chunk of their 90th step
    assert "Faulty raised RuntimeError at step 90: motor is unplugged (environment 1, seed " in stopped[1][1]
    assert "Faulty did not return for 0.3 s at step 90 (environment 2, seed " in stopped[2][1]
    assert heard.notices == [
        f"agent {agent} (asymmetric, seed {agent}) stopped at 96 steps: {stopped[agent][1]}; the others go on"
        for agent in (1, 2)
    ]
    again, heard = go(tmp_path / "run", config, ways)
    assert heard.notices == []  # nobody waits for them once more
    assert again.finished(config)
    assert again.policy(0).read_bytes() == healthy.policy(0).read_bytes()
    assert lines_of(again, 0) == lines_of(healthy, 0)
    assert again.load_policies()[1].header.steps == 96


def test_the_last_one_ends_the_run_which_goes_on_where_it_was_once_it_is_mended(healthy, tmp_path):
    """All three fail within the chunk after 192 steps, in the episodes that the checkpoint at 128 opened."""
    config, directory = configured(), RunDirectory(tmp_path / "run", trust=True)
    said = r"^agent 2 stopped at 224 steps: Faulty raised RuntimeError at step 90: .*tries again from 192 steps$"
    with pytest.raises(LowgearError, match=said):
        go(directory.path, config, ["raise"], after=1)
    assert not directory.finished(config)
    assert [policy.header.steps for policy in directory.load_policies()] == [224] * 3
    with pytest.raises(LowgearError, match=said):
        go(directory.path, config, ["raise"])  # its 90th step again
    assert read_latest(directory).steps == 192
    go(directory.path, config, [""])
    assert directory.read_stopped() == {}
    assert directory.finished(config)
    for agent in range(3):
        assert directory.policy(agent).read_bytes() == healthy.policy(agent).read_bytes()
    assert without_speed(directory) == without_speed(healthy)


def test_a_batch_that_fails_as_one_is_gone_on_from_too(healthy, tmp_path, monkeypatch):
    """And before the first checkpoint that is due."""
    config, directory = configured(), RunDirectory(tmp_path / "run", trust=True)
    collect = ParallelCollector.collect

    def fail(collector, last=False):
        if collector.steps == 96:
            raise LowgearError("the simulator is gone")
        return collect(collector, last)

    monkeypatch.setattr(ParallelCollector, "collect", fail)
    with pytest.raises(LowgearError, match=r"^the simulator is gone$"):
        go(directory.path, config, [""])
    monkeypatch.setattr(ParallelCollector, "collect", collect)
    assert read_latest(directory).steps == 96
    go(directory.path, config, [""])
    assert directory.policy(0).read_bytes() == healthy.policy(0).read_bytes()
    assert without_speed(directory) == without_speed(healthy)


def test_one_of_several_environments_takes_its_agent_with_it():
    weights = repeated(policy_of(ONE).weights, 2)
    env, acting = making(["", "", "", "raise"], at=5)(4), behaviour((0, 1), environments=2, periods=(1,))
    collector = Collector(env, acting._replace(dial=np.array([True, True])), weights)
    rows, _ = gather_all(collector, 8)
    assert list(collector.bad) == [1]
    assert "(environment 3, seed " in collector.bad[1]
    assert env.retired == {2, 3}
    seen = rows[..., collector.columns.next_observation]
    assert (seen[1, :, 5:] == 0).all()
    assert (seen[0] != 0).all()


def test_all_that_fail_on_their_first_reset_are_an_error_at_once(tmp_path):
    with pytest.raises(LowgearError, match=r"raised RuntimeError on reset: motor is unplugged \(environment 0, "):
        go(tmp_path / "run", configured(random=True), ["raise"], at=0)
    assert RunDirectory(tmp_path / "run").untouched


def test_an_agent_that_cannot_be_evaluated_has_no_score(tmp_path):
    config = configured(random=True, evaluate_every=160, evaluate_episodes=1)
    config = replace(config, steps=160)
    directory, heard = go(tmp_path / "run", config, [""], plays=["", "raise", ""], at=20)
    scored = [line["agent"] for line in without_speed(directory) if line["kind"] == "evaluation"]
    assert scored == [0, 2]
    (notice,) = heard.notices
    assert notice.startswith("agent 1 was not evaluated at 160 steps: Faulty raised RuntimeError at step 20: ")
    assert directory.finished(config)
    assert [directory.policy(agent, best=True).exists() for agent in range(3)] == [True, False, True]


def test_an_evaluation_that_hangs_for_good_is_lost_and_the_run_is_not(tmp_path):
    """Sleep can't be interrupted in a thread that is not the main one."""
    config = configured(random=True, evaluate_every=64, evaluate_episodes=1)
    directory, heard = go(tmp_path / "run", config, [""], plays=["sleep"], at=20)
    (notice,) = heard.notices
    assert notice.startswith("the evaluation at 64 steps is lost, and there is none from now on: Faulty did not return")
    assert {line["kind"] for line in without_speed(directory)} == {"train"}
    assert without_speed(directory)[-1]["steps"] == 320
    assert directory.finished(config)


def lowgear(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from lowgear.commands.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_native_code_that_never_returns_ends_the_run_with_a_line(tmp_path):
    task, out = "gym:tests.fixtures.faulty:FaultyDeadlock-v0", tmp_path / "run"
    sizes = ["--steps", "320", "--gears", "2,4", "--evaluate-every", "0", "--set", "random_steps=320"]
    result = lowgear("train", task, *sizes, "--set", "chunk=32", "--env-timeout", "0.3", "--out", out)
    assert result.returncode == 2, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"lowgear: error: {task} did not return for 0.3 s at step {FAILS_AT} (environment 0, seed ")
    assert "tests/fixtures/faulty.py:" in last
    assert last.endswith(f"go on with `lowgear train --resume {out} --trust`")
    assert "Traceback" not in result.stderr
    assert RunDirectory(out, trust=True).load_policies()[0].header.steps == 64


class Deadlocked:
    """A batch that processes of their own step into a deadlock."""

    goal_rule, limit_s = None, 0.3

    def __init__(self, count):
        self.num_envs, self.spec = count, envs.wrap(Faulty()).spec

    def split(self, sizes):
        return [Deadlocked(size) for size in sizes]

    def reset(self, seeds):
        return np.zeros((len(seeds), 1), np.float32)

    def step(self, actions):  # noqa: ARG002
        watchdog.call(self.limit_s, lambda _: f"{self.num_envs} environments hang", deadlock)


def test_a_process_that_hangs_is_told():
    acting = behaviour((0, 1, 2, 3), periods=(1,))._replace(dial=np.ones(4, bool))
    collector = ParallelCollector(Deadlocked(4), acting, repeated(policy_of(ONE).weights, 4), chunk=8, groups=2)
    with pytest.raises(LowgearError, match=r"^2 environments hang$"):
        collector.collect()
    collector.close()
