"""The frontier: return against FLOPs per step.

Comes in: an evaluation. A dial agent is a thin line, the mean of its variant's agents a bold one; agents of one
coefficient are markers. The cost coefficients stand beside the means.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowgear.config.paper import NOTHING, Figures
from lowgear.policy.file import Policy
from lowgear.report.figure import Axis, Chart, Figure, Series, TopAxis, axis, heights, score_axis, shared_labels
from lowgear.report.matplotlib_figure import save
from lowgear.report.settings import Evaluation, Setting, agent_lines, aggregate, own_settings
from lowgear.report.style import OWN, Style, pays, variant_style
from lowgear.report.text import count, percent, score, score_interval, score_pair, short

LOG_FROM = 5.0  # ratio of the dearest agent's FLOPs to the cheapest's
REACH = 1.25  # how far beyond the outermost agents the axis follows their bars
NAMES = 12  # agents named in a note
HINT = "Up is better, left is cheaper. Hover or tab to a point to see its setting, click or press Enter to select it."


def draw(
    report: dict[str, Any], directory: Path, policies: Sequence[Policy] = (), name: str = "frontier"
) -> list[Path]:
    """Draw what `lowgear evaluate --json` prints of `policies` into `directory` as frontier.svg and frontier.png."""
    figure = describe(aggregate(report, own_settings(dict(enumerate(policies)))))
    return save(replace(figure, name=name), directory)


def describe(evaluation: Evaluation, paper: Figures = NOTHING) -> Figure:
    """The frontier of an evaluation, with the paper's asymmetric agents where they are known."""
    seeds, episodes = count(evaluation.seeds, "seed"), count(evaluation.episodes, "episode")
    return Figure(
        name="frontier",
        heading=evaluation.task,
        facts=f"{evaluation.recipe} recipe, {evaluation.steps:,} steps, {seeds}, {episodes} each",
        note=_note(evaluation),
        charts=(_chart(evaluation, paper),),
        size=(6.5, 4.2),
        title="Return against cost: the frontier",
        hint=HINT,
    )


def setting_name(setting: Setting) -> str:
    """Its variant and coefficient."""
    return f"{setting.variant}, {setting.price}" if pays(setting.variant) else setting.variant


def setting_score(kind: str, setting: Setting) -> str:
    """Its mean with the standard deviation over seeds, or with the interval over the episodes of a single one."""
    if setting.score.seeds > 1:
        return score_pair(kind, setting.score.mean, setting.score.std)
    return score_interval(kind, setting.score.mean, setting.mean_low, setting.mean_high)


def _chart(evaluation: Evaluation, paper: Figures) -> Chart:
    agents = [agent for setting in evaluation.settings for agent in setting.agents]
    if not agents:
        return Chart(Axis("FLOPs per step", 0, 1), Axis(evaluation.kind, 0, 1), ())
    large, lines = evaluation.large_flops, evaluation.lines()
    published = _published(evaluation.kind, paper, large)
    each = [series for line in lines for series in _agents(line)]
    flops = [a.flops for a in agents] + [x for series in published for x in series.x]
    low, high = min(flops), max(flops)
    flops += [max(a.flops - a.flops_ci95, low / REACH) for a in agents]
    flops += [min(a.flops + a.flops_ci95, high * REACH) for a in agents]
    log = high / low > LOG_FROM
    across = axis("FLOPs per step" + ", log scale" * log, flops, log)
    up = score_axis(evaluation.kind, [s.score.mean for s in evaluation.settings] + heights([*each, *published]))
    means = [_means(line, evaluation.kind, across, up) for line in lines]
    means += [_own(setting, evaluation.kind) for setting in evaluation.settings if setting.own and setting.dial]
    top = TopAxis("share of the large gear's FLOPs", 1 / large) if large else None
    return Chart(across, up, (*each, *means, *published), top)


def _agents(line: Sequence[Setting]) -> list[Series]:
    """Every agent by itself, dials with their intervals; one that is alone is its own mean, and only those are seen."""
    own, style = agent_lines(line), variant_style(line[0].variant)
    with_bars = line[0].dial or len(own) == 1
    return [
        Series(
            tuple(s.flops for s in scores),
            tuple(s.score for s in scores),
            style._replace(size=style.size / 2),
            line="solid",
            width=0.7,
            opacity=1.0 if len(own) == 1 else 0.4,
            interval=(tuple(s.low for s in scores), tuple(s.high for s in scores)) if with_bars else None,
            bars=True,
            x_error=tuple(s.flops_ci95 for s in scores),
        )
        for scores in own
    ]


def _means(line: Sequence[Setting], kind: str, across: Axis, up: Axis) -> Series:
    """The settings of a variant, which the page lets one select."""
    dial, variant = line[0].dial, line[0].variant
    x, y = tuple(s.flops for s in line), tuple(s.score.mean for s in line)
    names = [f"λ {short(s.coefficient)}" if s.relative is None else f"rel. {s.relative:.2g}" for s in line]
    several = max(s.score.seeds for s in line) > 1
    return Series(
        x,
        y,
        variant_style(variant),
        label=line[0].label,
        line="solid" if dial else "",
        width=1.8,
        interval=(tuple(s.mean_low for s in line), tuple(s.mean_high for s in line)) if several else None,
        bars=True,
        level=variant == "large-only",
        point_labels=shared_labels(names, x, y, across, up) if pays(variant) else (),
        hover=tuple(_hover(setting, kind) for setting in line),
        keys=tuple("" if setting.own and dial else setting.key for setting in line),
    )


def _own(setting: Setting, kind: str) -> Series:
    """The setting that is deployed, over the others."""
    style = variant_style(setting.variant)
    return Series(
        (setting.flops,),
        (setting.score.mean,),
        Style(style.colour, *OWN),
        label="own setting",
        hover=(_hover(setting, kind),),
        keys=(setting.key,),
    )


def _hover(setting: Setting, kind: str) -> tuple[str, ...]:
    return (
        setting_name(setting) + ", own setting" * setting.own,
        f"{kind} {setting_score(kind, setting)}",
        f"{percent(setting.saved)} of FLOPs saved",
        f"{percent(setting.large_share)} of steps in the large gear",
    )


def _published(kind: str, paper: Figures, large: float | None) -> list[Series]:
    """The paper's asymmetric agents, where their place is known."""
    if paper.score is None or paper.flops_reduction is None or large is None:
        return []
    height, style = paper.score[0], variant_style("asymmetric")
    says = ("Paper, asymmetric", f"{kind} {score(kind, height)}", f"{percent(paper.flops_reduction)} of FLOPs saved")
    x = ((1 - paper.flops_reduction) * large,)
    return [Series(x, (height,), style, label="paper's asymmetric", hollow=True, hover=(says,))]


def _note(evaluation: Evaluation) -> str:
    """How to read it, and what could not be drawn."""
    relative = any(setting.relative is not None for setting in evaluation.settings)
    notes = ["rel.: relative cost coefficient." if relative else "λ: cost coefficient."]
    if any(setting.own and setting.dial for setting in evaluation.settings):
        notes.append("Star: the policies' own setting, which export ships.")
    if any(setting.score.seeds > 1 for setting in evaluation.settings):
        notes.append("Large marks: means, with 95% bootstrap intervals over seeds;")
        dial = any(setting.dial for setting in evaluation.settings)
        notes.append("\nsmall, faint ones: each agent" + ", with 95% intervals over episodes" * dial + ".")
    else:
        notes.append("Bars: 95% intervals over episodes.")
    if evaluation.left_out:
        agents = sorted(set(evaluation.left_out))
        names = ", ".join(map(str, agents[:NAMES])) + ", …" * (len(agents) > NAMES)
        missing = f"{len(evaluation.left_out)} of {count(evaluation.scores, 'score')}"
        notes.append(f"\nLeft out, not finite: {missing} (agent {names}).")
    return " ".join(notes)
