"""The picture of a frontier: whole files, and what is written in them."""

import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lowgear import LowgearError
from lowgear.config.agents import VARIANTS
from lowgear.report.frontier import draw
from lowgear.report.style import MARKERS, variant_style
from tests.fixtures.reports import BASELINES, TWO_DIALS, dial, report, row

SVG = "{http://www.w3.org/2000/svg}"


def texts(directory: Path, agents: list[dict[str, Any]], **others: Any) -> list[str]:
    """What the SVG says, after a look at both files."""
    svg, png = draw(report(agents, **others), directory)
    assert sorted(directory.iterdir()) == [png, svg]
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    assert struct.unpack(">II", data[16:24]) == (1300, 840)
    root = ElementTree.parse(svg).getroot()
    assert root.tag == SVG + "svg"
    return ["".join(text.itertext()) for text in root.iter(SVG + "text")]


def test_dials_and_baselines(tmp_path: Path) -> None:
    found = texts(tmp_path, [*TWO_DIALS, *BASELINES])
    assert "walker-stand" in found
    assert "modern recipe, 300,032 steps, 10 seeds, 20 episodes each" in found
    assert {"λ 0.001", "λ 0.01", "λ 0.1", "λ 0.005", "λ 0.05"} == {text for text in found if text[:2] == "λ "}
    assert {"asymmetric (dial)", "fixed-cost", "small-only", "large-only", "no-cost"} <= set(found)
    assert {"FLOPs per step, log scale", "share of the large gear's FLOPs", "return"} <= set(found)
    assert {"100", "200", "500", "1,000", "10%", "100%"} <= set(found)
    assert not any("not finite" in text for text in found)


def test_one_dial_alone_on_a_linear_scale(tmp_path: Path) -> None:
    found = texts(tmp_path, dial(0, {0.1: (80.0, 300.0), 0.01: (90.0, 600.0)}))
    assert {"λ 0.01", "λ 0.1", "FLOPs per step", "asymmetric (dial)"} <= set(found)
    assert "modern recipe, 300,032 steps, 1 seed, 20 episodes each" in found
    assert "λ: cost coefficient. Bars: 95% intervals over episodes." in found


def test_settings_on_the_same_place_share_a_label(tmp_path: Path) -> None:
    found = texts(tmp_path, dial(0, {0.1: (80.0, 300.0), 0.03: (80.0, 300.1), 0.01: (90.0, 600.0)}))
    assert {"λ 0.01", "λ 0.03 to 0.1"} == {text for text in found if text[:2] == "λ "}


def test_both_dial_variants_and_agents_without_one(tmp_path: Path) -> None:
    other = dial(5, {0.1: (70.0, 110.0), 0.01: (80.0, 400.0)}, "separate-buffers")
    found = texts(tmp_path, [*TWO_DIALS, *other, row(6, "separate-buffers", 0.02, 60.0, 300.0)])
    assert {"asymmetric (dial)", "separate-buffers (dial)", "separate-buffers", "λ 0.02"} <= set(found)


def test_scores_that_are_not_finite_are_skipped_and_said(tmp_path: Path) -> None:
    bad = [row(7, "fixed-cost", 0.3, math.nan, 200.0, return_ci95=math.nan)]
    found = texts(tmp_path, [*TWO_DIALS, *bad, row(8, "large-only", 0.0, math.nan, 1000.0)])
    assert any("Left out, not finite: 2 of 8 scores (agent 7, 8)." in text for text in found)
    assert "λ 0.3" not in found
    assert "large-only" not in found


def test_nothing_finite_at_all(tmp_path: Path) -> None:
    found = texts(tmp_path, dial(0, {0.1: (math.nan, 300.0), 0.01: (math.nan, 600.0)}))
    assert "no finite scores" in found


def test_success_rate_where_the_task_reports_it(tmp_path: Path) -> None:
    rates = [row(0, "asymmetric", c, -40.0, f, success_rate=r) for c, f, r in ((0.1, 100.0, 0.5), (0.01, 900.0, 1.0))]
    found = texts(tmp_path, rates)
    assert "success rate" in found
    assert "return" not in found
    assert "60%" in found


def test_a_long_name_and_intervals_wider_than_their_scores(tmp_path: Path) -> None:
    name = "gym:gymnasium_robotics/AntMaze_BigMaze_DGR-v4"
    wide = [one | {"flops_reduction_ci95": 2.0, "return_ci95": 500.0} for one in TWO_DIALS]
    assert name in texts(tmp_path, wide, task=name)


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in draw(report(TWO_DIALS), tmp_path)]
    assert [path.read_bytes() for path in draw(report(TWO_DIALS), tmp_path)] == first


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "frontier.svg").write_text("the old one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LowgearError, match="No space left"):
        draw(report(TWO_DIALS), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["frontier.svg"]
    assert (tmp_path / "frontier.svg").read_text() == "the old one"


def test_every_variant_has_a_style_of_its_own() -> None:
    assert set(MARKERS) == set(VARIANTS)
    styles = list(map(variant_style, MARKERS))
    assert len({style.colour for style in styles}) == len({style.marker for style in styles}) == len(styles)


MISSING = """
sys.modules["matplotlib"] = None
try:
    import lowgear.report.frontier
except ImportError:
    sys.exit(0)
sys.exit(1)
"""


@pytest.mark.parametrize(
    "code",
    [
        MISSING,
        "import lowgear.commands.cli, lowgear.commands.evaluate\nsys.exit('matplotlib' in sys.modules)",
        "import lowgear.report.frontier\nsys.exit('matplotlib.pyplot' in sys.modules)",
    ],
    ids=["missing", "the rest does without", "no global state"],
)
def test_matplotlib_is_an_extra(code: str) -> None:
    assert subprocess.run([sys.executable, "-c", "import sys\n" + code], check=False).returncode == 0
