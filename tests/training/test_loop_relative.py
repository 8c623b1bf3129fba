"""Training with coefficients that are measured against the task's rewards, whose scale is found on the way."""

import itertools
import json
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task
from lowgear.policy.controller import Controller
from lowgear.policy.dial import Dial
from lowgear.policy.file import load
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Training
from tests.fixtures.probes import Valley
from tests.fixtures.training import SMALL, Hear, StopAt, StopsAt, policy_bytes, without_speed

VALLEY = Task("valley", "gym", "valley", gears=(2, 8))
SETTINGS = SMALL | {"scale_rewards": True, "master_units": 4, "periods": (2, 5)}


def in_another_currency(times):
    """The valley, which pays so many times as much."""

    def make():
        return gymnasium.wrappers.TransformReward(Valley(), lambda reward: times * float(reward))

    return make


def trained(times):
    """An agent of a dial and one of a fixed price, and the lines of their training."""
    config = resolve(
        VALLEY,
        steps=256,
        variants=("asymmetric", "fixed-cost"),
        overrides=SETTINGS,
        evaluate_every=128,
        evaluate_episodes=1,
    )
    make, hear = in_another_currency(times), Hear()
    training = Training(config, envs.wrap(make, config.environments), lambda count: envs.wrap(make, count))
    training.run([hear])
    training.close()
    return [training.policy(agent) for agent in range(2)], hear.lines


@pytest.fixture(scope="module")
def plain():
    return trained(1.0)


def picks(policy, coefficient):
    seen = np.random.default_rng(0).uniform(-1, 1, (1, 500, 1)).astype(np.float32)
    controller = Controller.from_policies([policy.at(coefficient)], 500)
    return controller.values(seen)[0].argmax(axis=-1)


@pytest.mark.parametrize("times", [1024.0, pytest.param(1000.0, marks=pytest.mark.slow)])
def test_rewards_in_another_unit_give_prices_in_it_and_the_same_picks(plain, times):
    (policies, lines), (others, other_lines) = plain, trained(times)
    for policy, other in zip(policies, others, strict=True):
        header, scaled = policy.header, other.header
        assert scaled.cost_unit == pytest.approx(times * header.cost_unit, rel=1e-4)
        assert scaled.cost_coefficient == pytest.approx(times * header.cost_coefficient, rel=1e-4)
        assert list(scaled.dial) == pytest.approx([times * end for end in header.dial], rel=1e-4)
        assert header.relative_coefficient == scaled.relative_coefficient == 2.0
    dial, scaled_dial = policies[0].header.dial, others[0].header.dial
    for setting, scaled_setting in zip(dial.settings(9), scaled_dial.settings(9), strict=True):
        same = picks(policies[0], setting) == picks(others[0], scaled_setting)
        # By a power of two every float is the same but for its exponent.
        assert same.mean() == 1 if times == 1024 else same.mean() > 0.95
    for line, other in zip(lines, other_lines, strict=True):
        assert line["relative_coefficient"] == other["relative_coefficient"] == 2.0
        if line["steps"] > 128:
            assert other["cost_coefficient"] == pytest.approx(times * line["cost_coefficient"], rel=1e-4)


def test_a_policy_says_what_its_prices_were_measured_in(plain, tmp_path):
    (dialled, fixed), lines = plain
    unit = dialled.header.cost_unit
    assert 0 < unit != 1
    assert list(dialled.header.dial) == pytest.approx([-unit, 10 * unit])
    assert fixed.header.dial == Dial(fixed.header.cost_coefficient, fixed.header.cost_coefficient)
    assert fixed.header.cost_coefficient == pytest.approx(2 * fixed.header.cost_unit)
    np.testing.assert_allclose(
        [*dialled.weights.tariff.low, *dialled.weights.tariff.high], dialled.header.dial, rtol=1e-6
    )
    path = tmp_path / "agent.safetensors"
    dialled.save(path)
    loaded = load(path)
    assert loaded.header == dialled.header
    seen = np.linspace(-1, 1, 20, dtype=np.float32).reshape(1, 20, 1)
    values = [Controller.from_policies([each], 20).values(seen) for each in (loaded, dialled)]
    np.testing.assert_array_equal(*values)
    # The last lines are of the policies as they stand.
    last = [line for line in lines if line["kind"] == "evaluation"][-2:]
    assert [line["cost_coefficient"] for line in last] == [each.header.cost_coefficient for each in (dialled, fixed)]


def test_where_coefficients_are_given_nothing_is_relative():
    config = resolve(VALLEY, steps=64, cost_coefficients=(0.001, 0.1), overrides=SETTINGS, evaluate_every=0)
    training, hear = Training(config, envs.wrap(Valley, 1), None), Hear()
    training.run([hear])
    training.close()
    header = training.policy(0).header
    assert (header.dial, header.cost_unit, header.relative_coefficient) == (Dial(0.001, 0.1), None, None)
    assert {(line["cost_coefficient"], line["relative_coefficient"]) for line in hear.lines} == {
        (header.cost_coefficient, None)
    }


def run(path, config, stop_at=None):
    directory = RunDirectory(path)
    if not path.exists():
        directory.create(config, {})
    training = Training(
        config, envs.wrap(Valley, config.environments), lambda count: envs.wrap(Valley, count), directory
    )
    try:
        training.run([StopAt(stop_at)] if stop_at else [])
    finally:
        training.close()
    return directory


@pytest.mark.parametrize(
    ("scale_rewards", "stops"),
    [(True, {160: False, 416: True}), (False, {416: True})],  # whether there were updates by then
)
def test_a_broken_run_ends_as_an_unbroken_one(tmp_path, scale_rewards, stops):
    """Also where it broke before the first update, when agents still act as they began."""
    config = resolve(
        VALLEY,
        steps=512,
        variants=("asymmetric", "fixed-cost", "large-only"),
        overrides=SETTINGS | {"scale_rewards": scale_rewards, "random_steps": 192, "normalise_observations": True},
        evaluate_every=256,
        evaluate_episodes=1,
        checkpoint_every=128,
    )
    whole = run(tmp_path / "whole", config)
    for stop_at, updates in stops.items():
        broken = tmp_path / f"broken{stop_at}"
        with pytest.raises(KeyboardInterrupt):
            run(broken, config, stop_at)
        assert (read_latest(RunDirectory(broken)).updates > 0) == updates
        directory = run(broken, config)
        assert policy_bytes(directory, 3) == policy_bytes(whole, 3)
        assert without_speed(directory) == without_speed(whole)
    lines = [json.loads(line) for line in whole.metrics.read_text().splitlines()]
    assert {line["relative_coefficient"] for line in lines if line["variant"] != "large-only"} == {2.0}
    assert {line["relative_coefficient"] for line in lines if line["variant"] == "large-only"} == {None}


class Frail(gymnasium.Wrapper):
    """The valley, which breaks at the 40th step where it is told to."""

    def __init__(self, breaks):
        super().__init__(Valley())
        self.breaks, self.steps = breaks, 0

    def step(self, action):
        self.steps += 1
        if self.breaks and self.steps == 40:
            raise RuntimeError("it broke")
        return super().step(action)


def frail(path, stop_at):
    """Two agents, of which the second stops after 64 steps; its lines from then on."""
    options = {"steps": 320, "seeds": (0, 1), "overrides": SETTINGS | {"random_steps": 0}}
    config = replace(resolve(VALLEY, evaluate_every=0, checkpoint_every=128, **options), log_every=32)
    directory, made = RunDirectory(path), itertools.count()
    if not path.exists():
        directory.create(config, {})
    training = Training(config, envs.wrap(lambda: Frail(next(made) == 1), 2), None, directory)
    training.run([StopsAt(training, stop_at)])
    training.close()
    return [line for line in without_speed(directory) if line["agent"] == 1 and line["steps"] > 64]


def test_an_agent_that_has_stopped_keeps_its_prices(tmp_path):
    """Also where a run goes on: what its environment gave afterwards is not looked at."""
    whole = frail(tmp_path / "whole", 320)
    assert len(whole) == 8
    assert "it broke" in whole[0]["stopped"]
    assert len({line["cost_coefficient"] for line in whole}) == 1
    frail(tmp_path / "parts", 192)
    assert frail(tmp_path / "parts", 320) == whole
    assert load(RunDirectory(tmp_path / "parts").policy(1)).header.cost_coefficient == whole[0]["cost_coefficient"]
