"""`lowgear study`: a table or figure of the paper, from training to table."""

from pathlib import Path
from typing import Any

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.completion import study_names, task_names
from lowgear.commands.options import (
    env_timeout_option,
    gears_option,
    list_option,
    recipe_option,
    set_option,
    steps_option,
    track_option,
)


@click.command()
@click.argument("name", metavar="NAME", shell_complete=study_names)
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=task_names)
@list_option(
    "--seeds",
    lists.integers,
    "One agent of each kind for each: 0-4 or 0,2,7.",
    metavar=None,
    default="0-4",
    show_default=True,
)
@steps_option
@recipe_option
@click.option("--episodes", default=200, show_default=True, help="Episodes of each agent when it is evaluated.")
@gears_option
@set_option
@list_option("--cost-coefficients", lists.numbers, "As `lowgear train` takes them.  [default: the paper's]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("studies"),
    show_default=True,
    help="Runs and tables of all studies.",
)
@track_option("none", each_run=True)
@env_timeout_option
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it would take.")
def study(
    name: str, tasks: tuple[str, ...], out: Path, dry_run: bool, assignments: tuple[str, ...], **options: Any
) -> None:
    """Carry out the study NAME on each TASK, or on the paper's tasks.

    \b
      performance       small-only, large-only, asymmetric: the paper's main table
      distillation      against fit, behaviour cloning, GAIL and DAgger
      expert-data       GAIL, behaviour cloning and DAgger with 25, 50 and 200 episodes
      cost-term         without the cost term
      shared-buffer     with a buffer for each gear
      two-large         with two large gears
      cost-coefficient  score and share of large against the cost coefficient
      period            score and share of large against the period
      sizes             the paper's procedure for the gears' widths, with its reasoning

    Every agent that one program can hold trains in one population. Runs are kept and shared between studies: what
    exists is not repeated, and a study that was stopped goes on. What fails is left out, and named below the table
    (exit code 2); the rest goes on. The table goes to OUT/NAME as CSV, Markdown, LaTeX and
    JSON, beside the paper's figures.

    \b
      lowgear study performance cartpole-swingup --seeds 0-1 --steps 20000 --episodes 10
      lowgear study sizes --dry-run
    """
    from rich.console import Console

    from lowgear.config import settings
    from lowgear.config.tasks import find
    from lowgear.report.terminal import print_table
    from lowgear.studies import catalogue, table
    from lowgear.studies.plan import print_plan
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.setup import Setup

    chosen = catalogue.find(name)
    if options["episodes"] < 1:
        raise LowgearError(f"--episodes {options['episodes']}: write 1 or more")
    setup = Setup(**options, overrides=settings.from_assignments(assignments))
    named = [find(task) for task in tasks or chosen.tasks]
    groups = [group for task in named for group in chosen.groups(setup, task)]
    errors = Console(stderr=True)
    display = StudyDisplay(errors)
    store = RunStore(out, display.listeners, display.progress)
    print_plan(Console() if dry_run else errors, store, groups, chosen.later)
    if dry_run:
        return
    try:
        rows, remarks = catalogue.carry_out(chosen, named, setup, store)
    except KeyboardInterrupt:
        display.close()
        click.echo("stopped; the same command goes on from here", err=True)
        raise
    finally:
        display.close()
    console = Console()
    console.print(f"\n{chosen.title}")
    for shown in table.terminal(rows):
        print_table(shown, console)
    for remark in remarks:
        click.echo(remark)
    for path in catalogue.write(chosen, rows, remarks, setup, out / name):
        click.echo(str(path), err=True)
    if store.failures:
        raise LowgearError(
            f"the table is without {len(store.failures)} that failed, named below it; mend and run it again"
        )
