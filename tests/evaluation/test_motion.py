"""Decisions, repeated actions and jerk, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear.evaluation.evaluate import play, play_policies, summarise
from lowgear.policy.file import Policy
from lowgear.policy.gears import HOLD, Gear
from lowgear.policy.networks import Weights
from tests.fixtures.probes import Counting
from tests.fixtures.weights import PLAIN

RAMP = Gear("frozen", (), None, "clip", 1)  # a tenth of the step's number
HEADER = replace(PLAIN, obs_dim=2, act_dim=1, gears=(HOLD, RAMP), master_units=1, periods=(2,))


def zeros(*shape: int):
    return np.zeros((1, *shape), np.float32)


def holding() -> Policy:
    """Holds whenever it can, for two steps at a time."""
    ramp = [(np.array([[[0.0], [0.1]]], np.float32), zeros(1))]
    master = [(zeros(3, 1), zeros(1)), (zeros(1, 1), zeros(1)), (zeros(1, 2), np.array([[1, 0]], np.float32))]
    return Policy(HEADER, Weights(((), ramp), master))


def test_a_controller_that_holds() -> None:
    # Five steps: 0.0 and 0.1 of the gear that computes, which acts first, then 0.1 held three times by two picks.
    found = summarise(play([holding()], Counting([5]), 3, "greedy", 0), 0, HEADER.cost)
    assert found["decisions_mean"] == 2 + 3  # two steps computed, three picks
    assert found["repeated_share"] == 3 / 4  # an episode's first step has none before it
    assert found["jerk"] == pytest.approx(0.1 / 4)


def test_a_gear_that_always_acts() -> None:
    # Three steps of one slot, five of the other: every step a pass, every change a tenth, nothing across episodes.
    alone = replace(holding(), header=replace(HEADER, forced_gear=1))
    played = play_policies([alone], lambda count: Counting([3, 5][:count]), 4, "greedy", 0, slots=2)
    found = summarise(played, 0, HEADER.cost)
    assert found["decisions_mean"] == 4
    assert found["repeated_share"] == 0
    assert found["jerk"] == pytest.approx(0.1)
    assert played.changes is not None
    assert played.changes[0] == pytest.approx([0.2, 0.4, 0.2, 0.4])


def test_an_episode_of_one_step_has_no_motion() -> None:
    found = summarise(play([holding()], Counting([1]), 2, "greedy", 0), 0, HEADER.cost)
    assert (found["repeated_share"], found["jerk"], found["decisions_mean"]) == (0, 0, 2)
