"""The comparison finds what differs, counts ties apart, and lets nothing wrong be written."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.export.check import ExportedStep, compare, require_equal
from tests.fixtures.policies import STEPS, episodes_of, policy_of

TIED = [1, 1 + 1e-6, 0, 0, 0, 0]  # of six choices


class Playback:
    """Plays an episode back, as it was or altered."""

    def __init__(self, episode, alter):
        self.episode, self.alter, self.t = episode, alter, -1
        self.action = episode.policy.bounds.scale(episode.action)

    def step_from(self, state, observation):
        self.t += 1
        np.testing.assert_array_equal(observation, self.episode.observation[self.t])
        assert state.fresh == (self.t == 0)
        np.testing.assert_array_equal(state.last_action, self.episode.action[self.t - 1] if self.t else [0])
        if state.left:
            assert state.choice == self.episode.choice[self.t]
        found = ExportedStep(int(self.episode.choice[self.t]), int(self.episode.gear[self.t]), self.action[self.t])
        return self.alter(self.t, found)


def check(alter, values=None):
    (episode,) = episodes_of(policy_of(), 1)
    if values is not None:
        episode = replace(episode, values=np.broadcast_to(np.float32(values), episode.values.shape))
    return compare(Playback(episode, alter), [episode]), int(episode.due.sum())


def test_the_same_passes():
    found, picks = check(lambda _, step: step)
    assert require_equal(found, "x") == found
    assert (found.steps, found.picks, found.wrong_gears, found.ties, found.largest_action_error) == (
        STEPS,
        picks,
        0,
        0,
        0,
    )


@pytest.mark.parametrize("gap", [2e-5, -1.0, np.nan, np.inf])
def test_a_wrong_action_is_refused(gap):
    found, _ = check(lambda t, step: step._replace(action=step.action + np.float32(gap)) if t == 150 else step)
    with pytest.raises(LowgearError, match=r"does not act as the network.*nothing was written"):
        require_equal(found, "x")


def test_an_action_within_rounding_is_not():
    found, _ = check(lambda _, step: step._replace(action=step.action + np.float32(5e-6)))
    assert require_equal(found, "x").largest_action_error == pytest.approx(5e-6, rel=0.05)


def test_another_gear_is_refused():
    def shifted(t, step):
        return step._replace(choice=step.choice ^ 1, gear=step.gear ^ 1) if t == 0 else step

    found, _ = check(shifted)
    assert found.wrong_gears == 1
    with pytest.raises(LowgearError, match=f"1 of {STEPS} steps in another gear"):
        require_equal(found, "x")
    tied, _ = check(shifted, values=TIED)
    assert (tied.wrong_gears, tied.ties) == (0, 1)


def test_a_gear_that_does_not_exist_is_refused():
    found, _ = check(lambda t, step: step._replace(choice=7, gear=7) if t == 0 else step, values=TIED)
    assert found.wrong_gears == 1
    assert found.largest_action_error == np.inf
