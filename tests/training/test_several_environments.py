"""Several environments for each agent: what is collected from them, and that all of it is learned from."""

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.run import resolve
from lowgear.config.tasks import Task
from lowgear.training.loop import Training
from tests.fixtures.collecting import collector_of, gather_all
from tests.fixtures.probes import Counting

TASK = Task(name="counting", source="gym", env_id="counting")


def test_rows_are_each_environments_own():
    lengths = [7, 12, 9, 30]
    found = collector_of(lengths, [0, 1], environments=2)
    rows, episodes = gather_all(found, 16)
    assert rows.shape == (2, 2, 16, found.columns.width)
    assert found.steps == 32
    for environment, length in enumerate(lengths):
        own = rows[environment // 2, environment % 2]
        np.testing.assert_array_equal(own[:, found.columns.observation.start], environment)
        assert own[:, found.columns.reward].tolist() == [t % length + 1 for t in range(16)]
        assert own[:, found.columns.ended].tolist() == [float(t % length == length - 1) for t in range(16)]
    assert sorted((e.agent, e.length) for e in episodes) == [(0, 7), (0, 7), (0, 12), (1, 9)]


def test_environments_of_an_agent_differ_and_company_changes_nothing():
    options = {"environments": 2, "explore_steps": 60.0, "random_share": 0.3, "periods": (1, 3)}
    alone = collector_of([7, 12], [5], dial=np.array([True]), **options)
    company = collector_of([7, 12, 9, 9], [5, 4], dial=np.array([True, True]), **options)
    assert len(set(company.env.seeds)) == 4
    assert company.env.seeds[:2] == alone.env.seeds
    assert len(set(company.controller.position.ravel())) == 4
    for _ in range(3):
        (mine, ended), (together, all_ended) = (gather_all(each, 16) for each in (alone, company))
        np.testing.assert_array_equal(together[0], mine[0])
        assert [episode for episode in all_ended if episode.agent == 0] == ended
        np.testing.assert_array_equal(company.controller.position[0], alone.controller.position[0])
        actions = mine[0][..., alone.columns.action]
        assert not np.array_equal(actions[0], actions[1])


def test_chunks_must_divide():
    with pytest.raises(LowgearError, match=r"3 environments.*64"):
        resolve(TASK, gears=(4, 8), cost_coefficients=(0.1,), overrides={"environments": 3})


class Generous(Counting):
    """The last environment of the first agent pays three times as much."""

    def step(self, actions):
        step = super().step(actions)
        step.reward[3] *= 3
        return step


@pytest.mark.slow
def test_a_run_with_several_environments_learns_from_all_of_them():
    config = resolve(
        TASK,
        steps=256,
        seeds=(0, 1),
        gears=(2, 3),
        cost_coefficients=(0.01, 0.1),
        evaluate_every=0,
        overrides={"environments": 4, "random_steps": 64, "critic_units": 4, "batch": 8, "master_batch": 8},
    )
    learned = []
    for env in (Counting([9] * config.environments), Generous([9] * config.environments)):
        training = Training(config, env, None)
        training.run()
        training.close()
        assert training.collector.steps == 256  # of each agent, in all its environments
        learned.append([training.policy(agent).weights.gears[1][0][0] for agent in range(2)])
    assert np.isfinite(learned).all()
    (plain, other), (generous, same) = learned
    assert not np.array_equal(plain, generous)
    np.testing.assert_array_equal(other, same)
