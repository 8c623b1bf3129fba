"""What the page's script is given: plain numbers and strings, ready for JSON."""

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lowgear.report.cast import Role
from lowgear.report.clouds import Cloud, Scale
from lowgear.report.episode import Episode
from lowgear.report.frames import sheet
from lowgear.report.learning import Curves
from lowgear.report.looks import gear_colour, gear_name, look_of
from lowgear.report.profiles import Profile
from lowgear.report.runs import Run
from lowgear.report.scores import Score, agent_lines, large_flops, read
from lowgear.report.settings import Setting
from lowgear.report.summary import Row, rows, with_success
from lowgear.report.sweeps import Sweep

Json = dict[str, Any]
ACTIONS_AT_MOST = 8  # of an episode in the page
ACTION_STEPS = 100  # actions are kept to a hundredth
DOTS_AT_MOST = 400


@dataclass(frozen=True)
class Shown:
    """A run with everything that was played for it."""

    run: Run
    episodes: tuple[tuple[Role, Episode], ...]
    clouds: tuple[Cloud, ...]
    scale: Scale | None
    curves: Curves
    notices: tuple[str, ...]  # beyond the run's own

    @property
    def first(self) -> Episode | None:
        """The episode to show first."""
        chosen = [episode for role, episode in self.episodes if role.first]
        return chosen[0] if chosen else None


def run_payload(one: Shown) -> Json:
    """Everything of one run's section."""
    run = one.run
    return {
        "name": run.name,
        "task": run.task.name,
        "recipe": run.config.recipe.name,
        "steps": run.evaluation["steps"] if run.evaluation else run.config.steps,
        "episodes_each": run.evaluation["episodes"] if run.evaluation else None,
        "gears": list(run.config.gears),
        "score": "success rate" if with_success(run) else "return",
        "summary": [_row(row) for row in rows(run)],
        "settings": [_setting(setting) for setting in run.settings],
        "frontier": _frontier(run),
        "curves": {
            "source": one.curves.source,
            "score": one.curves.score,
            "lines": [
                asdict(curve) | {"colour": look_of(curve.variant).colour}
                for curve in one.curves.curves
                if len(curve.steps) > 1
            ],
        },
        "clouds": {
            "note": one.scale.note if one.scale else "Return as the task pays it.",
            "scaled": one.scale is not None,
            "groups": [_cloud(cloud, one.scale) for cloud in one.clouds],
        },
        "plays": [_play(role, episode) for role, episode in one.episodes],
        "config": {key: value for key, value in run.raw.items() if key != "provenance"},
        "provenance": run.raw.get("provenance"),
    }


def profile_payload(profiles: Iterable[Profile]) -> list[Json]:
    """Performance profiles over all runs."""
    return [asdict(profile) | {"colour": look_of(profile.variant).colour} for profile in profiles]


def sweep_payload(sweeps: Iterable[Sweep]) -> list[Json]:
    """Sweeps over the period."""
    return [
        {
            "label": sweep.label,
            "score": sweep.score,
            "x": list(sweep.x),
            "settings": [_setting(setting) for setting in sweep.settings],
        }
        for sweep in sweeps
    ]


def clean(value: Any) -> Any:
    """With null for what JSON has no number for, so that a browser can read it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _setting(setting: Setting) -> Json:
    look = look_of(setting.variant)
    return {
        "variant": setting.variant,
        "colour": look.colour,
        "marker": look.marker,
        "coefficient": setting.coefficient,
        "dial": setting.dial,
        "pays": not setting.variant.endswith("-only") and setting.variant != "no-cost",
        **setting.score._asdict(),
        "mean_low": setting.mean_low,
        "mean_high": setting.mean_high,
        "large_share": setting.large_share,
        "flops": setting.flops,
        "saved": setting.saved,
        "period": setting.period,
        "agents": list(setting.agents),
    }


def _row(row: Row) -> Json:
    theirs = row.paper
    return {"note": row.note, "setting": _setting(row.setting), "paper": asdict(theirs) if theirs else None}


def _frontier(run: Run) -> Json | None:
    """Thin lines of each dial agent; the settings themselves are the bold ones."""
    if run.evaluation is None or not run.settings:
        return None
    scores = read(run.evaluation["agents"], run.evaluation["episodes"])
    variants = list(dict.fromkeys(setting.variant for setting in run.settings))
    return {
        "large_flops": large_flops(run.evaluation["agents"]),
        "agents": [_agent_line(line) for variant in variants for line in agent_lines(scores, variant)]
        + [_agent_line([score]) for score in scores if score.finite and not score.dial],
    }


def _agent_line(line: Sequence[Score]) -> Json:
    return {
        "agent": line[0].agent,
        "colour": look_of(line[0].variant).colour,
        "points": [[score.flops, score.score] for score in line],
    }


def _cloud(cloud: Cloud, scale: Scale | None) -> Json:
    heights = scale.apply(cloud.returns) if scale else cloud.returns
    look = look_of(cloud.variant)
    dots = np.column_stack([cloud.costs, heights, cloud.returns])[:DOTS_AT_MOST]
    return {
        "label": cloud.label,
        "agent": cloud.agent,
        "colour": look.colour,
        "marker": look.marker,
        "dots": [[round(float(value), 4) for value in row] for row in dots],
    }


def _play(role: Role, episode: Episode) -> Json:
    gears, header = len(episode.actions), episode.policy.header
    actions = np.round(episode.actions[..., :ACTIONS_AT_MOST] * ACTION_STEPS).astype(int)
    frames = sheet(episode)
    return {
        "label": role.label,
        "first": role.first,
        "star": role.star,
        "pays": header.forced_gear is None,
        "agent": role.agent,
        "seed": header.seed,
        "variant": header.variant,
        "coefficient": header.cost_coefficient,
        "stage": episode.stage,
        "total": episode.total,
        "cut": episode.cut,
        "success": episode.success,
        "saved": 1 - episode.flops_per_step / header.prices.gears[-1],
        "gears": [
            {
                "name": gear_name(gear, gears),
                "units": header.gears[gear],
                "colour": gear_colour(gear, gears),
                "share": episode.gear_share[gear],
                "flops": header.prices.gears[gear],
            }
            for gear in range(gears)
        ],
        "pick_flops": header.prices.pick,
        "gear": episode.gear.tolist(),
        "picks": np.flatnonzero(episode.picked).tolist(),
        "actions": actions.transpose(0, 2, 1).tolist(),
        "actions_left_out": max(0, header.act_dim - ACTIONS_AT_MOST),
        "reward": [float(f"{value:.4g}") for value in episode.reward],
        "every": episode.every,
        "frames": None
        if frames is None
        else {
            "source": "data:image/webp;base64," + base64.b64encode(frames.data).decode(),
            "columns": frames.columns,
            "width": frames.width,
            "height": frames.height,
            "count": frames.count,
        },
    }
