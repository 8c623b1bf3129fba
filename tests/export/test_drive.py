"""Whole episodes through the compiled library, in the real environment: the returns of `lowgear evaluate`."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies, starts
from lowgear.export.c_library import library_returns
from lowgear.export.check import clearest, compare, margins, require_equal
from lowgear.export.source import record_episodes
from lowgear.policy.gears import HOLD, Gear, network
from tests.fixtures.exports import compile_c
from tests.fixtures.kinds import policy_of_kind
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


def with_hold(seed):
    """Gears of one layer and of three, one that holds, and a master that uses them all.

    They push softly: a pole that swings about makes other returns of the last bit of an action.
    """
    header = replace(HEADER, gears=(HOLD, Gear("network", (4,)), network(6, 5, 4)), periods=(1, 3), known_prices=False)
    policy = policy_of_kind(header, seed, bias=0.3)
    gears = [[(weight, bias) for weight, bias in layers] for layers in policy.weights.gears]
    for layers in gears[1:]:
        layers[-1] = tuple(each * np.float32(0.2) for each in layers[-1])
    return replace(policy, weights=policy.weights._replace(gears=tuple(gears)))


@pytest.mark.parametrize("seed", [1, 6])
def test_returns_with_a_gear_that_holds_are_those_of_evaluate(seed, tmp_path, gcc):
    policy = with_hold(seed)
    library = compile_c(policy, tmp_path, gcc)
    with closing(make_env(3)) as env:
        driven = library_returns(library, env, starts(0, 3))
    played = play_policies([policy], make_env, 3, "greedy", 0, slots=3)
    shares = played.gear_steps[0].sum(axis=0) / played.lengths[0].sum()
    assert (shares > 0.05).all()
    assert played.returns[0].std() > 0
    np.testing.assert_allclose(driven, played.returns[0], rtol=1e-3)
    episodes = record_episodes(policy, make_env, 2)
    checked = require_equal(compare(library, episodes), "robot.c")
    assert checked.largest_action_error < 1e-5


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
