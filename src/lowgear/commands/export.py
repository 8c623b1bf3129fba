"""`lowgear export`: a controller as C, ONNX or NumPy, or as a model of the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands.options import json_option, trust_option
from lowgear.commands.runs import expanded, several_argument, show_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowgear.export.source import ExportFiles, ExportRequest, Source


@click.command()
@several_argument
@click.option(
    "--format", "form", type=click.Choice(["c", "onnx", "numpy", "hub"]), required=True, help="What to write."
)
@click.option("--agent", type=int, metavar="K", help="Which agent of the run.  [default: the best by its evaluation]")
@click.option("--best", is_flag=True, help="The policy that scored best while training, not the last one.")
@click.option("--cost-coefficient", type=float, metavar="X", help="Setting of the dial.  [default: the policy's own]")
@click.option("--name", help="Begins every C symbol and file name.  [default: from the task: walker_stand]")
@click.option(
    "--weights",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="int8: about half of the flash, for C; what it costs in return is measured and told.",
)
@click.option("--license", "licence", metavar="ID", help="Of the model, for hub: mit, apache-2.0.  [default: unknown]")
@click.option("--repo", metavar="OWNER/NAME", help="Where you will push it, for hub.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write into.  [default: DIR/export/...]")
@click.option("--unchecked", is_flag=True, help="Write C even where no compiler can check it.")
@trust_option
@json_option
def export(directories: tuple[Path, ...], form: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Write the controller in each DIR, a run directory or a policy file, as something a robot can run.

    \b
      c      NAME.h and NAME.c: C99, no allocation, no library; a self-test inside
      onnx   gear0.onnx ..., master.onnx and controller.onnx, which shifts by itself
      numpy  the policy file, the code that runs it, and a short program; needs NumPy and safetensors only
      hub    the policy file and a model card with the frontier, for the Hugging Face hub; you push it yourself

    Every export is run against the network on whole episodes: the same gears and, but for rounding, the same actions,
    or nothing is written. What was found stands in export.json.

    Of a run with several agents it takes the one that `lowgear report` plays, and says which: the asymmetric agent with
    the best mean score in evaluation.json, or when training was last evaluated. Its dial stands as training or
    `lowgear tune` has set it.

    \b
      lowgear export runs/NAME --format c --agent 2
      lowgear export runs/NAME --format c --cost-coefficient 0.03 --name walker --out firmware/
      lowgear export agent0.safetensors --format onnx
      lowgear export runs/NAME --format hub --repo me/walker --license mit
    """
    from lowgear.export.plain import check_name
    from lowgear.export.source import read

    if options["name"] is not None:
        check_name(options["name"])
    if form != "hub" and (options["licence"] or options["repo"]):
        raise LowgearError(f"--license and --repo are for --format hub, not for {form}: leave them out")
    paths = expanded(directories)
    if out is not None and len(paths) > 1:
        raise LowgearError(f"--out {out} has room for one controller, and {len(paths)} are named: leave it out")
    chosen = (options["agent"], options["best"], options["cost_coefficient"], options["trust"])
    sources = {path: read(path, *chosen) for path in paths}
    show_each(sources, lambda source: _export(source, form, out, options), as_json, _print_export)


def _export(source: "Source", form: str, out: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    from rich.console import Console

    from lowgear.export import export as write
    from lowgear.export.plain import default_name
    from lowgear.export.source import ExportRequest, default_out, writable

    with Console(stderr=True).status("exporting and checking"):
        place = writable(out or default_out(source, form))
        name = options["name"] or default_name(source.policy.header.task)
        request = ExportRequest(source, name, options["weights"], unchecked=options["unchecked"])
        found = write(request, form, place, _hub(options) if form == "hub" else None)
        return found | {"agent": source.agent, "out": str(place)}


def _hub(options: dict[str, Any]) -> "Callable[[ExportRequest], ExportFiles]":
    from lowgear.hub.folder import hub_format

    return hub_format(options["licence"], options["repo"], options["trust"])


def _print_export(source: "Source", report: dict[str, Any]) -> None:
    """What was written, and how far it was checked."""
    place = Path(report["out"])
    agent = "" if source.agent is None else f"agent {source.agent}, "
    header = source.policy.header
    gears = "/".join(str(gear) for gear in header.gears)
    dial = f", λ {header.cost_coefficient:g}" if header.forced_gear is None else ""
    click.echo(f"{header.task}: {agent}{header.variant}, gears {gears}, seed {header.seed}{dial}")
    if source.chosen:
        click.echo(f"note: {source.chosen}", err=True)
    for file in report["files"]:
        click.echo(f"  {place / file}  {(place / file).stat().st_size:,} bytes")
    checked = report["checked"]
    if checked is None:
        click.echo("NOT CHECKED against the network: no C compiler was found", err=True)
    else:
        ties = f" ({checked['ties']} ties apart)" if checked["ties"] else ""
        picks = f", {checked['picks']:,} picks" if checked["picks"] else ""
        where = "episodes" if checked["from_environment"] else "stretches of random observations"
        click.echo(
            f"checked on {checked['episodes']} {where}, {checked['steps']:,} steps{picks}: "
            f"the same gears{ties}, actions within {checked['largest_action_error']:.1e} of half their range"
        )
    if "self_test" in report:
        click.echo(f"self-test: {report['self_test']}")
    loss = report.get("int8_loss")
    if loss:
        click.echo(
            f"int8: return {loss['return_int8']:.1f} against {loss['return_float32']:.1f} of float32, a change of "
            f"{-loss['loss']:+.2f} ± {loss['loss_ci95']:.2f} over {loss['episodes']} episodes"
        )
    for note in report["notes"]:
        click.echo(f"note: {note}", err=True)
    if report["format"] == "hub":
        from lowgear.hub.folder import push_command

        click.echo(f"push it with `{push_command(place, report['repository'])}` (pip install huggingface_hub)")
