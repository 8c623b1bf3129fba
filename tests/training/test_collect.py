"""What a population lives through while it trains: rows of its steps, and its episodes."""

import numpy as np
import pytest

from tests.fixtures.collecting import collect, collector_of, gather


def test_rows_tell_what_happened():
    columns, rows, episodes = collect([7, 12], [0, 1], 2)
    first = rows[0]  # episodes of 7 steps that end for real
    assert first[:, columns.reward].tolist()[:8] == [1, 2, 3, 4, 5, 6, 7, 1]
    assert first[:, columns.alive].tolist()[:8] == [1, 1, 1, 1, 1, 1, 0, 1]
    assert first[6, columns.next_observation].tolist() == [0, 7]  # the true last observation
    assert first[7, columns.observation].tolist() == [0, 0]  # the next episode's first
    assert (rows[1][:, columns.alive] == 1).all()  # a time limit is no end
    assert [e.episode_return for e in episodes if e.agent == 0][:2] == [28.0, 28.0]
    assert [e.length for e in episodes if e.agent == 1] == [12, 12]
    assert (np.abs(rows[..., columns.action]) <= 1).all()


def test_rows_tell_where_episodes_end_for_real_or_not():
    columns, rows, _ = collect([7, 12], [0, 1], 2)
    assert np.flatnonzero(rows[0][:, columns.ended]).tolist() == [6, 13, 20, 27]
    assert np.flatnonzero(rows[1][:, columns.ended]).tolist() == [11, 23]


def test_an_episode_succeeds_by_its_last_step_alone():
    # Episodes of 3, 5 and 7 steps: the third step is the last of one, and the fifth of another.
    _, episodes = gather(collector_of([3, 5, 7], [0, 1, 2], wins=(3, 6)), 24)
    found = {agent: [e.success for e in episodes if e.agent == agent] for agent in range(3)}
    assert found == {0: [True] * 8, 1: [False] * 4, 2: [False] * 3}
    assert {type(e.success) for e in episodes} == {bool}


def test_a_task_without_success_has_none():
    _, _, episodes = collect([7], [0], 1)
    assert [e.success for e in episodes] == [None, None]


def test_a_share_of_the_steps_is_random_and_the_others_are_what_they_were():
    columns, plain, _ = collect([40], [0], 40)
    _, mixed, _ = collect([40], [0], 40, random_share=0.3)
    changed = (plain[0][:, columns.action] != mixed[0][:, columns.action])[:, 0]
    assert abs(changed.mean() - 0.3) < 0.06  # four standard deviations of 640 steps
    strayed = mixed[0][changed, columns.action]
    assert abs(strayed.mean()) < 0.17  # uniform in [-1, 1], four standard errors
    assert abs(strayed.std() - 3**-0.5) < 0.09
    _, all_random, _ = collect([40], [0], 2, random_share=1.0)
    _, from_the_start, _ = collect([40], [0], 2, random_steps=32)
    np.testing.assert_array_equal(all_random[..., columns.action], from_the_start[..., columns.action])


def test_picks_hold_for_the_period_and_end_with_the_episode():
    columns, rows, _ = collect([7, 12], [0, 1], 2)
    assert rows[0][:14, columns.age].tolist() == [1, 2, 3, 4, 5, 1, 2] * 2
    assert rows[0][:14, columns.closed].tolist() == [0, 0, 0, 0, 1, 0, 1] * 2
    assert rows[1][:12, columns.age].tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]
    for agent in rows:
        starts = np.flatnonzero(agent[:, columns.age] == 1)
        for start, stop in zip(starts, [*starts[1:], len(agent)], strict=True):
            assert len(set(agent[start:stop, columns.choice])) == 1


def test_forced_gears_never_ask_the_master():
    columns, rows, episodes = collect([7, 7, 9], [0, 1, 2], 2, forced=[0, 1, -1])
    assert (rows[0][:, columns.choice] == 0).all()
    assert (rows[1][:, columns.choice] == 1).all()
    assert {e.large_share for e in episodes if e.agent == 0} == {0.0}
    assert {e.large_share for e in episodes if e.agent == 1} == {1.0}


def test_an_agent_acts_the_same_alone_and_in_company():
    columns, company, _ = collect([9, 9, 9], [5, 6, 7], 3, explore_steps=40.0)
    # Environment 0 of each batch sees the same observations, so agent 5 can be compared row by row.
    _, alone, _ = collect([9], [5], 3, explore_steps=40.0)
    np.testing.assert_array_equal(company[0], alone[0])
    assert not np.array_equal(company[0][:, columns.action], company[1][:, columns.action])


def test_exploration_falls_and_random_steps_are_uniform():
    columns, rows, _ = collect([1000] * 4, range(4), 40, random_steps=480, explore_steps=320.0)
    early, late = rows[:, :160, columns.choice], rows[:, 400:, columns.choice]
    assert 0.3 < early.mean() < 0.7  # ε near 1: both gears
    assert all(len(set(agent)) == 1 for agent in late[:, 100:])  # no exploration, constant greedy master
    random_actions = rows[:, :480, columns.action].ravel()
    assert abs(random_actions.mean()) < 0.1
    assert random_actions.std() == pytest.approx(3**-0.5, abs=0.05)


def test_restart_closes_the_open_pick_and_opens_new_episodes():
    collector = collector_of([50], [3])
    before = collector.env.seeds
    rows, _ = gather(collector, 8, last=True)
    assert rows[0, -1, collector.columns.closed] == rows[0, -1, collector.columns.ended] == 1
    assert not rows[0, :-1, collector.columns.ended].any()
    assert rows[0, -1, collector.columns.alive] == 1  # cut short, not ended
    collector.restart(1)
    assert collector.env.seeds != before
    rows, _ = gather(collector, 8)
    assert rows[0, 0, collector.columns.observation].tolist() == [0, 0]
    assert rows[0, 0, collector.columns.age] == 1


def test_noise_holds():
    columns, rows, _ = collect([1000] * 2, range(2), 4, random_steps=64, noise_hold=8)
    actions = rows[..., columns.action].reshape(2, -1, 8)
    assert (actions == actions[..., :1]).all()
    assert len(np.unique(actions[..., 0])) == actions[..., 0].size
