"""The multiplications of an update, by hand; and that the rates are measured at all."""

import sys

import pytest

from lowgear import LowgearError
from lowgear.bench import floor, gemm
from lowgear.config.run import resolve
from lowgear.config.tasks import find


def run(variant, **overrides):
    sizes = {"batch": 10, "critic_units": 9, "master_batch": 7, "master_units": 6}
    return resolve(
        find("cartpole-swingup"), "paper", gears=(4, 8), variants=[variant], steps=64, overrides=sizes | overrides
    )


def test_one_gear_by_hand():
    # The actor's layers 3·4, 4·4, 4·4 (mean and deviation of two actions): 44. A critic's (3 + 2)·9, 9·9, 9: 135.
    target = 44 + 2 * 135  # next action, two target critics
    fit = 2 * (135 + 135 + 90)  # two critics: forward, gradient of weights, and of inputs but the first layer's
    climb = 44 + 44 + 32 + 2 * (135 + 90 + 18)  # the actor likewise; through the critics to the action alone
    assert floor.update_flops(run("small-only"), 3, 2) == 2 * 10 * (target + fit + climb) == 32_800


def test_a_master_learns_beside_its_gears():
    gears = sum(floor.update_flops(run(variant), 3, 2) for variant in ("small-only", "large-only"))
    master = 3 * 6 + 6 * 6 + 6 * 2
    by_hand = 2 * 7 * (2 * master + 2 * master + master - 3 * 6)  # two values to come, forward, both gradients
    assert floor.update_flops(run("asymmetric"), 3, 2) == gears + by_hand
    longer = floor.update_flops(run("asymmetric", periods=(2, 5), dial=True), 3, 2)
    assert longer > gears + by_hand


def test_where_prices_are_known_the_level_learns_too():
    dial = {"periods": (2, 5), "dial": True, "discount_by_step": True}
    learned, known = (run("asymmetric", **dial, known_prices=known) for known in (False, True))
    # Five passes over all products but one over the first layer's. The position is an input of the master, or of the
    # level alone, which has 32 units and one value.
    masters = 7 * 2 * (5 * (4 * 6 + 6 * 6 + 6 * 4) - 4 * 6), 7 * 2 * (5 * (3 * 6 + 6 * 6 + 6 * 4) - 3 * 6)
    level = 7 * 2 * (5 * (4 * 32 + 32 * 32 + 32) - 4 * 32)
    found = floor.update_flops(known, 3, 2) - floor.update_flops(learned, 3, 2)
    assert found == masters[1] + level - masters[0]


def test_rates_are_measured():
    assert floor.machine_rate(run("small-only"), seconds=0.05) > 1e6
    assert floor.device_rate(2, 16, batch=8, seconds=0.05) > 1e6


def test_a_measurement_that_fails_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(LowgearError, match="could not measure"):
        gemm.rate_alone(8, seconds=0.01)
