"""The comparison finds what differs, counts ties apart, and lets nothing wrong be written."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.evaluation.record import respond
from lowgear.export.c_format import c_files, run_self_test
from lowgear.export.c_library import build_library
from lowgear.export.check import LOOSEST, TOLERANCE, ExportedStep, compare, require_equal, tolerance
from lowgear.export.layers import quantise
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


SPREAD = 1e-3  # of observations around 1: what they say is in their last digits


def hardly_varying(spread=SPREAD):
    """An episode whose observations hardly vary, of a policy that normalises them in its first layers."""
    policy = policy_of()

    def normalised(layers):
        (weight, bias), *rest = layers
        return [(weight / np.float32(spread), bias - weight.sum(axis=1) / np.float32(spread)), *rest]

    weights = policy.weights
    weights = weights._replace(gears=tuple(map(normalised, weights.gears)), master=normalised(weights.master))
    noise = np.random.default_rng(0).standard_normal((STEPS, policy.header.obs_dim))
    return respond(replace(policy, weights=weights), (1 + spread * noise).astype(np.float32))


def test_rounding_of_the_network_itself_is_allowed_for(tmp_path, gcc):
    episode = hardly_varying()
    library = build_library(
        c_files(episode.policy, "robot", "float32", [episode]), "robot", episode.policy, tmp_path, gcc
    )
    found = require_equal(compare(library, [episode]), "x")
    assert TOLERANCE < found.largest_action_error < found.allowed_action_error < 0.01
    assert "0 wrong actions" in run_self_test(tmp_path, "robot", gcc)
    assert tolerance([episode]).value > TOLERANCE
    assert tolerance(episodes_of(policy_of(), 1)) == (TOLERANCE, TOLERANCE)


def test_more_than_rounding_is_refused_there_too():
    episode = hardly_varying()
    found = compare(Playback(episode, lambda _, step: step._replace(action=step.action - np.float32(0.01))), [episode])
    with pytest.raises(LowgearError, match=r"off by up to 0\.01 of half their range"):
        require_equal(found, "x")


def test_a_network_that_is_all_rounding_is_not_let_through():
    episode = hardly_varying(1e-6)
    assert tolerance([episode]) == (LOOSEST, LOOSEST)


def test_int8_keeps_what_normalises_observations():
    plain, narrow = hardly_varying(), hardly_varying().policy
    rounded = respond(quantise(narrow, "int8"), plain.observation)
    gears = [quantise(narrow, "int8").weights.gears[gear][place][0] for gear in (0, 1) for place in (0, 1)]
    whole = [narrow.weights.gears[gear][place][0] for gear in (0, 1) for place in (0, 1)]
    assert [np.array_equal(one, other) for one, other in zip(gears, whole, strict=True)] == [True, False] * 2
    same = rounded.gear == plain.gear
    assert same.mean() > 0.9
    assert np.abs(rounded.action - plain.action)[same].mean() < 0.03
