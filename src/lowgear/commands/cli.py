"""The command line: arguments in, one call, something printed; what a command needs is imported inside it.

That keeps `lowgear --help` fast. A LowgearError becomes one line on standard error and exit code 2.
"""

import sys
from typing import TYPE_CHECKING

import click

from lowgear import LowgearError, __version__
from lowgear.commands.bench import bench
from lowgear.commands.evaluate import evaluate
from lowgear.commands.export import export
from lowgear.commands.recipes import recipes
from lowgear.commands.report import report
from lowgear.commands.study import study
from lowgear.commands.train import train
from lowgear.commands.tune import tune

if TYPE_CHECKING:
    from lowgear.config.tasks import Task
    from lowgear.envs import EnvSpec


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lowgear")
def cli() -> None:
    """Train controllers that drop into a low gear when the road is easy.

    A tiny master network picks a gear every few steps: a small policy that costs almost nothing to run,
    or a large one that can do anything. The master pays for what it picks, so the controller keeps the
    large policy's return at a fraction of its compute.

    \b
    Start here:
      lowgear tasks                             the 16 published tasks with their presets
      lowgear tasks gym:Pendulum-v1 --gears 8,64
                                                any other environment, and what its gears cost
      lowgear train cartpole-swingup --steps 100000 --seeds 0-2
                                                three agents at once, into runs/
      lowgear evaluate runs/NAME                return, share of the large gear, FLOPs saved
      lowgear tune runs/NAME --keep-return 0.95 the cheapest setting of the dial that keeps 95%
      lowgear report runs/NAME                  figures, tables, a page with an episode to watch
      lowgear export runs/NAME --format c       the controller as C that a robot can run
      lowgear bench deploy runs/NAME            its time per step, against ONNX Runtime
      lowgear bench train walker-stand          how fast it trains here, and where the time goes
      lowgear study performance cartpole-swingup
                                                a table of the paper, from training to table
    """


@cli.command()
@click.argument("name", required=False)
@click.option("--gears", metavar="WIDTHS", help="Widths to price instead of the preset, cheapest first: 8,64.")
@click.option("--try", "try_out", is_flag=True, help="Step each task for a second with random actions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there.")
def tasks(name: str | None, gears: str | None, try_out: bool, as_json: bool) -> None:
    """Show what can be trained.

    All published tasks with their presets, or the one called NAME.

    NAME is a published task, or gym:ID, dmc:domain-task or envpool:ID for any other environment with
    Box actions.
    """
    import json

    from rich.console import Console

    from lowgear.commands import tables
    from lowgear.config.tasks import published_tasks

    if name is None and gears is not None:
        raise LowgearError(f"--gears {gears} prices one task: write `lowgear tasks NAME --gears {gears}`")
    chosen = [_find(name, gears)] if name else list(published_tasks().values())
    rows = [tables.task_row(task, _spec(task)) for task in chosen]
    if try_out:
        speeds = _try(chosen)
        rows = [row | {"steps_per_second": speed} for row, speed in zip(rows, speeds, strict=True)]
    if as_json:
        click.echo(json.dumps(rows[0] if name else rows, indent=2))
    elif name:
        tables.print_task(Console(), rows[0])
    else:
        tables.print_tasks(Console(), rows)


cli.add_command(train)
cli.add_command(evaluate)
cli.add_command(tune)
cli.add_command(export)
cli.add_command(bench)
cli.add_command(recipes)
cli.add_command(report)
cli.add_command(study)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        sys.exit(cli.main(prog_name="lowgear", standalone_mode=False))
    except LowgearError as error:
        click.echo(f"lowgear: error: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)


def _find(name: str, gears: str | None) -> "Task":
    from dataclasses import replace

    from lowgear.config.tasks import find, parse_gears

    task = find(name)
    # Other widths are no longer the published task: its figures would stand beside costs that are not theirs.
    return task if gears is None else replace(task, gears=parse_gears(gears), published=None)


def _spec(task: "Task") -> "EnvSpec | None":
    """What only the made environment can tell; a published task's sizes are known without it."""
    if task.published is not None:
        return None
    from lowgear import envs

    env = envs.make(task, 1)
    env.close()
    return env.spec


def _try(chosen: "list[Task]") -> list[float]:
    """Steps a second of each task, with a bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    from lowgear.envs.trial import steps_per_second

    speeds: list[float] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(chosen))
        for task in chosen:
            progress.update(bar, description=task.name)
            speeds.append(steps_per_second(task, lambda share: progress.update(bar, completed=len(speeds) + share)))
    return speeds
