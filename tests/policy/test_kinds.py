"""Controllers and files with gears of every kind, against a plain loop."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear import LowgearError
from lowgear.policy.controller import Controller, any_choice, chooser
from lowgear.policy.cost import cost_model
from lowgear.policy.file import PolicyHeader, load
from lowgear.policy.gears import FROZEN_ACTIVATIONS, HOLD, Gear, network
from lowgear.policy.networks import leaves_of, stack, take, with_leaves
from tests.fixtures.kinds import ALONE, EVERY_KIND, IMPORTED, KINDS, WITH_HOLD, Loop, activate, forward, policy_of_kind
from tests.fixtures.weights import ACT, HEADER, OBS, PLAIN, assert_same, random_policy

EVERY = pytest.mark.parametrize("header", KINDS.values(), ids=KINDS)
NO_DIAL = KINDS["hold, no dial"]


def observations(steps: int, seed: int = 0, environments: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(steps, 1, environments, OBS)).astype(np.float32)


@EVERY
def test_steps_are_those_of_a_plain_loop(header: PolicyHeader) -> None:
    """Two environments whose episodes end at different times, one of which begins anew by hand."""
    used = set()
    for seed in range(4):
        policy = policy_of_kind(header, seed, bias=3.0 if header.sees_action else 0.0)
        stepped, loops = Controller.from_policies([policy], 2), [Loop(policy), Loop(policy)]
        for k, observation in enumerate(observations(60, seed, 2)):
            asked, action = stepped.pick(observation), stepped.act(observation)
            for e, loop in enumerate(loops):
                gear, expected, was_asked = loop.step(observation[0, e])
                assert (stepped.gear[0, e], asked[0, e]) == (gear, was_asked)
                np.testing.assert_allclose(action[0, e], expected, atol=2e-5)
                used.add(gear)
            ended = np.array([[k % 17 == 16, k % 23 == 22]])
            held = stepped.advance(ended)
            assert held.closed[ended].all()
            if k == 30:
                stepped.begin(np.array([[False, True]]))
                loops[1].begin()
            for e in np.flatnonzero(ended[0]):
                loops[e].begin()
    assert used == ({header.forced_gear} if header.forced_gear is not None else set(range(len(header.gears))))


@EVERY
def test_files_come_back(tmp_path: Path, header: PolicyHeader) -> None:
    policy, path = policy_of_kind(header), tmp_path / "policy.safetensors"
    policy.save(path)
    back = load(path)
    assert back.header == header
    assert back.header.format == 4
    for found, wanted in zip(leaves_of(back.weights), leaves_of(policy.weights), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert len(back.weights.clips) == len(policy.weights.clips)


def test_plain_policies_are_written_as_before_and_read_in_either_format(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    random_policy().save(path)
    header = load(path).header
    assert (header, header.format, header.to_json()["gears"]) == (HEADER, 3, [3, 5])
    path.write_bytes(pack(parse(path.read_bytes()), {"lowgear": json.dumps(HEADER.to_json() | {"format": 4})}))
    assert load(path).header == replace(HEADER, format=4)


@EVERY
def test_populations_join_split_and_travel(header: PolicyHeader) -> None:
    weights = [policy_of_kind(header, seed).weights for seed in range(3)]
    together = stack(weights)
    for agent, one in enumerate(weights):
        assert_same(take(together, agent), one)
        for found, wanted in zip(take(together, agent).clips, one.clips, strict=True):
            assert (found is None) == (wanted is None)
            if found is not None:
                np.testing.assert_array_equal(found, wanted)
    leaves = [leaf + 1 for leaf in leaves_of(together)]
    changed = with_leaves(together, leaves)
    for found, wanted in zip(leaves_of(changed), leaves, strict=True):
        assert found is wanted
    assert len(changed.clips) == len(together.clips)


def test_at_an_episodes_start_nothing_is_held_however_good_it_looks() -> None:
    policy = policy_of_kind(NO_DIAL, bias=1000.0)
    stepped = Controller.from_policies([policy], 3)
    (observation,) = observations(1, environments=3)
    values = stepped.values(observation)
    assert np.isneginf(values[..., 0]).all()
    assert np.isfinite(values[..., 1:]).all()
    for master in ("greedy", "boltzmann"):
        stepped.begin(np.ones((1, 3), bool))
        stepped.pick(observation, chooser(master, np.random.default_rng(0)))
        assert (stepped.gear > 0).all()
    first = stepped.act(observation)
    for _ in range(NO_DIAL.periods[0]):
        stepped.advance(np.zeros((1, 3), bool))
    stepped.pick(-observation)  # now it is held, for a whole period, wherever no episode ends
    assert (stepped.gear == 0).all()
    for k in range(2 * NO_DIAL.periods[0]):
        acted = stepped.act(observation * k)
        np.testing.assert_array_equal(acted[0, [0, 2]], first[0, [0, 2]])
        stepped.advance(np.array([[False, k == 1, False]]))
        stepped.pick(observation)
        assert stepped.gear[0, [0, 2]].tolist() == [0, 0]
        assert (stepped.gear[0, 1] == 0) == (k < 1 or k > NO_DIAL.periods[0])  # where one ended, another gear must act


def test_another_action_than_that_of_act_is_the_last_one() -> None:
    stepped = Controller.from_policies([policy_of_kind(NO_DIAL)])
    (observation,) = observations(1)
    stepped.pick(observation)
    stepped.act(observation)
    other = np.full((1, 1, ACT), 0.25, np.float32)
    stepped.advance(np.zeros((1, 1), bool), other)
    np.testing.assert_array_equal(stepped.act_with(0, observation), other)
    np.testing.assert_array_equal(stepped.act_with(0, observation, -other), -other)
    stepped.advance(np.ones((1, 1), bool), other)
    np.testing.assert_array_equal(stepped.act_with(0, observation), 0 * other)


def test_random_picks_are_drawn_among_those_that_are_open() -> None:
    word = np.random.default_rng(0).integers(0, 2**31, (4, 5000))
    values = np.zeros((4, 5000, 6), np.float32)
    np.testing.assert_array_equal(any_choice(word, values), word % 6)
    values[1:, :, ::3] = -np.inf
    drawn = any_choice(word, values)
    assert drawn.dtype == np.int32
    np.testing.assert_array_equal(drawn[0], word[0] % 6)
    counts = np.bincount(drawn[1:].ravel(), minlength=6)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert (abs(counts[[1, 2, 4, 5]] / 15000 - 0.25) < 0.02).all()


def test_noise_is_for_trained_gears_alone() -> None:
    policy, (observation,) = policy_of_kind(EVERY_KIND), observations(1, environments=4)
    stepped, noise = Controller.from_policies([policy], 4), np.ones((1, 4, ACT), np.float32)
    stepped.last_action = np.full((1, 4, ACT), 0.5, np.float32)
    stepped.choice = np.array([[0, 1, 2, 3]], np.int32)
    quiet, loud = stepped.act(observation), stepped.act(observation, noise)
    assert (quiet == loud).all(axis=-1).tolist() == [[True, False, False, True]]
    np.testing.assert_array_equal(quiet[0, 0], [0.5] * ACT)


@pytest.mark.parametrize("squash", ["tanh", "clip"])
@pytest.mark.parametrize("activation", FROZEN_ACTIVATIONS)
def test_every_activation_and_squash(activation: str, squash: str) -> None:
    gear = Gear("frozen", (6, 5), activation, squash, 1, True)
    policy = policy_of_kind(replace(ALONE, gears=(gear,)))
    observation = np.float32(
        [[[0.0] * OBS, [1e6] * OBS, [-1e6] * OBS, *np.random.default_rng(1).normal(size=(50, OBS))]]
    )
    found = Controller.from_policies([policy], observation.shape[1]).act(observation)
    low, high = policy.weights.clips[0]
    for seen, action in zip(observation[0], found[0], strict=True):
        mean = forward(policy.weights.gears[0], np.clip(seen, low[0], high[0]), activation)
        np.testing.assert_allclose(action, np.tanh(mean) if squash == "tanh" else np.clip(mean, -1, 1), atol=1e-5)
    assert found.dtype == np.float32
    assert len(np.unique(found)) > 10


def test_activations_do_not_overflow() -> None:
    from lowgear.policy.networks import ACTIVATE

    x = np.float32([-1e37, -100, -1, -0.0, 0, 1, 100, 1e37])
    with np.errstate(all="raise", under="ignore"):
        for name, function in ACTIVATE.items():
            found = function(x.copy())
            assert found.dtype == np.float32
            np.testing.assert_allclose(found[2:6], activate(x[2:6].astype(float), name), rtol=1e-6)
            assert np.isfinite(found).all()


def test_hold_is_free_and_prices_are_those_of_the_cheapest_that_computes() -> None:
    plain, free = (cost_model(3, 2, gears, 5, periods=2) for gears in ((4, 8), (HOLD, network(4), network(8))))
    assert free.gear_flops == (0, *plain.gear_flops)
    assert free.gear_costs == (0.0, *plain.gear_costs)
    assert free.pick_flops == 2 * ((3 + 2) * 5 + 5 * 5 + 5 * 6)  # its master sees the last action, and has a gear more
    assert free.flops(np.array([0.5, 0.5, 0]), 0) == plain.gear_flops[0] / 2
    tariff = free.tariff((1, 4), 0.9)
    assert tariff[0] > tariff[3] == 0  # held for longer it is the cheapest of all: there are fewer picks to pay
    assert all(cost > 0 for cost in (*tariff[:3], *tariff[4:]))
    assert ALONE.cost.pick_flops == 0
    assert ALONE.cost.reduction(ALONE.cost.gear_flops[0]) == 0
    assert WITH_HOLD.master_inputs == OBS + ACT + 1


@pytest.mark.parametrize(
    ("header", "changes", "says"),
    [
        (WITH_HOLD, {"format": 3}, "a width in gears is 'hold'"),
        (WITH_HOLD, {"gears": [3, "hold", 5]}, "hold is the cheapest and comes first, once"),
        (WITH_HOLD, {"gears": ["hold"]}, "one besides hold must act"),
        (WITH_HOLD, {"forced_gear": 0, "variant": "mine"}, "forced_gear is 0, which only repeats"),
        (WITH_HOLD, {"variant": "small-only"}, "forced_gear is None, but small-only acts with gear 1"),
        (WITH_HOLD, {"master_units": 0}, "master_units is 0, not a whole number from 1"),
        (WITH_HOLD, {"gears": ["hold", 3, {"kind": "frozen"}]}, "it has no activation"),
        (ALONE, {"forced_gear": None}, "there is one gear, and no master that picks"),
        (ALONE, {"master_units": 3}, "master_units is 3, not a whole number from 0 to 0"),
        (ALONE, {"dial": [0.0, 0.0]}, "dial is there, which only a policy with a master can have"),
        (ALONE, {"variant": "asymmetric"}, "forced_gear is 0, but the master of asymmetric picks"),
        (ALONE, {"format": 3}, "gears is a list of 1, not a list of 2 to 64"),
    ],
)
def test_headers_that_cannot_be_right(tmp_path: Path, header: PolicyHeader, changes: dict[str, Any], says: str) -> None:
    path = tmp_path / "policy.safetensors"
    policy_of_kind(header).save(path)
    path.write_bytes(pack(parse(path.read_bytes()), {"lowgear": json.dumps(header.to_json() | changes)}))
    with pytest.raises(LowgearError) as caught:
        load(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("gear0.low", [9.0] * OBS, "gear0.low is above gear0.high somewhere"),
        ("gear0.low", [float("-inf")] * OBS, "gear0.low holds values that are not finite"),
        ("gear0.high", [1.0], "gear0.high should be float32 (4,) but is float32 (1,)"),
        ("gear0.high", None, "gear0.high should be float32 (4,) but is missing"),
        ("gear0.2.weight", [[3e38] * ACT] * 3, "the weights of gear0 are so large that sums overflow"),
        ("master.0.weight", [[1.0]], "a tensor that its header does not name: 'master.0.weight'"),
    ],
)
def test_tensors_that_cannot_be_right(tmp_path: Path, name: str, values: Any, says: str) -> None:
    path = tmp_path / "policy.safetensors"
    policy_of_kind(ALONE).save(path)
    tensors = {key: value for key, value in parse(path.read_bytes()).items() if key != name or values is not None}
    if values is not None:
        tensors[name] = np.float32(values)
    path.write_bytes(pack(tensors, {"lowgear": json.dumps(ALONE.to_json())}))
    with pytest.raises(LowgearError) as caught:
        load(path)
    assert says in str(caught.value)


def test_policies_of_other_kinds_do_not_mix() -> None:
    one, other = policy_of_kind(NO_DIAL), random_policy(replace(PLAIN, gears=(2, 3, 5)))
    with pytest.raises(LowgearError, match=r"do not mix: gears \(hold, 3, 5\) and \(2, 3, 5\)$"):
        Controller.from_policies([one, other])
    assert IMPORTED.clips
