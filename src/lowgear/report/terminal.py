"""Tables on a terminal: as they are where they fit, and row by row where they do not, so that no cell is ever cut."""

import os
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

UNLIMITED = 10_000  # columns


def print_table(table: Table, console: Console | None = None, row: str = "", least: int | None = None) -> None:
    """The table, or its rows as paragraphs on a console narrower than it is, or than `least` where its text may wrap.

    A paragraph begins with the first cell, after what a `row` is. What is no terminal has no width, unless COLUMNS says
    so.
    """
    console = console or Console(highlight=False)
    needed = natural_width(table, console) if least is None else least
    if not _has_width(console):
        console.width = max(console.width, needed)
    if needed <= console.width:
        console.print(table)
    else:
        for line in _paragraphs(table, row, console.width):
            console.print(line, highlight=False)


def print_text(text: str, console: Console | None = None) -> None:
    """Sentences, wrapped between words where there is a width."""
    console = console or Console(highlight=False)
    console.print(text, markup=False, highlight=False, soft_wrap=not _has_width(console))


def natural_width(table: Table, console: Console) -> int:
    """Columns that it takes when nothing is wrapped."""
    return Measurement.get(console, console.options.update(width=UNLIMITED), table).maximum


def _has_width(console: Console) -> bool:
    return console.is_terminal or "COLUMNS" in os.environ


def _paragraphs(table: Table, row_name: str, width: int) -> Iterator[Text]:
    if table.title is not None:
        yield _text(table.title)
    names = [row_name, *(_name(column) for column in table.columns[1:])]
    for row in zip(*(list(column.cells) for column in table.columns), strict=True):
        values = [_text(cell).plain for cell in row]
        yield from _packed(
            [f"{name} {value}".strip() for name, value in zip(names, values, strict=True) if value], width
        )


def _packed(items: Sequence[str], width: int) -> Iterator[Text]:
    """Items in as few lines as hold them whole, those after the first set in; one that is longer is wrapped."""
    line = Text(items[0], style="bold")
    for item in items[1:]:
        if len(line) + 2 + len(item) <= width:
            line.append(f"  {item}", style="not bold")
            continue
        yield line
        *whole, last = wrap(item, max(width - 2, 1)) or [""]
        yield from (Text(f"  {part}") for part in whole)
        line = Text(f"  {last}")
    yield line


def _name(column: Column) -> str:
    """Of a column, in one line."""
    return _text(column.header).plain.replace("-\n", "").replace("\n", " ")


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))
