"""`lowgear study`: a table or figure of the paper, from training to table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c, lists
from lowgear.commands.completion import study_names, task_names
from lowgear.commands.executors import NAMES, Place, executor_options
from lowgear.commands.options import (
    env_timeout_option,
    gears_option,
    list_option,
    recipe_option,
    set_option,
    steps_option,
    track_option,
)
from lowgear.commands.study_status import status

if TYPE_CHECKING:
    from lowgear.config.tasks import Task
    from lowgear.studies.catalogue import Study
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.rows import TableRow
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.setup import Setup


class _WithStatus(click.Command):
    """`status` in the place of a study's name is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Of the one or the other."""
        if args[:1] == ["status"]:
            return status.make_context(f"{info_name} status", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_WithStatus)
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
@list_option("--cost-coefficients", lists.numbers, "As `lowgear train` takes them.  [default: as there]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("studies"),
    show_default=True,
    help="Runs and tables of all studies.",
)
@track_option("none", each_run=True)
@executor_options
@click.option(
    "--population",
    type=int,
    metavar="N",
    help="Agents of one program at most, for more and shorter programs.  [default: all that it can hold]",
)
@env_timeout_option
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it would take.")
@list_option("--machines", lists.integers, "With --dry-run, on so many machines: 1,8,64.")
@click.option(
    "--speeds",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --dry-run, on machines with these throughputs, from `lowgear bench train --json`.  [default: this one]",
)
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
      rivals            beside fit, DAgger students, pruned and int8 policies, by FLOPs, bytes, time
      sizes             the paper's procedure for the gears' widths, with its reasoning

    Every agent that one program can hold trains in one population. Runs are kept and shared between studies: what
    exists is not repeated, and a study that was stopped goes on. What fails is left out, and named below the table
    (exit code 2); the rest goes on. The table goes to OUT/NAME as CSV, Markdown, LaTeX and
    JSON, beside the paper's figures.

    Runs are trained one after the other, or several at once: on this machine (--jobs), or on a Ray cluster (--ray).
    `lowgear study status OUT` shows from another terminal where it stands.

    \b
      lowgear study performance cartpole-swingup --seeds 0-1 --steps 20000 --episodes 10
      lowgear study sizes --dry-run
      lowgear study performance --ray 10.0.0.1:6379 --storage s3://bucket/runs
    """
    from rich.console import Console

    from lowgear.config import settings
    from lowgear.config.tasks import find
    from lowgear.envs import sized
    from lowgear.studies import catalogue, speeds
    from lowgear.studies.plan import Estimates, print_plan
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.setup import Setup

    chosen = catalogue.find(name)
    if options["episodes"] < 1:
        raise LowgearError(f"--episodes {options['episodes']}: write 1 or more")
    place = Place(**{key: options.pop(key) for key in NAMES})
    population = options.pop("population")
    if population is not None and population < 1:
        raise LowgearError(f"--population {population}: write 1 or more")
    machines, measured = options.pop("machines"), options.pop("speeds")
    if not dry_run and (machines is not None or measured):
        raise LowgearError("--machines and --speeds are for --dry-run: add that, or leave them out")
    if machines is not None and min(machines, default=0) < 1:
        raise LowgearError(f"--machines {','.join(map(str, machines))}: write numbers of 1 or more")
    setup = Setup(**options, overrides=settings.from_assignments(assignments))
    named = [sized(find(task), options["gears"]) for task in tasks or chosen.tasks]
    groups = [group for task in named for group in chosen.groups(setup, task)]
    errors = Console(stderr=True)
    display = StudyDisplay(errors)
    store = RunStore(out, display.listeners, display.progress, place.runs, place.remote)
    store.population, store.tell = population, display.notice
    estimates = Estimates(store, speeds.read(measured) if measured else None)
    print_plan(Console() if dry_run else errors, store, groups, estimates, chosen.later, machines or (1,))
    if dry_run:
        return
    store.estimate = estimates.seconds
    with place.pool(store.runs) as (store.pool, slots):
        rows, remarks = _carry_out(chosen, named, setup, store, display, out / name, slots)
    _tell(chosen, rows, remarks, setup, out / name)
    if store.failures:
        raise LowgearError(
            f"the table is without {len(store.failures)} that failed, named below it; mend and run it again"
        )


def _carry_out(
    chosen: "Study",
    tasks: "list[Task]",
    setup: "Setup",
    store: "RunStore",
    display: "StudyDisplay",
    directory: Path,
    slots: int,
) -> "tuple[list[TableRow], list[str]]":
    """From training to rows, with a status that others can read meanwhile."""
    from lowgear.studies import catalogue
    from lowgear.studies.overview import Overview

    store.overview = overview = Overview(directory, directory.name, slots)
    overview.begin()
    if store.pool is not None:
        display.watch(overview)
    state = "failed"
    ctrl_c.will_say("stopped; the same command goes on from here")
    try:
        found = catalogue.carry_out(chosen, tasks, setup, store)
        state = "failed" if store.failures else "done"
        return found
    except (KeyboardInterrupt, SystemExit):
        state = "stopped"
        raise
    finally:
        display.close()
        overview.end(state)


def _tell(chosen: "Study", rows: "list[TableRow]", remarks: list[str], setup: "Setup", directory: Path) -> None:
    """The table, on the terminal and in files."""
    from rich.console import Console

    from lowgear.report.terminal import print_table
    from lowgear.studies import catalogue, table

    console = Console()
    console.print(f"\n{chosen.title}")
    for shown in table.terminal(rows):
        print_table(shown, console)
    for remark in remarks:
        click.echo(remark)
    for path in catalogue.write(chosen, rows, remarks, setup, directory):
        click.echo(str(path), err=True)
