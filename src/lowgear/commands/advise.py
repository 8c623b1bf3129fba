"""`lowgear advise`: which gears and periods are worth training on a task."""

from pathlib import Path
from typing import Any

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c, lists
from lowgear.commands.completion import task_names
from lowgear.commands.options import env_timeout_option, json_option, list_option, set_option, widths_option
from lowgear.commands.output import show

GEARS = (8, 32, 128)
PERIODS = (2, 5, 20)


@click.command()
@click.argument("task", shell_complete=task_names)
@widths_option("Candidate widths, two or more: 8,32,128.  [default: 8,32,128]")
@list_option("--periods", lists.integers, "Candidate steps that a pick holds: 2,5,20.  [default: 2,5,20]")
@click.option("--steps", default=20_000, show_default=True, help="Environment steps of each agent.")
@list_option(
    "--seeds", lists.integers, "One agent for each: 0-3 or 0,2,7.", metavar=None, default="0-3", show_default=True
)
@click.option("--episodes", default=20, show_default=True, help="Of each controller that is played.")
@click.option(
    "--keep-return",
    default=0.95,
    show_default=True,
    metavar="SHARE",
    help="Of what the best width gains over random actions: what a controller has to keep.",
)
@set_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("advice"),
    show_default=True,
    help="Where the run and what it tells are kept.",
)
@env_timeout_option
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it would take.")
@json_option
def advise(task: str, out: Path, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Say which gears and periods are worth training on TASK, from a short sweep: minutes on two cores.

    Trains agents that have all candidate widths and periods at once, one for each seed, in one program. Then plays each
    width alone, and every pair that can be cut out of the agents along the dial, and judges what each keeps of the gain
    over random actions and what it costs, with 95% intervals over seeds and episodes. Prints the `lowgear train`
    command; where nothing is certain it says so, and prints the command of a larger sweep. Nothing is repeated: with
    more --seeds only those train.

    A short sweep may favour narrow gears: what needs long training shows its worth late. Details: docs/advise.md.

    \b
      lowgear advise cartpole-swingup --dry-run
      lowgear advise gym:Pendulum-v1 --steps 10000
      lowgear advise walker-stand --gears 16,64,256 --steps 60000
    """
    from rich.console import Console

    from lowgear.studies.advise import carry_out
    from lowgear.studies.plan import Estimates, print_plan
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.run_store import RunStore

    request = _request(task, options, _typed(click.get_current_context()))
    group = request.group()
    errors = Console(stderr=True)
    display = StudyDisplay(errors)
    store = RunStore(out, display.listeners, display.progress)
    print_plan(Console() if dry_run else errors, store, [group], Estimates(store))
    if dry_run:
        return
    ctrl_c.will_say("stopped; the same command goes on from here")
    try:
        report = carry_out(request, store)
    finally:
        display.close()
    show(report, as_json, _print)


def _typed(context: click.Context) -> tuple[tuple[str, str], ...]:
    """The options that were typed, with their values: what is swept, and where it is kept."""
    found = []
    for option in context.command.params:
        name = option.name or ""
        typed = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if typed and isinstance(option, click.Option) and not option.is_flag:
            value = context.params[name]
            for one in value if option.multiple else [value]:
                found.append((option.opts[0], ",".join(map(str, one)) if isinstance(one, tuple) else str(one)))
    return tuple(found)


def _request(name: str, options: dict[str, Any], typed: tuple[tuple[str, str], ...]) -> Any:
    from lowgear.config import settings
    from lowgear.config.tasks import find
    from lowgear.studies.advise import Request

    if options["episodes"] < 4:
        raise LowgearError(f"--episodes {options['episodes']}: one half chooses and the other judges; write 4 or more")
    if not 0 < options["keep_return"] <= 1:
        raise LowgearError(f"--keep-return {options['keep_return']:g}: write a share above 0 and at most 1, as in 0.95")
    if len(options["seeds"]) < 2:
        raise LowgearError("--seeds: one seed tells nothing of another; write two or more, as in 0-3")
    return Request(
        find(name),
        options["gears"] or GEARS,
        options["periods"] or PERIODS,
        options["seeds"],
        options["steps"],
        options["episodes"],
        options["keep_return"],
        options["assignments"],
        settings.from_assignments(options["assignments"]),
        typed,
    )


def _print(report: dict[str, Any]) -> None:
    """What was found, what it means, and what to type."""
    from rich import box
    from rich.table import Table

    from lowgear.report.terminal import print_table, print_text

    title = f"{report['task']}, {report['steps']:,} steps, {len(report['seeds'])} seeds, {report['episodes']} episodes"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("gears", "rel.", "score [95%]", "kept [95%]", "FLOPs [95%]", "verdict"):
        table.add_column(head, justify="left" if head in ("gears", "verdict") else "right", no_wrap=True)
    for row in report["options"]:
        table.add_row(*_cells(row))
    for row in report["periods"]:
        name, *others = _cells(row)
        table.add_row(f"{name}, period {row['periods'][0]}", *others)
    print_table(table)
    print_text(
        f"score: mean return, or success rate; random actions score {_number(report['random_score'])}. kept: of what "
        f"{report['best_width']} units alone gain over them. FLOPs: of the widest gear's. verdict: whether "
        f"{report['keep']:.0%} is kept, as far as the interval tells"
    )
    for line in report["words"]:
        print_text(line)
    for one in report["commands"]:
        click.echo()
        print_text(one["why"])
        click.echo(f"  {one['command']}")


def _cells(row: dict[str, Any]) -> list[str]:
    widths = "+".join(map(str, row["gears"])) if len(row["gears"]) > 1 else f"{row['gears'][0]} alone"
    setting = "" if row["relative_coefficient"] is None else f"{row['relative_coefficient']:g}"
    score = [f"{value:.0f}" if abs(row["score"][0]) >= 100 else _number(value) for value in row["score"]]
    return [
        widths,
        setting,
        f"{score[0]} [{score[1]}, {score[2]}]",
        *(_share(row[name]) for name in ("kept", "flops")),
        row["verdict"],
    ]


def _share(interval: list[float | None]) -> str:
    mean, low, high = interval
    if mean is None or low is None or high is None:
        return "-"
    return f"{mean:.0%} [{100 * low:.0f}, {100 * high:.0f}]"


def _number(value: float) -> str:
    from lowgear.evaluation.numbers import score

    return score(value)
