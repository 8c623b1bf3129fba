"""`lowgear watch`: an episode of a controller, in a window or as a video."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lowgear import LowgearError
from lowgear.commands.options import seed_option, trust_option

if TYPE_CHECKING:
    from lowgear.export.source import Source


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--agent", type=int, metavar="K", help="Which agent of the run.  [default: the best by its evaluation]")
@click.option("--best", is_flag=True, help="The policy that scored best while training, not the last one.")
@click.option("--cost-coefficient", type=float, metavar="X", help="Setting of the dial.  [default: the policy's own]")
@seed_option("--seed", 0, "Of the episode's start.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a video, .webp, .gif or .mp4, and open no window.  [default without a display: DIR/watch/agentK.webp]",
)
@trust_option
def watch(
    directory: Path,
    agent: int | None,
    best: bool,
    cost_coefficient: float | None,
    seed: int,
    out: Path | None,
    trust: bool,
) -> None:
    """Watch an episode of the controller in DIR, a run directory or a policy file.

    Opens a window that shows the simulation in its own time, the gear that acts and the return so far: Space stops
    and goes on, the right arrow takes a step, Escape closes it. Without a display, or with --out, writes a video and
    prints its path. Pictures need the extras `report` and `dmc` or `gym`, MP4 the extra `video`.

    \b
      lowgear watch runs/NAME
      lowgear watch runs/NAME --agent 2 --cost-coefficient 0.03
      lowgear watch runs/NAME --out swing-up.mp4
    """
    try:
        from lowgear.report import video, window
        from lowgear.report.playback import play_back
        from lowgear.report.simulator import open_simulator
    except ModuleNotFoundError as error:
        raise LowgearError(f"watching needs {error.name}: pip install 'lowgear[report]'") from None
    from rich.console import Console

    from lowgear.config import tasks
    from lowgear.export.source import ends_on_success, read

    if out is not None:
        video.check_kind(out)
        _writable(out)
    source = read(directory, agent, best, cost_coefficient, trust)
    if source.chosen:
        click.echo(f"note: {source.chosen}", err=True)
    header = source.policy.header
    tasks.check_trust(header.task, source.path, trust)
    master = "boltzmann" if header.boltzmann else "greedy"
    shown = out is None and window.has_display()
    with Console(stderr=True).status("opening the simulator") as status:
        simulator = open_simulator(header, ends_on_success(header))
        with closing(simulator):
            if simulator.render is None:
                raise LowgearError(f"{header.task} cannot be drawn here: {simulator.render_error}")
            status.update("playing an episode" if shown else "playing and drawing an episode")
            playback = play_back(source.policy, simulator, master, seed, **({"frames": 0} if shown else {}))
            if shown:
                status.stop()
                window.EpisodeWindow(playback, simulator, seed).show()
                return
            status.update("writing the video")
            written = video.write(playback, out or _default_out(source))
    episode = playback.episode
    click.echo(
        f"{header.task}: {header.variant}, λ {header.cost_coefficient:.3g}, return {episode.total:,.1f} in "
        f"{episode.steps:,} steps",
        err=True,
    )
    click.echo(str(written))


def _default_out(source: "Source") -> Path:
    """Into the run, or beside the policy file."""
    if source.agent is None:
        return source.path.with_suffix(".webp")
    folder = source.path.parent.parent / "watch"
    folder.mkdir(exist_ok=True)
    return folder / f"{source.path.stem}.webp"


def _writable(out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise LowgearError(f"--out {out}: there is no directory {out.parent}; make it, or name another")
