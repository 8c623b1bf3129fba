"""What a figure shows, described once: Matplotlib draws it for print, the page's script on the screen.

A module of the report that has a figure builds a `Figure` from its numbers. `matplotlib_figure.py` and
`assets/chart.js` draw any of them, and neither knows what they are about.
"""

import math
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from PIL import Image

from lowgear.report.style import Style

Numbers = tuple[float, ...]
MARGIN = 1.25  # inches above and below the rows of a stacked figure
FAR = 1e-9  # of the farthest value: the least knee of an axis
LABEL_WIDE, LABEL_HIGH = 0.13, 0.05  # shares of the axes that a point's label takes


@dataclass(frozen=True)
class Axis:
    """One direction of a chart."""

    label: str
    low: float
    high: float
    log: bool = False
    format: str = "number"  # of its ticks: number, percent (of 1) or steps
    ticks: Numbers = ()  # none: the renderer's choice
    name: str = "{}"  # how the page names one of its values
    knee: float = 0.0  # above 0: even steps within it and those of the logarithm beyond, on both sides of 0

    def share(self, value: float) -> float:
        """Where a value lies along it: 0 at the low end, 1 at the high one."""
        here, low, high = map(self._even, (value, self.low, self.high))
        return (here - low) / (high - low)

    def _even(self, value: float) -> float:
        """On a scale whose steps are those of the axis."""
        return math.log(value) if self.log else math.asinh(value / self.knee) if self.knee else value


class TopAxis(NamedTuple):
    """A second reading of the horizontal axis, above, as a percentage."""

    label: str
    factor: float  # from values of the axis to fractions of 1


@dataclass(frozen=True)
class Series:
    """Points of one style, with what connects, surrounds and names them."""

    x: Numbers  # none: the middles of steps 0, 1, 2, …
    y: Numbers  # none: an entry of the legend alone
    style: Style
    label: str = ""  # in the legend
    line: str = ""  # solid, dashed, dotted or dashdot
    width: float = 1.6  # of the line
    hollow: bool = False
    opacity: float = 1.0
    interval: tuple[Numbers, Numbers] | None = None  # low and high ends around each y: a band
    bars: bool = False  # the intervals are bars
    x_error: Numbers = ()  # half width of a bar around each x
    level: bool = False  # a dashed line across the chart at the height of the first point
    spans: tuple[tuple[int, int], ...] | None = None  # where the line is solid, [from, to); it is faint elsewhere
    point_labels: tuple[str, ...] = ()  # written beside the points in print
    hover: tuple[tuple[str, ...], ...] = ()  # lines that the page shows of each point under the pointer
    keys: tuple[str, ...] = ()  # names of the points that can be selected in the page
    counts: tuple[Numbers, Numbers] | None = None  # in the chart's bins: across and up


class Bar(NamedTuple):
    """A block of time."""

    start: float
    end: float
    height: float  # of 1
    colour: str


@dataclass(frozen=True)
class Chart:
    """Series over one pair of axes."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    top: TopAxis | None = None
    bins: tuple[Numbers, Numbers] | None = None  # edges of the histograms on both margins, across and up
    bars: tuple[Bar, ...] = ()
    marks: Numbers = ()  # short ticks under the bars
    inches: float = 0.0  # height of a row of a stacked figure


class Still(NamedTuple):
    """A picture above a stacked figure."""

    step: int
    picture: Image.Image
    colour: str  # of its frame


@dataclass(frozen=True)
class Figure:
    """One or more charts, side by side or stacked over one horizontal axis."""

    name: str  # of its files
    heading: str  # above it in print
    facts: str  # beside the heading
    note: str  # how to read it
    charts: tuple[Chart, ...]
    size: tuple[float, float]  # inches
    title: str = ""  # of its panel in the page
    hint: str = ""  # what only the page says before the note
    legend: bool = True  # in print
    stacked: bool = False
    stills: tuple[Still, ...] = ()


def axis(label: str, values: Iterable[float], log: bool = False, **others: Any) -> Axis:
    """An axis that holds all values, with some room at both ends."""
    low, high = min(values := list(values)), max(values)
    if log:
        room = max(high / low, 1.5) ** 0.05
        return Axis(label, low / room, high * room, log, **others)
    room = 0.07 * ((high - low) or abs(high) or 1.0)
    return Axis(label, low - room, high + room, **others)


def knee_axis(label: str, values: Iterable[float], knee: float, **others: Any) -> Axis:
    """An axis through 0 with even steps within the knee and those of the logarithm beyond; ticks at powers of ten."""
    values = list(values)
    knee = max(knee, FAR * max(map(abs, values)))
    low, high = math.asinh(min(values) / knee), math.asinh(max(values) / knee)
    room = 0.05 * ((high - low) or 1.0)
    low, high = (knee * math.sinh(end) for end in (low - room, high + room))
    first, last = math.ceil(math.log10(1.5 * knee)), math.floor(math.log10(max(-low, high)))
    sizes = [10.0**power for power in range(last, first - 1, -max(1, (last - first + 1) // 3))]
    ticks = tuple(sorted(tick for tick in (0.0, *sizes, *(-size for size in sizes)) if low <= tick <= high))
    return Axis(label, low, high, knee=knee, ticks=ticks, **others)


def score_axis(kind: str, values: Iterable[float]) -> Axis:
    """Of returns, or of success rates, which end at 0 and 1."""
    found = axis(kind, values)
    if kind != "success rate":
        return found
    return Axis(kind, max(found.low, -0.03), min(found.high, 1.03), format="percent")


def heights(series: Iterable[Series]) -> list[float]:
    """Of all points and their intervals."""
    return [value for one in series for part in (one.y, *(one.interval or ())) for value in part]


def shared_labels(texts: list[str], x: Numbers, y: Numbers, across: Axis, up: Axis) -> tuple[str, ...]:
    """One label, from the first to the last, for neighbours whose own would overlap; the others stay empty."""
    found, start = [""] * len(texts), 0
    for i in range(1, len(texts) + 1):
        if i < len(texts) and _overlap((x[start], y[start]), (x[i], y[i]), across, up):
            continue
        first, last = texts[start], texts[i - 1]
        found[(start + i - 1) // 2] = first if first == last else f"{first} to {last.split()[-1]}"
        start = i
    return tuple(found)


def to_json(described: Any) -> Any:
    """A description as plain values for the page, without what has its default."""
    if isinstance(described, tuple):
        return [to_json(item) for item in described]
    if not is_dataclass(described):
        return described
    values = {field: getattr(described, field.name) for field in fields(described)}
    return {f.name: to_json(value) for f, value in values.items() if f.default is MISSING or value != f.default}


def _overlap(one: tuple[float, float], other: tuple[float, float], across: Axis, up: Axis) -> bool:
    wide = abs(across.share(one[0]) - across.share(other[0]))
    high = abs(up.share(one[1]) - up.share(other[1]))
    return wide < LABEL_WIDE and high < LABEL_HIGH
