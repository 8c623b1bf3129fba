"""The multiplications of an update, by hand; and that the rates are measured at all."""

import sys

import pytest

from lowgear import floor
from lowgear.config import resolve
from lowgear.errors import LowgearError
from lowgear.tasks import find


def run(variant, **overrides):
    sizes = {"batch": 10, "critic_units": 5, "master_batch": 7, "master_units": 6}
    return resolve(
        find("cartpole-swingup"), "paper", gears=(4, 8), variants=[variant], steps=64, overrides=sizes | overrides
    )


def test_one_gear_by_hand():
    # The actor's layers 3·4, 4·4, 4·4 (mean and deviation of two actions): 44. A critic's (3 + 2)·5, 5·5, 5: 55.
    target = 44 + 2 * 55  # next action, two target critics
    fit = 2 * (55 + 55 + 30)  # two critics: forward, gradient of weights, and of inputs but the first layer's
    climb = 44 + 44 + 32 + 2 * (55 + 30 + 10)  # the actor likewise; through the critics to the action alone
    assert floor.update_flops(run("small-only"), 3, 2) == 2 * 10 * (target + fit + climb) == 14_880


def test_a_master_learns_beside_its_gears():
    gears = sum(floor.update_flops(run(variant), 3, 2) for variant in ("small-only", "large-only"))
    master = 3 * 6 + 6 * 6 + 6 * 2
    by_hand = 2 * 7 * (2 * master + 2 * master + master - 3 * 6)  # two values to come, forward, both gradients
    assert floor.update_flops(run("asymmetric"), 3, 2) == gears + by_hand
    longer = floor.update_flops(run("asymmetric", periods=(2, 5), dial=True), 3, 2)
    assert longer > gears + by_hand


def test_rates_are_measured():
    assert floor.machine_rate(run("small-only"), seconds=0.05) > 1e6
    assert floor.device_rate(2, 16, batch=8, seconds=0.05) > 1e6


def test_a_measurement_that_fails_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(LowgearError, match="could not measure"):
        floor.apart(8, seconds=0.01)
