"""How commands show what they found: JSON alone on standard output, or something to read."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

Report = TypeVar("Report")


def show(report: Report, as_json: bool, table: Callable[[Report], None]) -> None:
    """The report as JSON, or as `table` prints it."""
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        table(report)


@contextmanager
def progress_bar(description: str, total: float | None, *columns: Any) -> Iterator[Callable[..., None]]:
    """A bar on standard error, gone in the end; gives a function that updates it, as rich's `Progress.update` does."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(description, total=total)
        yield lambda **changes: progress.update(bar, **changes)
