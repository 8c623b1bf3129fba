"""`lowgear recipes`: every setting of the learners, and what `--set` may change."""

import click

from lowgear.commands.options import json_option

LEAST_WIDTH = 70  # columns in which the words of the last one still wrap well


@click.group()
def recipes() -> None:
    """Show the settings of the learners."""


@recipes.command()
@click.option("--task", metavar="TASK", help="With what the recipe sets for this task.")
@json_option
def show(task: str | None, as_json: bool) -> None:
    """Print every setting of both recipes.

    Any of them can be changed: `lowgear train TASK --set batch=128 --set periods=2,5`, or with a TOML file of such
    lines, `--settings my.toml`.

    \b
      lowgear recipes show
      lowgear recipes show --task Swimmer-v3
    """
    import json
    from dataclasses import asdict, fields

    from rich.table import Table

    from lowgear.config.recipes import RECIPES, Recipe, find
    from lowgear.config.tasks import find as find_task
    from lowgear.report.terminal import print_table

    name = find_task(task).name if task else ""
    chosen = {recipe: asdict(find(recipe, name)) for recipe in RECIPES}
    if as_json:
        click.echo(json.dumps(chosen, indent=2))
        return
    table = Table("setting", *chosen, "what it is", box=None, title=name or None, title_justify="left")
    for field in fields(Recipe):
        if field.name == "name":
            continue
        values = [_shown(settings[field.name]) for settings in chosen.values()]
        style = "bold" if len(set(values)) > 1 else None
        table.add_row(field.name, *values, field.metadata["doc"], style=style)
    print_table(table, least=LEAST_WIDTH)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
