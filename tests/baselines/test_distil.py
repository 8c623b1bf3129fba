"""Students of a policy that is there already."""

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines.clone import CloneSettings
from lowgear.baselines.distil import DistilSettings, distil, flops_of, widths_for
from lowgear.config.gears import freeze
from lowgear.evaluation.evaluate import play_policies
from lowgear.policy.controller import Controller
from tests.fixtures.teachers import teacher, valley


def test_widths_cost_a_tenth_of_the_policy_at_most():
    large = freeze(teacher(units=64)).read
    most = large.header.cost.gear_flops[0]
    assert most == 2 * (2 * 64 + 64 * 64 + 2 * 64) + 3
    assert widths_for(large) == (8, 16)
    assert flops_of(large, 16) <= most / 10 < flops_of(large, 32)
    assert widths_for(freeze(teacher(units=9)).read) == (8,)  # nothing is cheap enough, so the narrowest
    with pytest.raises(LowgearError, match="nothing is left to slim"):
        widths_for(freeze(teacher(units=8)).read)


def test_students_do_what_the_policy_does():
    large = freeze(teacher(obs_dim=1, units=16, seed=3, task="valley")).read  # whose actions go from 0.6 to -0.9
    settings = DistilSettings(800, 2, CloneSettings(1e-2, 64, updates=6_000, held_out=0.1, anneal=True, normalise=True))
    rounds = []
    students = distil(large, 8, [0, 1], valley, 1, settings, lambda done, of: rounds.append((done, of)))
    assert rounds == [(1, 2), (2, 2)]
    seen = np.linspace(-1, 1, 21, dtype=np.float32)[None, :, None]
    wanted = Controller.from_policies([large]).act_with(0, seen)
    for student in students:
        assert student.header.cost.gear_flops == (flops_of(large, 8),)
        assert (student.header.gears[0].kind, student.header.forced_gear) == ("frozen", 0)
        assert np.abs(Controller.from_policies([student]).act_with(0, seen) - wanted).mean() < 0.05
    assert not np.array_equal(*(student.weights.gears[0][0][0] for student in students))
    returns = [play_policies([policy], valley, 16, "greedy", 0).returns.mean() for policy in (large, *students)]
    assert returns[1:] == pytest.approx([returns[0]] * 2, rel=0.05)
