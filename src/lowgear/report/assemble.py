"""From run directories to a folder: figures, tables, video, the page.

report/
  index.html             everything, in one file
  summary.md, settings.csv, episodes.csv
  figures/               SVG and PNG; one folder for each run where there are several
  episode.webp           the first episode with its gears
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lowgear import LowgearError
from lowgear.policy.files import write_whole
from lowgear.report import clouds, curves, frontier, learning, page, profiles, scatter, summary, sweeps, timeline
from lowgear.report.cast import Role, cast
from lowgear.report.clouds import Cloud
from lowgear.report.episode import FRAMES_AT_MOST, Episode, record
from lowgear.report.frames import video
from lowgear.report.payload import Shown
from lowgear.report.runs import Run, read_run
from lowgear.report.stage import open_stage

FRAMES = 900  # of all episodes of the page together, which keeps it under 10 MB
SETTINGS = {1: 7, 4: 2}  # of each run's dial, for so many runs at most; beyond, one and no baselines
FRAMES_AT_LEAST = 10  # of an episode
NO_VIDEO = "Frames were not wanted (--no-video)."


@dataclass(frozen=True)
class Wish:
    """What a person asked for."""

    episodes: int  # dots of each controller in return against cost; 0: none
    video: bool
    setting: float | None  # of the dial: the episode shown first


Say = Callable[[str], None]


def assemble(paths: Sequence[Path], out: Path | None, wish: Wish, say: Say) -> tuple[list[Path], list[str]]:
    """Write the whole report of the runs at `paths`; returns the page with what lies beside it, and what is missing."""
    runs = [read_run(path) for path in paths]
    folder = out or (paths[0] / "report" if len(runs) == 1 else Path("report"))
    _make(folder)
    shown, written = [], []
    for run, name in zip(runs, _names(runs), strict=True):
        one = show(run, wish, len(runs), say)
        written += _draw(one, _make(folder / "figures" / name), say)
        written += _film(one, folder / (f"episode-{name}.webp" if name else "episode.webp"))
        shown.append(one)
    say("tables")
    written += _tables(shown, folder)
    found = profiles.profiles(runs)
    periods = sweeps.against_period(runs)
    if found:
        written += profiles.draw(found, _make(folder / "figures"))
    for sweep in periods:
        written += sweeps.draw_periods(sweep, _make(folder / "figures"))
    say("page")
    index = folder / "index.html"
    write_whole(index, page.write(shown, found, periods).encode())
    missing = [f"{one.run.path}: {text}" for one in shown for text in (*one.run.notices, *one.notices)]
    return [index, *written], missing


def show(run: Run, wish: Wish, runs: int, say: Say) -> Shown:
    """Play what a run's section shows."""
    settings = next((count for most, count in SETTINGS.items() if runs <= most), 1)
    roles = cast(run, wish.setting, settings)
    if runs > max(SETTINGS):
        roles = [role for role in roles if role.star]
    frames = min(FRAMES_AT_MOST, FRAMES // max(1, runs * len(roles)))
    episodes, notices = _play(run, roles, wish, frames, say)
    dots: list[Cloud] = []
    if episodes and wish.episodes:
        say(f"{run.name}: {wish.episodes} episodes of each controller")
        try:
            dots = clouds.play(run, clouds.chosen(run, roles), wish.episodes)
        except LowgearError as error:
            notices.append(f"No dots of single episodes: {error}")
    return Shown(run, tuple(episodes), tuple(dots), clouds.scale_of(run, dots), learning.curves(run), tuple(notices))


def _play(
    run: Run, roles: Sequence[Role], wish: Wish, frames: int, say: Say
) -> tuple[list[tuple[Role, Episode]], list[str]]:
    """One episode of each role, with pictures where they can be had, and what stood in the way."""
    if not roles:
        return [], []
    say(f"{run.name}: opening the stage")
    try:
        stage = open_stage(roles[0].policy.header, run.config.recipe.end_on_success, wish.video)
        with contextlib.closing(stage):
            found = []
            for role in roles:
                say(f"{run.name}: an episode of {role.label}")
                found.append((role, record(role.policy, stage, run.master, frames=max(frames, FRAMES_AT_LEAST))))
    except LowgearError as error:
        return [], [f"No episode could be played: {error}"]
    if not wish.video:
        return found, [NO_VIDEO]
    return found, [f"No pictures of the episode: {stage.why_blind}."] if stage.why_blind else []


def _draw(one: Shown, figures: Path, say: Say) -> list[Path]:
    """Every figure that the run has the numbers for."""
    run, written = one.run, []
    say(f"{run.name}: figures")
    if one.first is not None:
        written += timeline.draw(one.first, figures)
    if one.clouds:
        written += scatter.draw(run.task.name, one.clouds, one.scale, figures)
    if run.evaluation and run.evaluation["agents"]:
        written += frontier.draw(run.evaluation, figures)
    along = sweeps.against_coefficient(run)
    if along:
        written += sweeps.draw_coefficients(run, along, figures)
    if any(len(curve.steps) > 1 for curve in one.curves.curves):
        written += curves.draw(run, one.curves, figures)
    return written


def _film(one: Shown, path: Path) -> list[Path]:
    data = video(one.first) if one.first is not None else None
    if data is None:
        return []
    write_whole(path, data)
    return [path]


def _tables(shown: Sequence[Shown], folder: Path) -> list[Path]:
    runs = [one.run for one in shown]
    texts = {"summary.md": "\n".join(summary.markdown(run) for run in runs if run.settings)}
    texts["settings.csv"] = summary.sheet([run for run in runs if run.settings]) if texts["summary.md"] else ""
    dots = [(one.run, cloud) for one in shown for cloud in one.clouds]
    texts["episodes.csv"] = clouds.sheet(dots) if dots else ""
    written = []
    for name, text in texts.items():
        if text:
            write_whole(folder / name, text.encode())
            written.append(folder / name)
    return written


def _names(runs: Sequence[Run]) -> list[str]:
    """A folder for each run's figures: none of its own for a single run; runs of the same name are numbered."""
    if len(runs) == 1:
        return [""]
    names: list[str] = []
    for run in runs:
        again = sum(name == run.name or name.startswith(f"{run.name}-") for name in names)
        names.append(f"{run.name}-{again + 1}" if run.name in names else run.name)
    return names


def _make(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LowgearError(f"could not make {folder}: {error.strerror}; choose another --out") from None
    return folder
