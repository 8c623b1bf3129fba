"""Whole episodes through the compiled library, in the real environment: the returns of `lowgear evaluate`."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies, starts
from lowgear.export.c_library import library_returns
from lowgear.export.check import clearest, margins
from lowgear.export.source import record_episodes
from tests.fixtures.exports import compile_c
from tests.fixtures.policies import HEADER, KINDS, policy_of


def make_env(count):
    return envs.make(find("cartpole-swingup"), count)


@pytest.mark.parametrize("kind", ["dial", "three gears"])
def test_returns_are_those_of_evaluate(kind, tmp_path, gcc):
    policy = policy_of(KINDS[kind])
    library = compile_c(policy, tmp_path, gcc)
    with closing(make_env(3)) as env:
        driven = library_returns(library, env, starts(0, 3))
    returns = play_policies([policy], make_env, 3, "greedy", 0, slots=3).returns[0]
    assert returns.std() > 0  # starts differ, so equal returns mean something
    np.testing.assert_allclose(driven, returns, rtol=1e-3)
    recorded = [episode.total for episode in record_episodes(policy, make_env, 3)]
    np.testing.assert_allclose(recorded, returns, rtol=1e-5)


def test_a_self_test_carries_the_clearest_episode():
    episodes = record_episodes(policy_of(HEADER), make_env, 2)
    best = max(episodes, key=lambda episode: margins(episode).min())
    assert (np.isfinite(margins(best)) == best.asked).all()
    assert margins(clearest(episodes)).min() == margins(best).min()
    tie = int(np.flatnonzero(best.asked)[7])
    values = best.values.copy()
    values[tie] = 1.0
    cut = clearest([replace(best, values=values)])
    assert len(cut.observation) == len(cut.action) == len(cut.gear) == tie  # what follows depends on rounding
