"""`lowgear slim`: the cheapest controller around a policy that is there already."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c, lists
from lowgear.commands.completion import task_names
from lowgear.commands.import_ import SAFETENSORS, foreign_options
from lowgear.commands.options import env_timeout_option, json_option, list_option, set_option
from lowgear.commands.output import show

if TYPE_CHECKING:
    from lowgear.policy.file import Policy
    from lowgear.studies.slim import Request


@click.command()
@click.argument("path", metavar="POLICY", type=click.Path(path_type=Path))
@click.argument("task", shell_complete=task_names)
@click.option(
    "--keep-return", default=0.97, show_default=True, metavar="SHARE", help="Of the policy's return, or success rate."
)
@foreign_options
@list_option(
    "--widths",
    lists.integers,
    "Of the small policies that it is distilled into: 16,64.  [default: 8, 16, 32, ... up to a tenth of its FLOPs]",
)
@click.option("--labels", default=40_000, show_default=True, help="Steps that it labels for each of them.")
@click.option("--steps", default=50_000, show_default=True, help="Environment steps of each master.")
@list_option(
    "--seeds",
    lists.integers,
    "A small policy of each width and a master for each; the best are taken.",
    metavar=None,
    default="0-2",
    show_default=True,
)
@click.option(
    "--episodes",
    type=int,
    help="Of each controller, to choose by; half as many with each of five other seeds are reported.  [default: as "
    "many as make 40,000 steps, from 40 to 400]",
)
@set_option
@click.option("--out", type=click.Path(path_type=Path), help="Where everything is kept.  [default: slim/NAME]")
@click.option("--no-report", is_flag=True, help="Leave the page out.")
@env_timeout_option
@json_option
def slim(path: Path, task: str, out: Path | None, no_report: bool, as_json: bool, **options: Any) -> None:
    """Find the cheapest controller that keeps the return of POLICY, in the environment of TASK.

    POLICY is a file that `lowgear import` reads (Stable-Baselines3, SBX, CleanRL, ONNX), or a Lowgear policy file. It
    stays as it is. It is distilled into small policies of several widths (DAgger: they act, it labels what they met).
    Then masters learn when the widest of them will do and when POLICY is needed, and are tuned to the demand. The
    cheapest that keeps the return, a small policy alone or a master that switches, is reported on starts that nothing
    was chosen by, drawn, and written as C. Minutes on two cores; the same command again repeats nothing.

    \b
      lowgear slim sac.zip gym:HalfCheetah-v5
      lowgear slim ppo.zip gym:Pendulum-v1 --normalise vecnormalize.pkl --keep-return 0.95
      lowgear slim large.safetensors cartpole-swingup --widths 8,16
    """
    from rich.console import Console

    from lowgear.report.simulator import draw_without_screen
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.run_store import RunStore
    from lowgear.studies.slim import carry_out

    draw_without_screen()  # before MuJoCo is loaded for its environments
    foreign = {name: options.pop(name) for name in ("normalise", "kind", "check")}
    _check(options)
    request = _request(_large(path, task, **foreign), task, options)
    display = StudyDisplay(Console(stderr=True))
    store = RunStore(out or Path("slim") / path.stem, display.listeners, display.progress)
    ctrl_c.will_say("stopped; the same command goes on from here")
    try:
        report = carry_out(request, store)
    finally:
        display.close()
    show(report | _deliver(report, not no_report), as_json, _print)


def _check(options: dict[str, Any]) -> None:
    """Refuse what makes no sense before anything is read or made."""
    if not 0 < options["keep_return"] <= 1:
        raise LowgearError(f"--keep-return {options['keep_return']:g}: write a share above 0 and at most 1, as in 0.97")
    if options["episodes"] is not None and options["episodes"] < 4:
        raise LowgearError(f"--episodes {options['episodes']}: an interval needs 4 or more")
    if options["labels"] < 1_000:
        raise LowgearError(f"--labels {options['labels']}: too few to learn from; write 1,000 or more")
    if options["widths"] and min(options["widths"]) < 1:
        raise LowgearError(f"--widths {','.join(map(str, options['widths']))}: write widths of 1 or more, as in 16,64")


def _large(path: Path, task: str, **foreign: Any) -> "Policy":
    """The policy, as one frozen gear."""
    from lowgear.config.gears import read_frozen
    from lowgear.evaluation.imported import import_policy

    if path.suffix != SAFETENSORS:
        return import_policy(path, task, **foreign).policy
    for name, value in foreign.items():
        if value:
            raise LowgearError(
                f"--{'from' if name == 'kind' else name} is for files of other libraries, not for {path}"
            )
    return read_frozen(path).read


def _request(large: "Policy", name: str, options: dict[str, Any]) -> "Request":
    from lowgear.baselines.distil import DistilSettings, widths_for
    from lowgear.config import settings
    from lowgear.config.tasks import find
    from lowgear.studies.slim import Request, check_fits

    request = Request(
        find(name),
        large,
        options["keep_return"],
        tuple(sorted(set(options["widths"] or widths_for(large)))),
        options["seeds"],
        options["steps"],
        options["episodes"] or 0,
        DistilSettings(options["labels"]),
        settings.from_assignments(options["assignments"]),
    )
    check_fits(request)
    return request


def _deliver(report: dict[str, Any], draws: bool) -> dict[str, Any]:
    """The controller as C, a figure of all, the run's page, as far as this machine can; what stood in the way."""
    from lowgear.export import export
    from lowgear.export.plain import default_name
    from lowgear.export.source import ExportRequest, read

    found: dict[str, Any] = {"c": None, "figure": None, "page": None, "notes": []}
    controller = Path(report["controller"])
    try:
        source = read(controller, trust=True)
        out = controller.with_name("c")
        export(ExportRequest(source, default_name(source.policy.header.task)), "c", out)
        found["c"] = str(out)
    except LowgearError as error:
        found["notes"].append(f"no C: {error}")
    if draws:
        try:
            found |= _draw(report, controller.parent)
        except LowgearError as error:
            found["notes"].append(f"no page: {error}")
    return found


def _draw(report: dict[str, Any], out: Path) -> dict[str, Any]:
    try:
        from lowgear.report.assemble import ReportOptions, assemble
        from lowgear.studies.slim_figure import draw
    except ModuleNotFoundError as error:
        raise LowgearError(f"a report needs {error.name}: pip install 'lowgear[report]'") from None
    options = ReportOptions(episodes=0, video=True, setting=None, trust=True)
    (page, *_), notices = assemble([Path(report["run"])], out / "report", options, lambda _: None)
    return {"figure": str(draw(report, out)[-1]), "page": str(page), "notes": notices}


def _print(report: dict[str, Any]) -> None:
    """The controllers beside each other, what to make of them, and what was written."""
    from rich import box
    from rich.table import Table

    from lowgear.evaluation.numbers import score
    from lowgear.report.terminal import print_table, print_text

    table = Table(title=f"{report['source']} on {report['task']}", title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("controller", "score [95%]", "kept [95%]", "FLOPs", "saved", "large"):
        table.add_column(head, justify="left" if head == "controller" else "right", no_wrap=head != "controller")
    for row in report["controllers"]:
        low, high = map(score, row["score_interval"])
        share = row["kept"]
        table.add_row(
            ("→ " if row["name"] == report["chosen"] else "  ") + row["name"],
            f"{score(row['score_mean'])} [{low}, {high}]",
            ""
            if share is None
            else f"{share:.1%} [{100 * row['kept_interval'][0]:.1f}, {100 * row['kept_interval'][1]:.1f}]",
            f"{row['flops_per_step']:,.0f}",
            f"{row['flops_reduction']:.1%}",
            "" if row["large_share"] is None else f"{row['large_share']:.1%}",
        )
    print_table(table)
    for line in report["words"]:
        print_text(line)
    for note in report["notes"]:
        click.echo(f"note: {note}", err=True)
    click.echo(f"\n{report['controller']}")
    for what in ("c", "figure", "page"):
        if report[what] is not None:
            click.echo(report[what])
