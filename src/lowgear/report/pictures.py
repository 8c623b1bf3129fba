"""How every figure of the report is drawn and kept: one style, one SVG and one PNG."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lowgear.policy.files import write_whole

LAYOUT_DPI = 72  # a pixel is a point
PNG_DPI = 200
GREY = "#555555"
STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.ymargin": 0.08,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "figure.constrained_layout.h_pad": 0.03,
    "svg.fonttype": "none",
    "svg.hashsalt": "lowgear",
}


@contextmanager
def drawing() -> Iterator[None]:
    """The style that figures are made in."""
    with style.context(["default", STYLE]):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    figure = Figure(figsize=(width, height), dpi=LAYOUT_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def keep(draw: Callable[[], Figure], directory: Path, name: str) -> list[Path]:
    """Draw and write `name`.svg and `name`.png; both are ready before either is written."""
    with drawing():
        figure = draw()
        pictures = {directory / f"{name}.{kind}": render(figure, kind) for kind in ("svg", "png")}
    for path, data in pictures.items():
        write_whole(path, data)
    return list(pictures)


def render(figure: Figure, kind: str) -> bytes:
    """The figure as a file's content, the same bytes each time."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=PNG_DPI, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def name_figure(figure: Figure, task: str, facts: str) -> None:
    """What is shown, above: the task, and facts beside it."""
    figure.suptitle(task, x=0.012, ha="left", fontsize=10.5, fontweight="bold")
    figure.text(0.988, 0.985, facts, ha="right", va="top", fontsize=8.5, color=GREY)


def explain(figure: Figure, text: str) -> None:
    """How to read it, below."""
    figure.supxlabel(text, fontsize=8, color=GREY)
