"""`lowgear completion`: what a shell needs to complete commands, options, tasks, studies and settings."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

SHELLS = ("bash", "zsh", "fish")
STUDIES = (  # of `studies.catalogue`, which takes a second to import
    "performance",
    "distillation",
    "expert-data",
    "cost-term",
    "shared-buffer",
    "two-large",
    "cost-coefficient",
    "period",
    "rivals",
    "sizes",
)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that teaches SHELL to complete `lowgear`.

    It completes commands, options, names of tasks, studies, recipes and settings, and run directories.

    \b
      lowgear completion bash >> ~/.bashrc             then open a new shell
      lowgear completion zsh >> ~/.zshrc
      lowgear completion fish > ~/.config/fish/completions/lowgear.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "lowgear", "_LOWGEAR_COMPLETE").source())


def _matching(names: Iterable[str], typed: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(typed.lower())]


def task_names(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Published tasks, and the sources of others."""
    from lowgear.config.tasks import SOURCES, published_tasks

    return _matching([*published_tasks(), *(f"{source}:" for source in SOURCES)], typed)


def study_names(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Studies of the catalogue, and the command in their place."""
    return _matching([*STUDIES, "status"], typed)


def recipe_names(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Recipes."""
    from lowgear.config.recipes import RECIPES

    return _matching(RECIPES, typed)


def assignments(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Settings of a recipe, up to the equals sign."""
    from dataclasses import fields

    from lowgear.config.recipes import Recipe

    return _matching([f"{field.name}=" for field in fields(Recipe) if field.name != "name"], typed)


def variants(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Variants, the next one after a comma."""
    from lowgear.config.agents import VARIANTS

    before, comma, last = typed.rpartition(",")
    return [CompletionItem(before + comma + name) for name in VARIANTS if name.startswith(last)]
