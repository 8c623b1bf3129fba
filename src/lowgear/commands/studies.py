"""`lowgear studies`: which there are, and which tables have been made."""

from pathlib import Path
from typing import Any

import click

from lowgear.commands.options import json_option
from lowgear.commands.output import show

LEAST_WIDTH = 70  # columns in which the words of the table still wrap well


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("studies"),
    show_default=True,
    help="Where `lowgear study` keeps its tables.",
)
@json_option
def studies(out: Path, as_json: bool) -> None:
    """List the studies: tables and figures of the paper that `lowgear study NAME` makes.

    With how many tasks each takes unless you name some, and the table where one has been made under OUT.

    \b
      lowgear studies
      lowgear study performance cartpole-swingup --dry-run
    """
    from lowgear.studies.catalogue import STUDIES

    rows = [
        {
            "name": name,
            "title": study.title,
            "tasks": list(study.tasks),
            "table": str(path) if (path := out / name / "table.md").is_file() else None,
        }
        for name, study in STUDIES.items()
    ]
    show(rows, as_json, _print)


def _print(rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    from lowgear.report.terminal import print_table

    made = any(row["table"] for row in rows)
    table = Table("study", "what it compares", "tasks", *(["table"] * made), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(row["name"], row["title"], str(len(row["tasks"])), *([row["table"] or ""] * made))
    print_table(table, least=LEAST_WIDTH)
    click.echo("`lowgear study NAME [TASK]... --dry-run` shows what a study would run")
