"""How the report writes numbers: in tables, beside points and along axes; minus is a minus, not a hyphen."""

import csv
import io
from collections.abc import Iterable

MISSING = "–"
MINUS = "−"
MARKUP = "\\`*_{}[]<>#|&!~$"  # letters that mean something to Markdown


def number(value: float, digits: int | None = None) -> str:
    """With as many digits as make sense, or so many."""
    return f"{value:,.{_digits(value) if digits is None else digits}f}".replace("-", MINUS)


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return MISSING if share is None else f"{share:.1%}".replace("-", MINUS)


def short(value: float) -> str:
    """Three digits, never with an exponent."""
    return f"{float(f'{value:.3g}'):.12f}".rstrip("0").rstrip(".").replace("-", MINUS)


def steps(count: float) -> str:
    """Environment steps, in thousands or millions where they are many."""
    if count >= 1e6:
        return f"{count / 1e6:.3g}M"
    return f"{count / 1000:.0f}k" if count >= 1e4 else f"{count:,.0f}"


def score(kind: str, value: float) -> str:
    """A return, or a success rate."""
    return percent(value) if kind == "success rate" else number(value)


def score_pair(kind: str, mean: float, std: float) -> str:
    """A score with its spread, both with as many digits."""
    if kind == "success rate":
        return f"{percent(mean)} ± {percent(std)}"
    return f"{number(mean)} ± {number(std, _digits(mean))}"


def score_interval(kind: str, mean: float, low: float, high: float) -> str:
    """A score with the ends of its interval."""
    shown = percent(mean) if kind == "success rate" else number(mean, _interval_digits(mean, low, high))
    return f"{shown} ({interval(kind, low, high)})"


def interval(kind: str, low: float, high: float) -> str:
    """The ends of a score's interval."""
    if kind == "success rate":
        return f"{percent(low)} to {percent(high)}"
    digits = _interval_digits((low + high) / 2, low, high)
    return f"{number(low, digits)} to {number(high, digits)}"


def _interval_digits(mean: float, low: float, high: float) -> int:
    """Enough to tell the ends apart, three after the point at most."""
    digits = _digits(mean)
    while digits < 3 and high > low and number(low, digits) == number(high, digits):
        digits += 1
    return digits


def microseconds(value: float | None) -> str:
    """Of a step; three digits."""
    return MISSING if value is None else f"{short(value)} µs"


def tick(value: float, kind: str) -> str:
    """A value of an axis: number, percent or steps."""
    if kind == "steps":
        return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
    text = f"{100 * value:.4g}%" if kind == "percent" else f"{value:,.6g}"
    return text.replace("-", MINUS) if "e" not in text else text


def count(items: int, name: str) -> str:
    """For example 2 seeds."""
    return f"{items:,} {name}" + ("" if items == 1 else "s")


def csv_text(columns: str, lines: Iterable[Iterable[object]]) -> str:
    """A table as CSV, under names with commas between them; None is empty."""
    buffer = io.StringIO()
    cells = ([_inert(cell) for cell in line] for line in lines)
    csv.writer(buffer, lineterminator="\n").writerows([columns.split(","), *cells])
    return buffer.getvalue()


def markdown_text(text: str) -> str:
    """A name within Markdown: none of its letters is markup, and none ends a cell of a table."""
    return "".join(f"\\{letter}" if letter in MARKUP else letter for letter in text)


def _inert(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
