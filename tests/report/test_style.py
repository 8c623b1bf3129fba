"""Colours: one meaning each, told apart by everyone, seen on their ground."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from lowgear.policy.arrays import DoubleArray
from lowgear.policy.gears import gears_of
from lowgear.report import style
from lowgear.report.style import COLOURS, MARKERS, gear_name, gear_on_dark, gear_style, variant_style

GROUNDS = {0: "#FFFFFF", 1: "#181C21"}  # of the page's panels
# Machado, Oliveira and Fernandes (2009), severity 1.
SEEN_BY = {
    "all": np.eye(3),
    "protanopes": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopes": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritanopes": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def linear(colour: str) -> DoubleArray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(light: DoubleArray) -> DoubleArray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ light / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_a_gear_and_the_agents_that_run_it_alone_have_one_colour() -> None:
    two, three, four = (gears_of(gears) for gears in ((8, 64), (8, 16, 64), ("hold", 8, 16, 64)))
    small, large = (variant_style(name).colour for name in ("small-only", "large-only"))
    assert gear_style(0, two).colour == gear_style(0, three).colour == gear_style(1, four).colour == small
    assert gear_style(1, two).colour == gear_style(2, three).colour == gear_style(3, four).colour == large
    assert gear_style(1, gears_of(("hold", 8))).colour == large
    gears = {gear_style(gear, four).colour for gear in range(4)}
    assert len(gears) == 4
    assert [gear_name(gear, four) for gear in range(4)] == ["hold", "small gear", "gear 2", "large gear"]
    others = {variant_style(name).colour for name in MARKERS if not name.endswith("-only")}
    assert not others & gears
    assert gear_on_dark(0, two) == COLOURS["small"][1]


@pytest.mark.parametrize("theme", GROUNDS)
def test_colours_stand_out_from_their_ground(theme: int) -> None:
    for colours in COLOURS.values():
        low, high = sorted([luminance(colours[theme]), luminance(GROUNDS[theme])])
        assert (high + 0.05) / (low + 0.05) >= 3, colours


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("eye", SEEN_BY)
def test_the_colour_blind_can_tell_gears_and_variants_apart(theme: int, eye: str) -> None:
    seen = {name: lab(np.clip(SEEN_BY[eye] @ linear(COLOURS[name][theme]), 1e-4, 1)) for name in COLOURS}
    together = ("hold", "small", "between", "large"), ("small", "large", "asymmetric", "fixed-cost", "no-cost")
    for one, other in itertools.chain(*(itertools.combinations(names, 2) for names in together)):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


def test_no_other_module_chooses_a_colour_for_a_controller() -> None:
    room = Path(style.__file__).parent
    known = {colour.lower() for colours in COLOURS.values() for colour in colours}
    for path in [*room.glob("*.py"), *room.glob("assets/*")]:
        if path.name != "style.py":
            named = {colour.lower() for colour in re.findall(r"#[0-9A-Fa-f]{6}", path.read_text())}
            grounds = {"#e9ecef", "#16191d"}  # letters of the page
            assert not named & (known - grounds), path
