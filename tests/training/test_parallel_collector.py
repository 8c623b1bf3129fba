"""Groups of agents that collect at once, in real processes and environments: the same rows as one group."""

import copy
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.training.algorithm import Unrepeatable
from lowgear.training.parallel_collector import ParallelCollector
from lowgear.training.setup import behaviour_of
from tests.fixtures.probes import Valley
from tests.fixtures.weights import KNOWN, random_weights

AGENTS, CHUNK = 5, 240

PARENT = """
import time
from tests.training.test_parallel_collector import make

collector = make(2)
collector.collect()
print(*(group._process.process.pid for group in collector._groups), flush=True)
time.sleep(600)
"""


def is_running(pid):
    """Whether there is such a process, and it is not merely waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def make(groups, env=None, task="gym:Pendulum-v1", environments=2):
    overrides = {"random_steps": 0, "environments": environments}
    config = resolve(find(task), seeds=range(AGENTS), steps=1000, gears=(2, 4), overrides=overrides)
    env = env or envs.make(find("envpool:Pendulum-v1"), AGENTS * environments)
    header = replace(KNOWN, obs_dim=env.spec.obs_dim, act_dim=env.spec.act_dim)
    return ParallelCollector(env, behaviour_of(config), random_weights(AGENTS, header=header), CHUNK, groups)


@pytest.fixture(scope="module")
def one():
    return history(make(1))


def history(collector):
    """What some chunks give, within which every episode ends, and after a restart, with other weights."""
    found = [collector.collect(), collector.collect(last=True)]
    collector.restart(1)
    collector.weights = collector.weights._replace(master=[(2 * w, b) for w, b in collector.weights.master])
    found.append(collector.collect())
    steps = collector.steps
    collector.close()
    return found, steps


def test_groups_change_nothing_but_the_time(one):
    collector = make(3)
    assert collector.groups == 3
    found, steps = history(collector)
    assert steps == one[1] == 3 * CHUNK  # of each agent, in both of its environments
    for (rows, episodes), (wanted, all_episodes) in zip(found, one[0], strict=True):
        np.testing.assert_array_equal(rows, wanted)
        assert [e.agent for e in episodes] == sorted(e.agent for e in episodes)
        for agent in range(AGENTS):
            assert [e for e in episodes if e.agent == agent] == [e for e in all_episodes if e.agent == agent]
    assert sum(len(episodes) for _, episodes in found) == 2 * AGENTS


def test_groups_have_processes_and_one_that_is_killed_is_told_of():
    collector = make(2)
    processes = [group._process.process for group in collector._groups]
    collector.collect()
    assert len({process.pid for process in processes} - {os.getpid()}) == 2
    assert [process.poll() for process in processes] == [None] * 2
    processes[1].kill()
    with pytest.raises(LowgearError, match=r"ended with exit code -9.*train fewer agents"):
        collector.collect()
    collector.close()
    assert [process.poll() for process in processes] == [0, -9]


@pytest.mark.slow
def test_processes_end_when_their_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        children = [int(word) for word in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(map(is_running, children))
        parent.kill()
    deadline = time.monotonic() + 60
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, children))


def test_environments_in_python_stay_one_group():
    collector = make(3, envs.wrap(Valley, AGENTS), environments=1)
    assert collector.groups == 1
    rows, _ = collector.collect()
    assert rows.shape[:3] == (AGENTS, 1, CHUNK)
    collector.close()


def test_whose_numbers_go_bad_in_a_group_is_told():
    collector, diverged = make(2), copy.deepcopy(make(1).weights)
    for gear in diverged.gears:
        gear[-1][1][AGENTS - 1] = np.nan  # of the last agent, in the second group
    collector.weights = diverged
    collector.collect()
    collector.close()
    assert list(collector.bad) == [AGENTS - 1]
    assert "was given nan as an action" in collector.bad[AGENTS - 1]
    environment = (AGENTS - 1) * collector._groups[0].rows.shape[1]  # as it would be numbered in one group
    assert f"(environment {environment}, " in collector.bad[AGENTS - 1]


def test_groups_stay_in_step_where_one_of_them_does_not_repeat_itself():
    """The other's answer is read too; else it would stand for that of the next chunk."""
    collector, fresh = make(2), make(1)
    rows, _ = fresh.collect()
    fresh.restart(1)
    wanted, _ = fresh.collect()
    rows[0, ..., collector.columns.next_observation] += 1  # of the first agent, in the first group
    with pytest.raises(Unrepeatable):
        collector.collect_again(rows)
    collector.steps = CHUNK
    collector.restart(1)
    found, _ = collector.collect()
    np.testing.assert_array_equal(found, wanted)
    for each in (collector, fresh):
        each.close()
