"""Whole episodes through the compiled library, in the real environment: the returns of `lowgear evaluate`."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies
from lowgear.export.c_format import build_library, c_files
from lowgear.export.c_library import drive
from lowgear.export.episode import clearest, record
from tests.fixtures.policies import FORMS, HEADER, policy_of


def make_env(count):
    return envs.make(find("cartpole-swingup"), count)


@pytest.mark.parametrize("form", ["dial", "three gears"])
def test_returns_are_those_of_evaluate(form, tmp_path, gcc):
    policy = policy_of(FORMS[form])
    episodes = record(policy, make_env, 2, 0)
    library = build_library(c_files(policy, "robot", "float32", episodes), "robot", policy, tmp_path, gcc)
    played = play_policies([policy], make_env, 3, "greedy", 0, slots=2)
    driven = drive(library, policy, make_env, 3, 2, 0)
    assert played.returns[0].std() > 0  # starts differ, so equal returns mean something
    np.testing.assert_allclose(driven, played.returns[0], rtol=1e-3)
    np.testing.assert_allclose([episode.total for episode in episodes], played.returns[0][:2], rtol=1e-5)


def test_stored_episodes_are_whole_and_consistent():
    policy = policy_of(HEADER)
    episodes = record(policy, make_env, 2, 0)
    for episode in episodes:
        assert episode.observation.shape == (1000, 5)
        assert episode.due[0]
        assert (episode.due == (episode.left == 0)).all()
        assert (episode.gear == episode.choice % 2).all()
        periods = np.array(policy.header.periods)[episode.choice // 2]
        starts = np.flatnonzero(episode.due)
        assert (np.diff(starts) == periods[starts[:-1]]).all()
        assert np.isfinite(episode.margin[episode.due]).all()
    best = max(episodes, key=lambda episode: episode.margin.min())
    assert clearest(episodes).margin.min() == best.margin.min()
    margin = best.margin.copy()
    margin[500] = 1e-6
    cut = clearest([replace(best, margin=margin)])
    assert len(cut.observation) == len(cut.action) == len(cut.gear) == 500  # what follows depends on rounding
