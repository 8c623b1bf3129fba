"""Return against cost, one dot for each episode: plays the episodes, with histograms on both margins.

Return is scaled as in the paper where it can be, cost so that the large gear alone is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lowgear.envs import make_env
from lowgear.evaluation.evaluate import flops_each, play_policies
from lowgear.policy.arrays import DoubleArray
from lowgear.report.figure import Chart, Figure, Numbers, Series, axis
from lowgear.report.paper import Scaling, scaling
from lowgear.report.runs import RunData
from lowgear.report.selection import Selected
from lowgear.report.settings import best, cheapest
from lowgear.report.style import variant_style
from lowgear.report.text import csv_text, number, percent

SEED = 1_000  # starts that `lowgear evaluate` has not used by default
BINS = 36
DOTS_AT_MOST = 400  # of each controller
DOTS, RINGS = 0.55, 0.5  # opacity of a variant's first setting, and of the others


@dataclass(frozen=True)
class ControllerEpisodes:
    """Many episodes of one controller."""

    selected: Selected
    returns: DoubleArray
    costs: DoubleArray  # FLOPs per step over the large gear's

    @property
    def variant(self) -> str:
        """Of the controller."""
        return self.selected.policy.header.variant


def play_episodes(run: RunData, selected: Sequence[Selected], episodes: int) -> list[ControllerEpisodes]:
    """`episodes` episodes of each controller where the run was trained."""
    if not selected or episodes < 1:
        return []
    policies = [one.policy for one in selected]
    played = play_policies(policies, partial(make_env, run.config), episodes, run.config.master, SEED)
    costs = [policy.header.cost for policy in policies]
    return [
        ControllerEpisodes(one, played.returns[place], flops_each(played, place, cost) / cost.gear_flops[-1])
        for place, (one, cost) in enumerate(zip(selected, costs, strict=True))
    ]


def for_scatter(run: RunData, selected: Sequence[Selected]) -> list[Selected]:
    """The main agent at its best and its cheapest good setting, and the baselines."""
    variants = {one.policy.header.variant for one in selected if one.main}
    own = [s for s in run.settings if s.variant in variants]
    wanted = (best(own), cheapest(own)) if own else ()
    return [
        one for one in selected if not one.main or one.first or any(s.is_of(one.agent, one.coefficient) for s in wanted)
    ]


def scatter_scaling(run: RunData, played: Sequence[ControllerEpisodes]) -> Scaling | None:
    """The paper's; its Fetch scores are success rates, which one episode does not have."""
    own = [float(one.returns.mean()) for one in played if one.variant == "large-only"]
    return None if run.task.hindsight else scaling(run.task, own[0] if own else None)


def describe(run: RunData, played: Sequence[ControllerEpisodes]) -> Figure:
    """The episodes of every controller."""
    scale = scatter_scaling(run, played)
    heights = [scale.apply(one.returns) if scale else one.returns for one in played]
    bins = _edges(np.concatenate([one.costs for one in played])), _edges(np.concatenate(heights))
    variants = [one.variant for one in played]
    series = [
        _series(one, height, bins, rings=variants.index(one.variant) < place)
        for place, (one, height) in enumerate(zip(played, heights, strict=True))
    ]
    across = axis("cost: share of the large gear's FLOPs", bins[0], format="percent")
    up = axis("return, scaled" if scale else "return", bins[1])
    episodes = len(played[0].returns)
    return Figure(
        name="scatter",
        heading=run.task.name,
        facts=f"{episodes} episodes each",
        note=f"Return: {scale.note}" if scale else "Return as the task pays it.",
        charts=(Chart(across, up, tuple(series), bins=bins),),
        size=(5.2, 4.6),
        title="Return against cost, episode by episode",
        hint=f"{episodes} episodes of each controller.",
    )


def _series(one: ControllerEpisodes, heights: DoubleArray, bins: tuple[Numbers, Numbers], rings: bool) -> Series:
    label = f"{one.selected.label} (agent {one.selected.agent})"
    shown = zip(one.returns[:DOTS_AT_MOST], one.costs, strict=False)
    return Series(
        tuple(np.round(one.costs[:DOTS_AT_MOST], 4).tolist()),
        tuple(np.round(heights[:DOTS_AT_MOST], 4).tolist()),
        variant_style(one.variant)._replace(size=4.0),
        label=label,
        hollow=rings,
        opacity=RINGS if rings else DOTS,
        hover=tuple(
            (label, f"return {number(total)}", f"{percent(cost)} of the large gear's FLOPs") for total, cost in shown
        ),
        counts=(_counts(one.costs, bins[0]), _counts(heights, bins[1])),
    )


def episodes_csv(played: Sequence[tuple[RunData, ControllerEpisodes]]) -> str:
    """Every episode."""
    lines: list[list[object]] = []
    for run, one in played:
        about = [run.name, run.task.name, one.selected.agent, one.variant, one.selected.coefficient]
        for place, (total, cost) in enumerate(zip(one.returns, one.costs, strict=True)):
            lines.append([*about, place, f"{total:.6g}", f"{cost:.6g}"])
    return csv_text("run,task,agent,variant,cost_coefficient,episode,return,cost_of_large", lines)


def _counts(values: DoubleArray, edges: Numbers) -> Numbers:
    return tuple(np.histogram(values, edges)[0].tolist())


def _edges(values: DoubleArray) -> Numbers:
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    return tuple(np.linspace(low, high, BINS + 1).tolist())
