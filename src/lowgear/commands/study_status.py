"""`lowgear study status`: where a study stands, from any terminal."""

import time
from pathlib import Path

import click

from lowgear.commands.options import json_option

EVERY_S = 1.0


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("studies"))
@click.option("--watch", is_flag=True, help="Show it anew every second until the study is over.")
@json_option
def status(directory: Path, watch: bool, as_json: bool) -> None:
    """Show where the studies in DIR stand: programs planned, running, done and failed, and the time left.

    DIR is what `lowgear study` has as --out (by default `studies`), or one study's directory in it. A study whose
    process is gone is said to be; the same command goes on with it.

    \b
      lowgear study status studies
      lowgear study status studies/performance --watch
    """
    from rich.console import Console, Group
    from rich.live import Live

    from lowgear.studies import overview
    from lowgear.studies.overview_table import table

    found = overview.find(directory)
    if as_json:
        import json
        from dataclasses import asdict

        rows = [asdict(each) | {"dead": each.dead, "seconds_left": each.left_s} for each in found]
        click.echo(json.dumps(rows, indent=1))
        return
    console = Console()
    if not watch:
        for each in found:
            console.print(table(each), highlight=False)
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            found = overview.find(directory)
            live.update(Group(*map(table, found)), refresh=True)
            if all(each.state != "going" or each.dead for each in found):
                return
            time.sleep(EVERY_S)
