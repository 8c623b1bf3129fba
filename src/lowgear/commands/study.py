"""`lowgear study`: a table or figure of the paper, from training to table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.options import gears_option, list_option, recipe_option, steps_option

if TYPE_CHECKING:
    from lowgear.config.run import RunConfig
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.setup import Group


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
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
@list_option("--cost-coefficients", lists.numbers, "As `lowgear train` takes them.  [default: the paper's]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("studies"),
    show_default=True,
    help="Runs and tables of all studies.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it would take.")
def study(name: str, tasks: tuple[str, ...], out: Path, dry_run: bool, **options: Any) -> None:
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
    exists is not repeated, and a study that was stopped goes on. The table goes to OUT/NAME as CSV, Markdown, LaTeX and
    JSON, beside the paper's figures.

    \b
      lowgear study performance cartpole-swingup --seeds 0-1 --steps 20000 --episodes 10
      lowgear study sizes --dry-run
    """
    from rich.console import Console

    from lowgear.config.tasks import find
    from lowgear.studies import catalogue, table
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.setup import Setup

    chosen = catalogue.find(name)
    if options["episodes"] < 1:
        raise LowgearError(f"--episodes {options['episodes']}: write 1 or more")
    setup = Setup(**options)
    named = [find(task) for task in tasks or chosen.tasks]
    groups = [group for task in named for group in chosen.groups(setup, task)]
    display = _Display(Console(stderr=True))
    store = RunStore(out, display.listeners, display.evaluating)
    _show_plan(store, groups, chosen.later)
    if dry_run:
        return
    try:
        result = catalogue.carry_out(chosen, named, setup, store)
    except KeyboardInterrupt:
        display.close()
        click.echo("stopped; the same command goes on from here", err=True)
        raise
    finally:
        display.close()
    console = Console()
    console.print(f"\n{result.title}")
    for shown in table.terminal(result.rows):
        console.print(shown)
    for remark in result.remarks:
        click.echo(remark)
    for path in catalogue.write(result, setup, out / name):
        click.echo(str(path), err=True)


def _show_plan(store: "RunStore", groups: "list[Group]", later: str) -> None:
    """Runs, steps and time, on standard error."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from lowgear.studies.estimate import Estimate

    runs = store.plan(groups)
    estimate = Estimate(store.existing())
    shown = Table("run", "gears", "agents", "steps each", "state", "about", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    times = []
    for run in runs:
        seconds = estimate.seconds(run)
        times.append(seconds)
        state = "done" if run.finished else f"at {run.steps_done:,}" if run.directory.path.exists() else "new"
        shown.add_row(
            f"{run.config.task} {run.config.recipe.name}",
            ",".join(map(str, run.config.gears)),
            str(len(run.config.agents)),
            f"{run.config.steps:,}",
            state,
            _time(seconds),
        )
    console = Console(stderr=True)
    console.print(shown, highlight=False)
    whole = None if None in times else sum(time for time in times if time is not None)
    left = sum(not run.finished for run in runs)
    console.print(
        f"{left} of {len(runs)} runs to do, about {_time(whole)} of training on this machine", highlight=False
    )
    if later:
        console.print(f"then: {later}", highlight=False)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3600:.1f} h"


class _Display:
    """One progress display at a time: a run's, or that of an evaluation."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._shown: Any = None
        self._bar: Any = None

    def listeners(self, config: "RunConfig", done: int) -> list[Any]:
        """Shows a run that begins, or goes on."""
        from lowgear.training.progress import Display

        self.close()
        gears = ",".join(map(str, config.gears))
        going = f", going on from {done:,}" if done else ""
        self._console.print(
            f"training {len(config.agents)} agents on {config.task}, gears {gears}{going}", highlight=False
        )
        self._shown = Display(config.steps, done, self._console)
        return [self._shown]

    def evaluating(self, what: str, done: int, total: int) -> None:
        """Shows how far an evaluation is."""
        from rich.progress import Progress

        if self._shown is not None:
            self.close()
        if self._bar is None:
            self._bar = Progress(console=self._console, transient=True, disable=not self._console.is_terminal)
            self._bar.start()
            self._task = self._bar.add_task(what, total=total)
        self._bar.update(self._task, description=what, completed=done, total=total)
        if done >= total:
            self.close()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._shown is not None:
            self._shown.close()
        if self._bar is not None:
            self._bar.stop()
        self._shown = self._bar = None
