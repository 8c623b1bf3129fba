"""While agents train: each episode of a dial agent at one position, and picks that hold for their own periods."""

import numpy as np
import pytest

from lowgear.policy.controller import Controller
from tests.fixtures.collecting import collect, collector_of, gather
from tests.fixtures.weights import controller_of, small_weights

PERIODS, GEARS = (1, 3, 5), 2


@pytest.fixture
def shown(monkeypatch):
    """The positions (P, 1) that masters are asked with, call by call."""
    seen = []
    plain = Controller.values

    def values(self, observation):
        seen.append(None if self.position is None else self.position.copy())
        return plain(self, observation)

    monkeypatch.setattr(Controller, "values", values)
    return seen


def dial_collector(lengths, seeds, turns=None, **options):
    return collector_of(lengths, seeds, dial=np.array([True] * len(seeds) if turns is None else turns), **options)


def test_each_episode_has_one_position_and_the_next_another(shown):
    collector = dial_collector([4, 6, 50], [0, 1, 2], turns=[True, False, True], periods=(1,))
    for _ in range(3):  # episodes go on from one chunk to the next
        gather(collector, 8)
    positions = np.array(shown)[:, :, 0]
    assert positions.shape == (24, 3)  # the master is asked at every step
    episodes = positions[:, 0].reshape(6, 4)
    assert (episodes == episodes[:, :1]).all()
    assert len(set(episodes[:, 0])) == 6
    assert (positions[:, 1] == 0).all()  # an agent of one coefficient stands in the middle
    assert len(set(positions[:, 2])) == 1  # its episode has not ended yet
    assert (np.abs(positions) <= 1).all()


def test_without_dials_the_master_sees_the_observation_alone(shown):
    gather(collector_of([4], [0]), 16)
    assert shown
    assert all(position is None for position in shown)


def test_a_restart_turns_the_dials_anew_each_number_to_its_own_position():
    collector = dial_collector([50, 50], [3, 4], turns=[True, False])
    positions = []
    for number in range(400):
        collector.restart(number)
        positions.append(collector.controller.position[:, 0].copy())
    positions = np.array(positions)
    assert (positions[:, 1] == 0).all()
    turned = positions[:, 0]
    assert len(set(turned)) == 400
    # Uniform from -1 to 1: the standard error of the mean is 0.029.
    assert abs(turned.mean()) < 0.12
    assert turned.std() == pytest.approx(3**-0.5, abs=0.06)
    assert -1 <= turned.min() < -0.95
    assert 0.95 < turned.max() <= 1


def test_positions_within_a_run_cover_the_dial(shown):
    gather(dial_collector([1, 1], [0, 1], periods=(1,)), 400)
    for turned in np.array(shown)[:, :, 0].T:
        assert len(set(turned)) == 400
        assert abs(turned.mean()) < 0.12
        assert turned.std() == pytest.approx(3**-0.5, abs=0.06)


def test_an_agent_acts_the_same_alone_and_in_company(shown):
    options = {"periods": PERIODS, "explore_steps": 40.0}
    _, company, _ = collect([9, 9, 9], [5, 6, 7], 3, dial=np.array([True, False, True]), **options)
    together = [position[0, 0] for position in shown]
    shown.clear()
    _, alone, _ = collect([9], [5], 3, dial=np.array([True]), **options)
    np.testing.assert_array_equal(company[0], alone[0])
    assert {position[0, 0] for position in shown} == set(together)


def test_a_collector_goes_on_from_a_restart_as_one_that_never_stopped():
    options = {"periods": PERIODS, "explore_steps": 60.0}
    whole = dial_collector([7, 30], [3, 4], **options)
    for _ in range(2):
        gather(whole, 16)
    resumed = dial_collector([7, 30], [3, 4], **options)
    resumed.steps = whole.steps
    for collector in (whole, resumed):
        collector.restart(1)
    np.testing.assert_array_equal(whole.controller.position, resumed.controller.position)
    for _ in range(2):
        one, two = (gather(collector, 16) for collector in (whole, resumed))
        np.testing.assert_array_equal(one[0], two[0])
        assert one[1] == two[1]
        np.testing.assert_array_equal(whole.controller.position, resumed.controller.position)


def test_picks_hold_for_the_periods_they_carry_and_every_choice_is_tried():
    columns, rows, _ = collect([1000, 7], [0, 1], 30, periods=PERIODS, explore_steps=1e9)
    tried = []
    for agent, length in zip(rows, (1000, 7), strict=True):
        choice, age = agent[:, columns.choice].astype(int), agent[:, columns.age].astype(int)
        ended = (np.arange(len(agent)) + 1) % length == 0
        full = age == np.array(PERIODS)[choice // GEARS]
        np.testing.assert_array_equal(agent[:, columns.closed] == 1, full | ended)
        begins = np.concatenate([[True], (full | ended)[:-1]])
        np.testing.assert_array_equal(age == 1, begins)
        np.testing.assert_array_equal(age[1:][~begins[1:]], age[:-1][~begins[1:]] + 1)
        np.testing.assert_array_equal(choice[1:][~begins[1:]], choice[:-1][~begins[1:]])
        tried.append(np.bincount(choice[begins], minlength=GEARS * len(PERIODS)))
    # About 160 picks of the first agent, all of its six choices alike.
    assert (tried[0] > 10).all()
    assert (tried[1] > 10).all()
    assert (rows[1][:, columns.age] < 5).any()


def test_a_greedy_master_takes_its_best_choice_of_all():
    columns, rows, _ = collect([1000], [0], 2, periods=PERIODS)
    weights = small_weights(1, np.random.default_rng(0), periods=len(PERIODS))
    begins = np.flatnonzero(rows[0][:, columns.age] == 1)
    seen = rows[0][begins][:, columns.observation]
    best = controller_of(weights, len(seen), periods=PERIODS).values(seen[None])[0].argmax(axis=-1)
    np.testing.assert_array_equal(rows[0][begins, columns.choice], best)


def test_a_forced_gear_shares_the_population_with_masters_of_many_choices():
    columns, rows, episodes = collect([7, 7, 9], [0, 1, 2], 2, forced=[0, 1, -1], periods=PERIODS, explore_steps=1e9)
    assert (rows[0][:, columns.choice] == 0).all()
    assert (rows[1][:, columns.choice] == 1).all()
    assert len(set(rows[2][:, columns.choice])) > 2
    assert {e.large_share for e in episodes if e.agent == 1} == {1.0}


def test_the_share_of_the_large_gear_counts_gears_not_choices():
    columns, rows, episodes = collect([16], [0], 4, gears=3, periods=PERIODS, explore_steps=1e9)
    gear = rows[0].reshape(4, 16, -1)[..., columns.choice] % 3
    assert [e.large_share for e in episodes] == (gear == 2).mean(axis=1).tolist()
    assert set(gear.ravel()) == {0, 1, 2}
