"""`lowgear report`: figures, tables and one page from run directories."""

from pathlib import Path

import click

from lowgear import LowgearError
from lowgear.commands.options import trust_option


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the report goes.  [default: DIR/report, NAME-report of a policy file, or ./report for several]",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option("--no-video", is_flag=True, help="Draw no frames: faster, and the page stays small.")
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
    help="The dial's setting to show first.  [default: the cheapest that keeps 95% of the best return]",
)
@trust_option
def report(
    directories: tuple[Path, ...],
    out: Path | None,
    open_page: bool,
    no_video: bool,
    episodes: int,
    setting: float | None,
    trust: bool,
) -> None:
    """Turn run directories or policy files into figures, tables and one page that opens without a server.

    The page has the scores beside the paper's, the frontier, an episode to play through step by step, learning
    curves and the run's configuration. Frontier and table come from evaluation.json, so evaluate first. Frames are
    drawn in dm_control or Gymnasium (extras `dmc`, `gym`; on Debian also libegl1 and libgl1-mesa-dri); without them
    the rest is made all the same.

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

    console = Console(stderr=True)
    with console.status("reading") as status:
        written, notices = assemble(
            list(directories),
            out,
            ReportOptions(episodes, not no_video, setting, trust),
            lambda text: status.update(escape(text)),
        )
    for notice in notices:
        click.echo(f"note: {notice}", err=True)
    index, *others = written
    click.echo(str(index))
    click.echo(f"{len(others)} figures, tables and videos beside it", err=True)
    if open_page:
        click.launch(index.resolve().as_uri())
