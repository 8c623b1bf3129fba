"""From run directories to a folder: figures, tables, video, the page.

report/
  index.html             everything, in one file
  summary.md, settings.csv, episodes.csv
  figures/               SVG and PNG; one folder for each run where there are several
  episode.webp           the first episode with its gears
  videos/                every episode of the page, at full rate, where they are wanted
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lowgear import LowgearError
from lowgear.config.policy_file import open_run
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole
from lowgear.report import curves, frontier, page, profiles, scatter, sweeps, tables, timeline, video
from lowgear.report.figure import Figure
from lowgear.report.matplotlib_figure import save
from lowgear.report.own import score_own, unscored
from lowgear.report.page import RunSection
from lowgear.report.paper import published_figures
from lowgear.report.playback import FRAMES_AT_MOST, Playback, play_back
from lowgear.report.runs import RunData, read_run
from lowgear.report.scatter import ControllerEpisodes
from lowgear.report.selection import Selected, select
from lowgear.report.simulator import open_simulator
from lowgear.report.timing import StepTimes

FRAMES = 900  # of all episodes of the page but the first of each run, which has one for each step
RATE = 25.0  # frames a second of episode.webp
SETTINGS = {1: 8, 4: 2}  # of each run's dial, for so many runs at most; beyond, one and no baselines
FRAMES_AT_LEAST = 10  # of an episode
NO_VIDEO = "Frames were not wanted (--no-video)."

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ReportOptions:
    """What a person asked for."""

    episodes: int  # dots of each controller in return against cost; 0: none, and nothing is scored or timed anew
    video: bool  # frames in the page, and the first episode as a video
    setting: float | None  # of the dial: the episode shown first
    trust: bool = False  # the runs' tasks may import Python modules
    videos: bool = False  # a file of every episode, at full rate
    time_steps: Callable[[RunData, Policy], StepTimes] | None = None  # how long the parts of a controller take here


def assemble(
    paths: Sequence[Path], out: Path | None, options: ReportOptions, progress: Progress
) -> tuple[list[Path], list[str]]:
    """Write the whole report of the runs at `paths`; returns the page with what lies beside it, and what is missing."""
    runs = [read_run(path, options.trust) for path in paths]
    folder = out or (open_run(paths[0]).beside("report") if len(runs) == 1 else Path("report"))
    _make(folder)
    sections, written = [], []
    for run, name in zip(runs, _names(runs), strict=True):
        section = make_section(run, options, len(runs), progress)
        progress(f"{run.name}: figures")
        written += _save(section.figures.values(), folder / "figures" / name)
        written += _videos(section, folder, name, options, progress)
        sections.append(section)
    progress("tables")
    written += _write(folder, _tables(sections))
    profile = profiles.describe(runs)
    periods = [sweeps.describe_periods(sweep) for sweep in sweeps.against_period(runs)]
    together = [profile, *periods] if profile else periods
    written += _save(together, folder / "figures")
    progress("page")
    index = _write(folder, {"index.html": page.write(sections, together).encode()})
    missing = [f"{section.run.path}: {text}" for section in sections for text in section.notices]
    return [*index, *written], missing


def make_section(run: RunData, options: ReportOptions, runs: int, progress: Progress) -> RunSection:
    """Play what a run's section shows, and describe its figures."""
    settings, notices = next((count for most, count in SETTINGS.items() if runs <= most), 1), []
    if options.episodes and unscored(run):
        progress(f"{run.name}: {run.scored['episodes']} episodes of each agent at its own setting")
        run, why = _scored(run)
        notices += why
    selected = select(run, options.setting, settings)
    if runs > max(SETTINGS):
        selected = [one for one in selected if one.main]
    frames = min(FRAMES_AT_MOST, FRAMES // max(1, runs * len(selected)))
    playbacks, missing = _play(run, selected, options, max(frames, FRAMES_AT_LEAST), progress)
    notices += missing
    episodes: list[ControllerEpisodes] = []
    if playbacks and options.episodes:
        progress(f"{run.name}: {options.episodes} episodes of each controller")
        try:
            episodes = scatter.play_episodes(run, scatter.for_scatter(run, selected), options.episodes)
        except LowgearError as error:
            notices.append(f"No dots of single episodes: {error}")
    times = None
    if options.time_steps is not None and options.episodes and selected and run.settings:
        progress(f"{run.name}: timing its C")
        try:
            times = options.time_steps(run, selected[0].policy)
        except LowgearError as error:
            notices.append(f"No microseconds: {error}")
    figures = _figures(run, playbacks, episodes)
    return RunSection(run, tuple(playbacks), tuple(episodes), figures, (*run.notices, *notices), times)


def _scored(run: RunData) -> tuple[RunData, list[str]]:
    """With scores of the settings that are deployed, or why they could not be had."""
    try:
        return score_own(run), []
    except LowgearError as error:
        return run, [f"The policies' own setting was not evaluated, and could not be now: {error}"]


def _videos(section: RunSection, folder: Path, name: str, options: ReportOptions, progress: Progress) -> list[Path]:
    """The first episode, and where they are wanted all of them at full rate."""
    shown = [(one, playback) for one, playback in section.playbacks if playback.frames]
    written = []
    for one, playback in shown:
        if one.first:
            progress(f"{section.run.name}: video")
            written.append(video.write(playback, folder / (f"episode-{name}.webp" if name else "episode.webp"), RATE))
        if options.videos:
            progress(f"{section.run.name}: video of {one.label}")
            written.append(video.write(playback, _make(folder / "videos" / name) / f"{one.file_name}.webp"))
    return written


def _play(
    run: RunData, selected: Sequence[Selected], options: ReportOptions, frames: int, progress: Progress
) -> tuple[list[tuple[Selected, Playback]], list[str]]:
    """One episode of each, with frames where they can be had, and what stood in the way."""
    if not selected:
        return [], []
    progress(f"{run.name}: opening the simulator")
    try:
        simulator = open_simulator(selected[0].policy.header, run.config.recipe.end_on_success, options.video)
        with contextlib.closing(simulator):
            found = []
            for one in selected:
                progress(f"{run.name}: an episode of {one.label}")
                most = FRAMES_AT_MOST if one.first or options.videos else frames
                found.append((one, play_back(one.policy, simulator, run.config.master, frames=most)))
    except LowgearError as error:
        return [], [f"No episode could be played: {error}"]
    if not options.video:
        return found, [NO_VIDEO]
    return found, [f"No pictures of the episode: {simulator.render_error}."] if simulator.render_error else []


def _figures(
    run: RunData, playbacks: Sequence[tuple[Selected, Playback]], episodes: Sequence[ControllerEpisodes]
) -> dict[str, Figure]:
    """Every figure that the run has the numbers for."""
    found = [timeline.describe(playback) for one, playback in playbacks if one.first]
    if episodes:
        found.append(scatter.describe(run, episodes))
    if run.evaluation.scores:
        found.append(frontier.describe(run.evaluation, published_figures(run.task, "asymmetric")))
    found += [figure for figure in (sweeps.describe_coefficients(run), curves.describe(run)) if figure is not None]
    return {figure.name: figure for figure in found}


def _save(figures: Iterable[Figure], folder: Path) -> list[Path]:
    return [path for figure in figures for path in save(figure, _make(folder))]


def _tables(sections: Sequence[RunSection]) -> dict[str, bytes | None]:
    runs = [section.run for section in sections if section.run.settings]
    played = [(section.run, one) for section in sections for one in section.episodes]
    return {
        "summary.md": "\n".join(map(tables.markdown, runs)).encode() if runs else None,
        "settings.csv": tables.settings_csv(runs).encode() if runs else None,
        "episodes.csv": scatter.episodes_csv(played).encode() if played else None,
    }


def _write(folder: Path, files: dict[str, bytes | None]) -> list[Path]:
    """Those that there is something for."""
    written = []
    for name, data in files.items():
        if data is not None:
            write_whole(folder / name, data)
            written.append(folder / name)
    return written


def _names(runs: Sequence[RunData]) -> list[str]:
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
