"""`lowgear report`: figures, tables and one page from run directories."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lowgear import LowgearError
from lowgear.commands.options import env_timeout_option, trust_option
from lowgear.commands.runs import tell_trackers

if TYPE_CHECKING:
    from lowgear.policy.file import Policy
    from lowgear.report.runs import RunData
    from lowgear.report.timing import StepTimes

ROUNDS = 31  # of timing


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the report goes.  [default: DIR/report, NAME-report of a policy file, or ./report for several]",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--video/--no-video",
    default=None,
    help="--video: also a file of every episode at full rate, in videos/. --no-video: no frames, which is faster.",
)
@click.option(
    "--episodes",
    default=64,
    show_default=True,
    metavar="N",
    help="Dots of each controller in return against cost; 0 leaves the picture out.",
)
@click.option(
    "--setting",
    type=float,
    metavar="λ",
    help="The dial's setting to show first.  [default: the policy's own, which `lowgear export` ships]",
)
@env_timeout_option
@trust_option
def report(
    directories: tuple[Path, ...],
    out: Path | None,
    open_page: bool,
    video: bool | None,
    episodes: int,
    setting: float | None,
    trust: bool,
) -> None:
    """Turn run directories or policy files into figures, tables and one page that opens without a server.

    The page has the scores beside the paper's, the frontier, an episode to play through step by step, learning
    curves and the run's configuration. Frontier and table come from evaluation.json, so evaluate first; a setting that
    the policies were tuned to since then is scored as well, and a step is timed as C. Frames are
    drawn in dm_control or Gymnasium (extras `dmc`, `gym`; on Debian also libegl1 and libgl1-mesa-dri); without them
    the rest is made all the same. The figures of one run also go where it is tracked.

    \b
      lowgear evaluate runs/NAME --frontier 7
      lowgear report runs/NAME --open
      lowgear report runs/walker runs/cartpole --out comparison
      lowgear report runs/NAME --no-video --episodes 0      figures and tables in seconds
    """
    if not directories:
        raise LowgearError("name one run directory or policy file, or more, for example `lowgear report runs/NAME`")
    if episodes < 0:
        raise LowgearError(f"--episodes {episodes}: write 0 or more")
    try:
        from lowgear.report.assemble import ReportOptions, assemble
    except ModuleNotFoundError as error:
        raise LowgearError(f"a report needs {error.name}: pip install 'lowgear[report]'") from None
    from rich.console import Console
    from rich.markup import escape

    from lowgear.config.run_directory import RunDirectory

    console = Console(stderr=True)
    with console.status("reading") as status:
        written, notices = assemble(
            list(directories),
            out,
            ReportOptions(episodes, video is not False, setting, trust, video is True, _time_steps),
            lambda text: status.update(escape(text)),
        )
    for notice in notices:
        click.echo(f"note: {notice}", err=True)
    if len(directories) == 1 and directories[0].is_dir():
        tell_trackers(RunDirectory(directories[0], trust), files=written)
    index, *others = written
    click.echo(str(index))
    click.echo(f"{len(others)} figures, tables and videos beside it", err=True)
    if open_page:
        click.launch(index.resolve().as_uri())


def _time_steps(run: "RunData", policy: "Policy") -> "StepTimes":
    """What the parts of the run's controllers take as C on this machine; their shapes are the same for all agents."""
    from lowgear.bench.deploy import latency_of
    from lowgear.envs import make_env
    from lowgear.report.timing import StepTimes, machine_name

    found = latency_of(policy, partial(make_env, run.config), "the time of a step as C", ROUNDS)
    return StepTimes(tuple(ns / 1000 for ns in found.gears_ns), found.pick_ns / 1000, machine_name())
