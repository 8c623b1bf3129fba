"""Gears as a person writes them, in order of cost; frozen policies in a run's configuration and directory."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.gears import Frozen, arrange, need_sizes, parse_gears, parse_widths, read_frozen
from lowgear.config.run import RunConfig, resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task, find
from lowgear.policy.file import load
from lowgear.policy.gears import HOLD, Gear, gears_of, names, network
from tests.fixtures.kinds import ALONE, EVERY_KIND, IMPORTED, policy_of_kind

WALKER, UNSIZED = find("walker-stand"), Task("gym:Any-v0", "gym", "Any-v0")


def saved(path: Path, header=EVERY_KIND, seed: int = 0) -> Path:
    policy_of_kind(header, seed).save(path)
    return path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("8,64", (network(8), network(64))),
        (" 8 , 32, 64", (network(8), network(32), network(64))),
        ("64,64", (network(64), network(64))),  # the two-large ablation
        ("64x64x64,hold", (network(64, 64, 64), HOLD)),
        ("x64,8", (Gear("network", (64,)), network(8))),
        ("16,large.safetensors", (network(16), Path("large.safetensors"))),
        ("hold,runs/a/policies/agent0", (HOLD, Path("runs/a/policies/agent0"))),
    ],
)
def test_gears_from_text(text: str, wanted: tuple) -> None:
    assert parse_gears(text) == wanted


@pytest.mark.parametrize("text", ["64", "small,large", "8,6.4", "", "0,8", "-8,8", "8,", "hold", "8," * 70 + "8"])
def test_wrong_gears_are_refused_with_the_value(text: str) -> None:
    with pytest.raises(LowgearError, match=r"gears '.*hold,8,64x64x64") as caught:
        parse_gears(text)
    assert repr(text)[:50] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_widths_where_only_they_can_be_compared() -> None:
    assert parse_widths("64,8,16") == (8, 16, 64)
    for text in ("hold,8", "8,64x64x64", "8,large.safetensors"):
        with pytest.raises(LowgearError, match="only widths of two equal layers"):
            parse_widths(text)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((64, 8), "8,64"),
        (("64", 8, "hold"), "hold,8,64"),
        (("64x64x64", "64", "hold"), "hold,64,64x64x64"),
        # 24 observations, 6 actions: 24·40 + 40·12 against 24·16 + 16·60 + 60·12
        (("16x60", "x40"), "x40,16x60"),
        (("x90", "16x60"), "16x60,x90"),
    ],
)
def test_any_order_is_put_in_order_of_cost(given: tuple, wanted: str) -> None:
    assert names(arrange(given, WALKER)[0]) == wanted
    assert names(resolve(WALKER, gears=given).gears) == wanted


def test_sizes_are_asked_for_only_where_they_matter() -> None:
    assert not need_sizes((64, "hold", 8))
    assert names(arrange((64, "hold", 8), UNSIZED)[0]) == "hold,8,64"
    assert need_sizes((64, "16x60"))
    with pytest.raises(LowgearError, match="the sizes of gym:Any-v0"):
        arrange((64, "16x60"), UNSIZED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("hold", 8, "hold"), "gears 'hold,hold,8': hold is there twice"),
        (("hold", "hold"), "twice"),
        ((8, 8193), "no width may be above 8,192"),
        ((8, "8x9000"), "no width may be above 8,192"),
        ((8, "missing.safetensors"), "missing.safetensors: no such policy file"),
        ((8, IMPORTED), "a frozen gear needs its policy"),
        ((8, "wide"), "neither widths nor hold"),
    ],
)
def test_what_cannot_be_the_gears_of_a_run(given: tuple, message: str) -> None:
    with pytest.raises(LowgearError, match=message) as caught:
        arrange(given, WALKER)
    assert "\n" not in str(caught.value)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.safetensors")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(LowgearError, match="not a whole safetensors file"):
        arrange((8, path), WALKER)


def test_the_dearest_gear_of_a_file_is_frozen(tmp_path: Path) -> None:
    mixed, alone = saved(tmp_path / "mixed.safetensors"), saved(tmp_path / "alone.safetensors", ALONE)
    plain = saved(tmp_path / "plain.safetensors", replace(EVERY_KIND, gears=gears_of((3, 5)), activation="relu"))
    assert read_frozen(mixed).gear == read_frozen(alone).gear == IMPORTED
    assert read_frozen(plain).gear == Gear("frozen", (5, 5), "relu", source="Lowgear")
    for path, variant in ((mixed, "large-only"), (alone, "imported"), (plain, "large-only")):
        frozen, policy = read_frozen(path), load(path)
        frozen.read.save(tmp_path / "again.safetensors")
        again = load(tmp_path / "again.safetensors")
        assert (again.header.variant, again.header.task) == (variant, policy.header.task)
        assert read_frozen(tmp_path / "again.safetensors") == frozen
        for one, other in zip(again.weights.gears[0], policy.weights.gears[-1], strict=True):
            np.testing.assert_array_equal(one[0], other[0])
    assert len({read_frozen(path).digest for path in (mixed, alone, plain)}) == 3
    assert read_frozen(saved(tmp_path / "other.safetensors", seed=1)) != read_frozen(mixed)
    with pytest.raises(LowgearError, match="one policy is frozen twice"):
        arrange((8, mixed, mixed), WALKER)


def config_of(path: Path) -> RunConfig:
    return resolve(WALKER, gears=(64, path, "hold"))  # with 4 observations and 2 actions it would not train


def test_a_file_that_forces_a_gear_is_frozen_as_that_gear(tmp_path: Path) -> None:
    header = replace(EVERY_KIND, gears=gears_of((3, 5)), activation="relu", variant="small-only", forced_gear=0)
    path = saved(tmp_path / "small.safetensors", header)
    assert read_frozen(path).gear == Gear("frozen", (3, 3), "relu", source="Lowgear")
    np.testing.assert_array_equal(read_frozen(path).read.weights.gears[0][0][0], load(path).weights.gears[0][0][0])


def test_config_json_names_the_frozen_policy(tmp_path: Path) -> None:
    config = config_of(saved(tmp_path / "a.safetensors"))
    assert names(config.gears) == "hold,frozen 4x3,64"
    raw = json.loads(json.dumps(config.to_json()))
    assert raw["frozen"] == [config.frozen[0].digest]
    assert raw["gears"][::2] == ["hold", 64]
    assert RunConfig.from_json(raw) == config
    assert "frozen" not in resolve(WALKER, gears=("hold", 8)).to_json()
    for bad in ([], ["ab"], ["g" * 64], ["a" * 64, "b" * 64]):
        with pytest.raises((LowgearError, ValueError)):
            RunConfig.from_json(raw | {"frozen": bad})
    with pytest.raises(LowgearError, match="comes first"):
        RunConfig.from_json(raw | {"gears": [64, raw["gears"][1], "hold"]})
    with pytest.raises(LowgearError, match="cheapest comes first"):
        RunConfig.from_json(resolve(WALKER).to_json() | {"gears": [64, 8]})


def test_a_run_keeps_its_frozen_policy(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.safetensors")
    config, directory = config_of(path), RunDirectory(tmp_path / "run")
    directory.create(config, {})
    path.unlink()
    assert sorted(p.name for p in directory.path.iterdir()) == [
        "checkpoint",
        "config.json",
        "frozen1.safetensors",
        "policies",
    ]
    found = directory.read_config()
    assert found == config
    np.testing.assert_array_equal(
        found.frozen[0].read.weights.gears[0][0][0], policy_of_kind(EVERY_KIND).weights.gears[-1][0][0]
    )
    kept = directory.frozen(1).read_bytes()
    saved(tmp_path / "b.safetensors", ALONE, seed=5)
    directory.frozen(1).write_bytes((tmp_path / "b.safetensors").read_bytes())
    with pytest.raises(LowgearError, match=r"frozen1.safetensors is not the policy that gear 1 of this run"):
        directory.read_config()
    directory.frozen(1).unlink()
    with pytest.raises(LowgearError, match=r"frozen1.safetensors: no such policy file"):
        directory.read_config()
    (tmp_path / "elsewhere").write_bytes(kept)
    directory.frozen(1).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LowgearError, match="is a link that leads out of the run"):
        directory.read_config()


def test_digests_alone_tell_frozen_policies_apart(tmp_path: Path) -> None:
    one, other = (config_of(saved(tmp_path / f"{seed}.safetensors", seed=seed)) for seed in (0, 1))
    assert one != other
    assert one == replace(one, frozen=(Frozen(one.frozen[0].digest),))
    assert len({one, other, replace(one)}) == 2
