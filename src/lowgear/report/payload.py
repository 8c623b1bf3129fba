"""What the page's script is given: described charts, words and plain numbers, ready for JSON."""

import base64
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lowgear.report import tables, timeline
from lowgear.report.figure import Figure, to_json
from lowgear.report.frames import frame_sheet
from lowgear.report.playback import Playback
from lowgear.report.runs import RunData
from lowgear.report.scatter import ControllerEpisodes
from lowgear.report.selection import Selected
from lowgear.report.style import gear_name, gear_style, pays
from lowgear.report.text import number, percent, short, steps

Json = dict[str, Any]
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

    @property
    def first(self) -> Playback | None:
        """The episode to show first."""
        return next((playback for selected, playback in self.playbacks if selected.first), None)


def section_payload(section: RunSection) -> Json:
    """Everything of one run's section."""
    run = section.run
    units = " and ".join(map(str, run.config.gears))
    return {
        "name": run.name,
        "task": run.task.name,
        "facts": f"{run.config.recipe.name} recipe, {steps(run.steps)} steps, gears of {units} units, from ",
        "notices": list(section.notices),
        "tiles": tables.tiles(run),
        "summary": tables.summary(run),
        "figures": {name: _panel(section, name) for name in (*NO_FIGURE, "coefficients")},
        "cards": {setting.key: tables.card(run, setting) for setting in run.settings},
        "plays": [_play(run, *play) for play in section.playbacks],
        "config": {key: value for key, value in run.raw.items() if key != "provenance"},
        "provenance": run.raw.get("provenance"),
    }


def comparison_payload(runs: Sequence[RunData], figures: Sequence[Figure]) -> Json:
    """What several runs say together."""
    return {"table": tables.comparison(runs), "figures": [figure_panel(figure) for figure in figures]}


def figure_panel(figure: Figure) -> Json:
    """A figure with its words."""
    hint = " ".join(filter(None, [figure.hint, figure.note]))
    return {"title": figure.title, "hint": hint, "charts": to_json(figure.charts)}


def clean(value: Any) -> Any:
    """With null for what JSON has no number for, so that a browser can read it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _panel(section: RunSection, name: str) -> Json | None:
    if name in section.figures:
        return figure_panel(section.figures[name])
    if name not in NO_FIGURE:
        return None
    title, none = NO_FIGURE[name]
    return {"title": title, "none": none}


def _play(run: RunData, selected: Selected, playback: Playback) -> Json:
    """One episode, with all that the player needs to follow it."""
    episode = playback.episode
    header, gears = episode.policy.header, len(playback.actions)
    saved = percent(header.cost.reduction(episode.flops_per_step))
    facts = [
        f"Played in {playback.simulator}: return {number(episode.total, 1)}, {saved} of FLOPs saved, "
        f"seed {header.seed} (agent {selected.agent}).",
        "" if episode.ended else "Recorded until the limit of steps; the episode went on.",
        timeline.actions_left_out(playback),
    ]
    return {
        "label": selected.label,
        "choice": f"λ {short(selected.coefficient)}"
        if selected.main and header.forced_gear is None
        else selected.label,
        "first": selected.first,
        "variant": header.variant,
        "coefficient": selected.coefficient,
        "key": _setting_key(run, selected),
        "simulator": playback.simulator,
        "caption": " ".join(filter(None, facts)),
        "gears": [
            {"name": gear_name(gear, gears), "colour": gear_style(gear, gears).colour, "flops": header.cost.gears[gear]}
            for gear in range(gears)
        ],
        "pick_flops": header.cost.pick,
        "gear": episode.gear.tolist(),
        "picks": np.flatnonzero(episode.asked).tolist(),
        "reward": [float(f"{value:.4g}") for value in episode.reward],
        "tracks": to_json(timeline.tracks(playback, timeline.legend(playback))),
        "every": playback.every,
        "frames": _frames(playback),
    }


def _setting_key(run: RunData, selected: Selected) -> str | None:
    """The evaluated setting that an episode was played at."""
    for setting in run.settings:
        same = math.isclose(setting.coefficient, selected.coefficient, rel_tol=1e-6) or not pays(setting.variant)
        if setting.variant == selected.policy.header.variant and same:
            return setting.key
    return None


def _frames(playback: Playback) -> Json | None:
    sheet = frame_sheet(playback)
    if sheet is None:
        return None
    source = "data:image/webp;base64," + base64.b64encode(sheet.data).decode()
    return asdict(sheet) | {"data": source}
