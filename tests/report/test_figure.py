"""Descriptions of figures, and what Matplotlib makes of everything that they can say."""

import itertools
import json
import math
from pathlib import Path

import pytest
from PIL import Image

from lowgear.report import matplotlib_figure
from lowgear.report.figure import (
    Axis,
    Bar,
    Chart,
    Figure,
    Series,
    Still,
    TopAxis,
    axis,
    knee_axis,
    score_axis,
    shared_labels,
    to_json,
)
from lowgear.report.matplotlib_figure import save
from lowgear.report.style import Style

BLUE = Style("#0072B2", "o")


def test_an_axis_holds_its_values_with_room() -> None:
    found = axis("return", [0.0, 100.0])
    assert found.low < 0 < 100 < found.high
    logarithmic = axis("FLOPs", [10.0, 1000.0], log=True)
    assert 0 < logarithmic.low < 10 < 1000 < logarithmic.high
    through_0 = knee_axis("λ", [-0.006, 0.001, 0.06], knee=0.0006)
    assert through_0.low < -0.006 < 0.06 < through_0.high
    assert through_0.ticks == (-0.001, 0.0, 0.001, 0.01)
    assert through_0.share(through_0.low) == 0
    gaps = [through_0.share(high) - through_0.share(low) for low, high in ((-0.0006, 0), (0, 0.0006), (0.01, 0.02))]
    assert gaps[0] == pytest.approx(gaps[1])
    assert gaps[2] == pytest.approx(gaps[1] * math.log(2) / math.asinh(1), rel=0.01)
    assert all(math.isfinite(end) for end in knee_axis("λ", [-1e300, 1e-300], knee=1e-302).ticks)
    flat = axis("return", [5.0])
    assert flat.low < 5 < flat.high


def test_success_rates_end_at_0_and_1() -> None:
    found = score_axis("success rate", [0.0, 1.0])
    assert (found.low, found.high, found.format) == (-0.03, 1.03, "percent")


def test_neighbours_share_a_label_and_others_have_their_own() -> None:
    across, up = Axis("", 0, 100), Axis("", 0, 100)
    texts = ["λ 1", "λ 2", "λ 3"]
    assert shared_labels(texts, (0, 50, 100), (0, 0, 0), across, up) == ("λ 1", "λ 2", "λ 3")
    assert [text for text in shared_labels(texts, (0, 50, 51), (0, 0, 0), across, up) if text] == ["λ 1", "λ 2 to 3"]
    assert shared_labels(texts, (0, 1, 2), (0, 50, 100), across, up) == ("λ 1", "λ 2", "λ 3")


def test_json_leaves_out_what_is_as_always() -> None:
    chart = Chart(Axis("x", 0, 1), Axis("y", 0, 1, log=True), (Series((0.5,), (0.5,), BLUE, label="one"),))
    assert json.loads(json.dumps(to_json(chart))) == {
        "x": {"label": "x", "low": 0, "high": 1},
        "y": {"label": "y", "low": 0, "high": 1, "log": True},
        "series": [{"x": [0.5], "y": [0.5], "style": ["#0072B2", "o", 5.0], "label": "one"}],
    }


def everything() -> tuple[Series, ...]:
    x, y = (1.0, 2.0, 3.0), (1.0, 3.0, 2.0)
    low, high = (0.5, 2.0, 1.5), (1.5, 4.0, 2.5)
    return (
        Series(x, y, BLUE, label="band", line="dashed", interval=(low, high)),
        Series(x, y, BLUE, label="bars", interval=(low, high), bars=True, x_error=(0.1, 0.1, 0.1), hollow=True),
        Series(x, y, BLUE, label="level", line="solid", level=True),
        Series(x, y, BLUE, opacity=0.4, point_labels=("one", "", "three")),
        Series((), y, BLUE, spans=((0, 1), (2, 3))),
    )


@pytest.mark.parametrize("log", [False, True])
def test_everything_that_a_chart_can_say_is_drawn(log: bool, tmp_path: Path) -> None:
    x = Axis("across", 0.4, 4, log=log)
    chart = Chart(x, Axis("up", 0, 5, format="percent"), everything(), TopAxis("above", 0.5))
    figure = Figure("all", "a heading that is much too long for one line", "facts", "note", (chart, chart), (6, 3))
    svg, png = save(figure, tmp_path)
    text = svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")
    for said in ("across", "up", "above", "band", "bars", "level", "one", "three", "400%", "facts", "note"):
        assert f">{said}<" in text, said


def test_labels_of_points_keep_off_each_other() -> None:
    """Two series through the same points, whose labels would lie upon those of their neighbours."""
    texts = tuple(f"λ {place} to {place}" for place in range(3))
    series = Series((1.0, 1.02, 1.04), (1.0, 1.0, 1.0), BLUE, point_labels=texts)
    chart = Chart(Axis("x", 0.0, 2.0), Axis("y", 0.0, 2.0), (series, series))
    canvas = matplotlib_figure._draw(Figure("f", "f", "", "", (chart,), (6.5, 4.2)))
    labels = [text for text in canvas.axes[0].texts if text.get_visible()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) == 6
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_long_note_stays_within_the_picture() -> None:
    note = "Star: the policies' own setting, which export ships. Large marks: means, with 95% bootstrap intervals. " * 2
    canvas = matplotlib_figure._draw(
        Figure("f", "f", "", note, (Chart(Axis("x", 0, 1), Axis("y", 0, 1), ()),), (6.5, 4))
    )
    canvas.draw_without_rendering()
    box = canvas._supxlabel.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= canvas.bbox.width
    assert canvas.get_supxlabel().split() == note.split()


def test_rows_are_stacked_below_their_stills(tmp_path: Path) -> None:
    steps = Axis("step", 0, 3)
    rows = (
        Chart(steps, Axis("gear", 0, 1), (), bars=(Bar(0, 3, 0.5, "#56B4E9"),), marks=(0, 2), inches=0.4),
        Chart(steps, Axis("a1", -1, 1, ticks=(-1, 0, 1)), everything()[-1:], inches=0.6),
    )
    stills = tuple(Still(step, Image.new("RGB", (8, 8)), "#56B4E9") for step in (0, 2))
    figure = Figure("rows", "task", "", "", rows, (5, 4), stacked=True, stills=stills)
    text = save(figure, tmp_path)[0].read_text()
    assert text.count(">step<") == 1
    assert ">gear<" in text
    assert text.count("<image") == 2


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    figure = Figure("none", "task", "", "", (Chart(Axis("x", 0, 1), Axis("y", 0, 1), ()),), (3, 2))
    assert "no finite scores" in save(figure, tmp_path)[0].read_text()
