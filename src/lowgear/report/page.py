"""The page: one HTML file that opens from disk, without a server or a network.

The script and the style are the package's own and named by their hashes in the page's security policy, so nothing that
comes from a run's files could run even if it were markup. Those files' strings reach the page as JSON, whose `<` is
escaped, and the script turns them into text, never into elements.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from string import Template
from typing import Any
from urllib.parse import quote

import numpy as np

from lowgear import __version__
from lowgear.report import tables, timeline
from lowgear.report.figure import Figure, to_json
from lowgear.report.film import page_frames
from lowgear.report.playback import Playback
from lowgear.report.runs import RunData
from lowgear.report.scatter import ControllerEpisodes
from lowgear.report.selection import Selected
from lowgear.report.style import colour, gear_name, gear_style, pays, themes
from lowgear.report.text import number, percent, short, steps
from lowgear.report.timing import StepTimes

Json = dict[str, Any]
FRAME_BYTES = 12_000_000  # of all frames of the page together
SCRIPTS = ("dom.js", "chart.js", "tracks.js", "player.js", "page.js")
# What stands in the place of a figure that a run has no numbers for.
NO_FIGURE = {
    "frontier": ("Return against cost: the frontier", "Nothing to draw: the run has no finite evaluation."),
    "curves": ("Learning curves", "No learning curves: metrics.jsonl has fewer than two points."),
    "scatter": (
        "Return against cost, episode by episode",
        "No episodes were played for this picture: the run has no policies, or --episodes was 0.",
    ),
}


@dataclass(frozen=True)
class RunSection:
    """A run with everything that was played for it, and its figures."""

    run: RunData
    playbacks: tuple[tuple[Selected, Playback], ...]
    episodes: tuple[ControllerEpisodes, ...]
    figures: dict[str, Figure]  # by name
    notices: tuple[str, ...]  # the run's own among them
    times: StepTimes | None = None


def write(sections: Sequence[RunSection], together: Sequence[Figure]) -> str:
    """The whole page; `together` are the figures of all runs."""
    runs = [section.run for section in sections]
    tasks = list(dict.fromkeys(run.task.name for run in runs))
    heading = tasks[0] if len(tasks) == 1 else f"{len(runs)} runs, {len(tasks)} tasks"
    colours, names = themes()
    script = f'"use strict";\nconst THEMED = {json.dumps(names)};\n' + "\n".join(_asset(name) for name in SCRIPTS)
    style = colours + _asset("page.css")
    data: Json = {
        "runs": [_section(section, FRAME_BYTES // len(sections)) for section in sections],
        "comparison": {"table": tables.comparison(runs), "figures": [_panel(figure) for figure in together]},
    }
    return Template(_asset("page.html")).substitute(
        TITLE=html.escape(f"{', '.join(tasks)} – Lowgear report"),
        HEADING=html.escape(heading),
        VERSION=html.escape(__version__),
        SMALL=colour("small"),
        LARGE=colour("large"),
        ICON_SMALL=quote(colour("small")),
        ICON_LARGE=quote(colour("large")),
        DATE=datetime.now(UTC).strftime("%d %B %Y"),
        STYLE=style,
        STYLE_HASH=_hash(style),
        SCRIPT=script,
        SCRIPT_HASH=_hash(script),
        DATA=embed(data),
    )


def embed(data: Json) -> str:
    """JSON that can stand inside a script element whatever its strings hold; null for what JSON has no number for."""
    finite = json.loads(json.dumps(data), parse_constant=lambda _: None)
    text = json.dumps(finite, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _section(section: RunSection, frame_bytes: int) -> Json:
    """Everything of one run; half of the bytes of its frames are for the episode that is shown first."""
    run, figures, times = section.run, section.figures, section.times
    others = max(1, len(section.playbacks) - 1)
    main = next((one.agent for one, _ in section.playbacks if one.main), None)
    gears = " and ".join(gear.label for gear in run.config.gears)
    gears += " units" if all(gear.is_plain for gear in run.config.gears) else ""
    panels = {name: {"title": title, "none": none} for name, (title, none) in NO_FIGURE.items()}
    return {
        "name": run.name,
        "task": run.task.name,
        "facts": f"{run.config.recipe.name} recipe, {steps(run.evaluation.steps)} steps, gears of {gears}, from ",
        "notices": list(section.notices),
        "cautions": tables.cautions(run),
        "tiles": tables.tiles(run, times),
        "summary": tables.summary(run, times),
        "figures": panels | {name: _panel(figure) for name, figure in figures.items() if _shown(figure)},
        "cards": {setting.key: tables.card(run, setting, times, main) for setting in run.settings},
        "plays": [
            _play(run, one, playback, frame_bytes // 2 if one.first else frame_bytes // 2 // others)
            for one, playback in section.playbacks
        ],
        "config": {key: value for key, value in run.raw.items() if key != "provenance"},
        "provenance": run.raw.get("provenance"),
    }


def _shown(figure: Figure) -> bool:
    """Whether it has a panel of its own, and anything in it."""
    return bool(figure.title) and any(chart.series for chart in figure.charts)


def _panel(figure: Figure) -> Json:
    """A figure with its words."""
    return {"title": figure.title, "hint": f"{figure.hint} {figure.note}".strip(), "charts": to_json(figure.charts)}


def _play(run: RunData, selected: Selected, playback: Playback, frame_bytes: int) -> Json:
    """One episode, with all that the player needs to follow it."""
    episode = playback.episode
    header = episode.policy.header
    gears = header.gears
    saved = percent(header.cost.reduction(episode.flops_per_step))
    flops = np.cumsum(np.array(header.cost.gear_flops)[episode.gear] + header.cost.pick_flops * episode.asked)
    facts = [
        f"Played in {playback.simulator}: return {number(episode.total, 1)}, {saved} of FLOPs saved, "
        f"seed {header.seed} (agent {selected.agent}).",
        "" if episode.ended else "Recorded until the limit of steps; the episode went on.",
        timeline.actions_left_out(playback),
    ]
    at, values = f"λ {short(selected.coefficient)}", timeline.gear_values(playback)
    return {
        "label": selected.label,
        "choice": at if selected.main and header.forced_gear is None else selected.label,
        "own": selected.own,
        "first": selected.first,
        "variant": header.variant,
        "coefficient": selected.coefficient,
        "key": _setting_key(run, selected),
        "simulator": playback.simulator,
        "caption": " ".join(filter(None, facts)),
        "gears": [{"name": gear_name(g, gears), "colour": gear_style(g, gears).colour} for g in range(len(gears))],
        "gear": episode.gear.tolist(),
        "reward": _short(episode.reward),
        "total": _short(np.cumsum(episode.reward, dtype=np.float64)),
        "saved": _short(1 - flops / (header.cost.gear_flops[-1] * np.arange(1, episode.steps + 1))),
        "tracks": to_json(timeline.tracks(playback, timeline.legend(playback))),
        "values": None if values is None else [_short(row) for row in values],
        "step_s": playback.step_s,
        "frames": page_frames(playback, frame_bytes),
    }


def _short(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _setting_key(run: RunData, selected: Selected) -> str | None:
    """The evaluated setting that an episode was played at."""
    for setting in sorted(run.settings, key=lambda setting: not (setting.own and selected.own)):
        same = setting.is_of(selected.agent, selected.coefficient) or not pays(setting.variant)
        if setting.variant == selected.policy.header.variant and same:
            return setting.key
    return None


def _asset(name: str) -> str:
    return resources.files("lowgear").joinpath("report", "assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
