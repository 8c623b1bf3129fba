"""Groups of agents that collect at once: the same rows as one group, on real environments."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.training.parallel_collector import ParallelCollector
from lowgear.training.setup import behaviour_of
from tests.fixtures.probes import Valley
from tests.fixtures.weights import KNOWN, random_weights

AGENTS = 5


def make(groups, env=None, task="gym:Pendulum-v1", environments=2):
    overrides = {"random_steps": 0, "environments": environments}
    config = resolve(find(task), seeds=range(AGENTS), steps=1000, gears=(2, 4), overrides=overrides)
    env = env or envs.make(find("envpool:Pendulum-v1"), AGENTS * environments)
    header = replace(KNOWN, obs_dim=env.spec.obs_dim, act_dim=env.spec.act_dim)
    return ParallelCollector(env, behaviour_of(config), random_weights(AGENTS, header=header), groups)


@pytest.fixture(scope="module")
def one():
    return history(make(1))


def history(collector):
    """What some chunks give: a long one in which every episode ends, and after a restart."""
    found = [collector.collect(120), collector.collect(120, last=True)]
    collector.restart(1)
    collector.weights = collector.weights._replace(master=[(2 * w, b) for w, b in collector.weights.master])
    found.append(collector.collect(16))
    steps = collector.steps
    collector.close()
    return found, steps


@pytest.mark.parametrize("groups", [2, 3, 5, 9])
def test_groups_change_nothing_but_the_time(one, groups):
    collector = make(groups)
    assert collector.groups == min(groups, AGENTS)
    found, steps = history(collector)
    assert steps == one[1] == 2 * 256  # of each agent, in both of its environments
    for (rows, episodes), (wanted, all_episodes) in zip(found, one[0], strict=True):
        np.testing.assert_array_equal(rows, wanted)
        assert [e.agent for e in episodes] == sorted(e.agent for e in episodes)
        for agent in range(AGENTS):
            assert [e for e in episodes if e.agent == agent] == [e for e in all_episodes if e.agent == agent]
    assert sum(len(episodes) for _, episodes in found) == 2 * AGENTS


def test_groups_step_in_threads_of_their_own():
    collector = make(3)
    heard = set()
    for group in collector._groups:
        step = group.step
        group.step = lambda action, step=step: (heard.add(threading.get_ident()), step(action))[1]
    collector.collect(8)
    collector.close()
    assert len(heard) == 3
    assert threading.get_ident() not in heard


def test_environments_in_python_stay_one_group():
    collector = make(3, envs.wrap(Valley, AGENTS), environments=1)
    assert collector.groups == 1
    rows, _ = collector.collect(8)
    assert rows.shape[:3] == (AGENTS, 1, 8)
    collector.close()


def test_what_goes_wrong_in_a_group_is_told():
    collector = make(2)
    collector.weights = collector.weights._replace(
        gears=tuple([(w.copy(), b.copy()) for w, b in gear] for gear in collector.weights.gears)
    )
    for gear in collector.weights.gears:
        gear[-1][1][AGENTS - 1] = np.nan  # the last agent of the second group diverged
    with pytest.raises(LowgearError, match="was given nan as an action"):
        collector.collect(8)
    collector.close()
