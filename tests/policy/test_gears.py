"""Gears as text and as JSON, and which may stand together."""

import json
from typing import Any

import pytest

from lowgear import LowgearError
from lowgear.policy.cost import gear_flops, policy_flops
from lowgear.policy.fields import BadField
from lowgear.policy.gears import HOLD, Gear, check_set, forced_by, gears_of, network, parse_gear, read_gear
from tests.fixtures.kinds import IMPORTED


@pytest.mark.parametrize(
    ("text", "gear", "written", "raw"),
    [
        ("64", network(64, 64), "64", 64),
        (" 64x64 ", network(64), "64", 64),
        ("64x32", Gear("network", (64, 32)), "64x32", "64x32"),
        ("64x64x64", network(64, 64, 64), "64x64x64", "64x64x64"),
        ("x64", Gear("network", (64,)), "x64", "x64"),
        ("hold", HOLD, "hold", "hold"),
    ],
)
def test_text_and_json(text: str, gear: Gear, written: str, raw: Any) -> None:
    assert parse_gear(text) == gear
    assert (str(gear), gear.to_json()) == (written, raw)
    assert read_gear(json.loads(json.dumps(raw))) == parse_gear(str(gear)) == gear


@pytest.mark.parametrize("gear", [IMPORTED, Gear("frozen", ()), Gear("frozen", (5, 5), "silu", heads=1)])
def test_frozen_gears_are_objects(gear: Gear) -> None:
    assert read_gear(json.loads(json.dumps(gear.to_json()))) == gear


def test_descriptions() -> None:
    gears = (HOLD, network(8), network(64, 64, 64), IMPORTED, Gear("frozen", ()))
    assert list(map(str, gears)) == ["hold", "8", "64x64x64", "frozen 4x3", "frozen linear"]
    assert [gear.description for gear in gears] == [
        "the last action again",
        "8 units",
        "64x64x64 units",
        "frozen, 4x3 units, Stable-Baselines3 PPO",
        "frozen, linear",
    ]
    assert f"{gears_of((8, '64', HOLD))}" == "(8, 64, hold)"


@pytest.mark.parametrize(
    "text", ["", "wide", "64x", "xx64", "6 4", "-8", "0", "8.5", "64X64", "٦٤", "9" * 30, "x".join("1" * 17)]
)
def test_text_that_is_no_gear(text: str) -> None:
    with pytest.raises(LowgearError, match="for example 64, 64x64x64, hold") as caught:
        parse_gear(text)
    assert "\n" not in str(caught.value)


FROZEN = {
    "kind": "frozen",
    "hidden": [4],
    "activation": None,
    "squash": "tanh",
    "heads": 2,
    "clips": False,
    "source": "",
}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (True, "a width in gears is True"),
        (None, "a width in gears is None"),
        (0, "a width in gears is 0"),
        (2.0, "a width in gears is 2.0"),
        ("Hold", "gear 'Hold' is neither widths nor hold"),
        ("1048577x1", "a width in gears is 1048577"),
        ([64], "a width in gears is a list of 1"),
        (FROZEN | {"kind": "network"}, "the kind of a gear is 'network', not frozen"),
        (FROZEN | {"hidden": [4, "4"]}, "a width in gears is '4'"),
        (FROZEN | {"hidden": [4] * 17}, "hidden is a list of 17, not a list of 0 to 16"),
        (
            FROZEN | {"activation": "gelu"},
            "activation of a gear is 'gelu', not tanh or relu or elu or silu or leaky_relu",
        ),
        (FROZEN | {"squash": None}, "squash is None, not tanh or clip"),
        (FROZEN | {"heads": 3}, "heads is 3"),
        (FROZEN | {"clips": 1}, "clips is 1, not true or false"),
        (FROZEN | {"source": "a\nb"}, "source is 'a\\nb'"),
        ({"kind": "frozen"}, "it has no activation"),
    ],
)
def test_json_that_is_no_gear(raw: Any, says: str) -> None:
    with pytest.raises(BadField) as caught:
        read_gear(raw)
    assert says in str(caught.value)


def test_which_gears_stand_together() -> None:
    for gears in ((HOLD, network(3)), (network(3), network(3)), (IMPORTED,), (HOLD, IMPORTED)):
        check_set(gears)
    for gears in ((network(3), HOLD), (HOLD, HOLD, network(3))):
        with pytest.raises(BadField, match="hold is the cheapest and comes first, once"):
            check_set(gears)
    with pytest.raises(BadField, match="one besides hold must act"):
        check_set((HOLD,))


def test_variants_of_one_gear_go_by_what_computes() -> None:
    gears = (HOLD, network(3), network(5))
    assert [forced_by(variant, gears) for variant in ("small-only", "large-only", "asymmetric")] == [1, 2, None]
    assert forced_by("small-only", gears[1:]) == 0


def test_costs_follow_one_rule() -> None:
    assert gear_flops(HOLD, 3, 2) == 0
    assert gear_flops(network(4), 3, 2) == policy_flops(3, 2, 4) == 91
    assert policy_flops(3, 2, (4, 5, 6)) == 2 * (3 * 4 + 4 * 5 + 5 * 6 + 6 * 4) + 3
    assert gear_flops(Gear("frozen", (4, 4), "elu", "clip", 1), 3, 2) == 91  # frozen or trained, one head or two
