"""Scores and costs in words and rows, ours beside the paper's: for the page, as Markdown and as CSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lowgear.config.paper import Figures
from lowgear.report.frontier import setting_name
from lowgear.report.paper import mean, published_figures
from lowgear.report.runs import RunData
from lowgear.report.settings import Setting, named
from lowgear.report.style import pays, variant_style
from lowgear.report.text import MINUS, MISSING, csv_text, markdown_text, number, percent, score, score_pair, steps

Json = dict[str, Any]
COMPARED = ("task", "small-only", "large-only", "asymmetric", "large gear", "FLOPs saved")
CSV_COLUMNS = (
    "run,task,recipe,steps,variant,cost_coefficient,relative_coefficient,seeds,score_mean,score_std,score_best,score_iqm,score_iqm_low,"
    "score_iqm_high,large_share,period,flops_per_step,flops_saved,paper_score,paper_large_share,paper_flops_saved"
)


@dataclass(frozen=True)
class SummaryRow:
    """One of the settings that a summary names."""

    note: str  # which setting of the variant this is
    setting: Setting
    paper: Figures

    def cells(self, kind: str) -> list[tuple[str, str]]:
        """Score, share of the large gear and FLOPs saved: ours and the paper's."""
        ours, paper = self.setting, self.paper
        return [
            (
                score_pair(kind, ours.score.mean, ours.score.std),
                score_pair(kind, *paper.score) if paper.score else MISSING,
            ),
            (percent(ours.large_share), percent(mean(paper.large_share))),
            (percent(ours.saved), percent(paper.flops_reduction)),
        ]


def summary_rows(run: RunData) -> list[SummaryRow]:
    """The summary of a run; empty where it was not evaluated."""
    return [
        SummaryRow(note, setting, published_figures(run.task, setting.variant)) for note, setting in named(run.settings)
    ]


def markdown(run: RunData) -> str:
    """The summary as Markdown."""
    kind = run.evaluation.kind
    columns = f"{kind} (mean ± sd)|paper's {kind}|large gear|paper's|FLOPs saved|paper's|seeds".split("|")
    heads = ["", "λ", *columns]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in summary_rows(run):
        name = markdown_text(row.setting.variant) + (f" ({row.note})" if row.note else "")
        at = MISSING if row.setting.variant.endswith("-only") else row.setting.price.removeprefix("λ ")
        numbers = [text for pair in row.cells("return") for text in pair]
        cells = [name, at, *numbers, str(row.setting.score.seeds)]
        lines.append(f"| {' | '.join(cells)} |".replace(MINUS, "-"))
    return (
        f"### {markdown_text(f'{run.task.name}, {run.config.recipe.name}')} recipe, {run.evaluation.steps:,} steps\n\n"
        + "\n".join(lines)
        + "\n"
    )


def settings_csv(runs: Sequence[RunData]) -> str:
    """Every setting of every run."""
    lines: list[list[object]] = []
    for run in runs:
        for s in run.settings:
            paper = published_figures(run.task, s.variant)
            about = [run.name, run.task.name, run.config.recipe.name, run.evaluation.steps]
            about += [s.variant, s.coefficient, s.relative]
            ours = [s.score.seeds, s.score.mean, s.score.std, s.score.best, s.score.iqm, s.score.low, s.score.high]
            theirs = [mean(paper.score), mean(paper.large_share), paper.flops_reduction]
            lines.append([*about, *ours, s.large_share, s.period, s.flops, s.saved, *theirs])
    return csv_text(CSV_COLUMNS, lines)


def tiles(run: RunData) -> Json | None:
    """What the asymmetric agents score and save, at a glance."""
    found = [row for row in summary_rows(run) if row.setting.variant == "asymmetric"]
    if not found:
        return None
    row, kind = found[-1], run.evaluation.kind
    ours, paper = row.setting, row.paper
    large = next((s.score.mean for s in run.settings if s.variant == "large-only"), 0.0)
    second = ["best seed", score(kind, ours.score.best), kind]
    if large > 0:
        second = ["of large-only's return", percent(ours.score.mean / large), f"large-only: {score(kind, large)}"]
    spread = f"paper {score(kind, paper.score[0])}" if paper.score else f"± {score(kind, ours.score.std)}"
    saved = "against the large gear" if paper.flops_reduction is None else f"paper {percent(paper.flops_reduction)}"
    share = "" if paper.large_share is None else f"paper {percent(mean(paper.large_share))}"
    return {
        "lead": f"Asymmetric agents at {ours.price}" + (f" ({row.note})" if row.note else ""),
        "cells": [
            [kind, score(kind, ours.score.mean), spread],
            second,
            ["FLOPs saved", percent(ours.saved), saved],
            ["steps in the large gear", percent(ours.large_share), share],
        ],
    }


def summary(run: RunData) -> Json:
    """The summary of a run for the page."""
    rows = summary_rows(run)
    published = any(row.paper.score for row in rows)
    title = "Ours beside the paper's" if published or not rows else "Scores and costs"
    if not rows:
        return {"title": title, "none": "No table: the run has no finite evaluation."}
    hint = f"{run.evaluation.episodes} episodes for each agent; mean and standard deviation over seeds."
    if published:
        hint = f"Ours above, the paper's below. {hint}"
    if any(row.note for row in rows):
        hint += " Settings are chosen by the same scores that are shown, which flatters them a little."
    return {
        "title": title,
        "hint": hint,
        "caption": f"Scores and costs on {run.task.name}",
        "heads": ["controller", f"{run.evaluation.kind}, mean ± sd", "large gear", "FLOPs saved", "seeds", "steps"],
        "rows": [_summary_row(run, row, published) for row in rows],
    }


def comparison(runs: Sequence[RunData]) -> Json:
    """All runs, one row for each."""
    return {
        "title": "Means over seeds, with their standard deviations",
        "hint": "Asymmetric agents at the cheapest setting that keeps 95% of their best score. Below: the paper's.",
        "caption": "All runs",
        "heads": list(COMPARED),
        "rows": [_comparison_row(run, place) for place, run in enumerate(runs)],
    }


def card(run: RunData, setting: Setting) -> Json:
    """Everything about one setting."""
    kind, found = run.evaluation.kind, setting.score
    low, high = score(kind, setting.mean_low), score(kind, setting.mean_high)
    facts = {
        f"{kind}, mean ± sd": score_pair(kind, found.mean, found.std),
        "95% interval": f"{low} to {high}" if found.seeds > 1 else "one seed",
        "best seed": score(kind, found.best),
        "large gear": percent(setting.large_share),
        "FLOPs a step": number(setting.flops, 0),
        "FLOPs saved": percent(setting.saved),
        "steps a pick": "no picks" if setting.period is None else number(setting.period, 1),
        "seeds": str(found.seeds),
    }
    return {"name": setting_name(setting), "colour": variant_style(setting.variant).colour, "facts": facts}


def _summary_row(run: RunData, row: SummaryRow, published: bool) -> Json:
    setting, known = row.setting, row.paper.score is not None
    cells = [[ours, _papers(theirs) if published else None] for ours, theirs in row.cells(run.evaluation.kind)]
    cells.append([str(setting.score.seeds), "paper 5" if known else None])
    cells.append([steps(run.evaluation.steps), f"paper {steps(run.task.steps)}" if known else None])
    at = setting.price if pays(setting.variant) else ""
    note = ", ".join(filter(None, [at, row.note]))
    colour = variant_style(setting.variant).colour
    return {"key": setting.key, "colour": colour, "name": setting.variant, "note": note, "cells": cells}


def _comparison_row(run: RunData, place: int) -> Json:
    about = {"link": f"#run-{place}", "name": run.task.name, "note": run.name}
    last = {row.setting.variant: row for row in summary_rows(run)}
    if not last:
        return about | {"none": "not evaluated"}
    cells = {variant: row.cells(run.evaluation.kind) for variant, row in last.items()}
    nothing = [(MISSING, MISSING)] * 3
    pairs = [cells.get(variant, nothing)[0] for variant in COMPARED[1:4]] + cells.get("asymmetric", nothing)[1:]
    return about | {"cells": [[ours, _papers(theirs)] for ours, theirs in pairs]}


def _papers(text: str) -> str:
    """What stands below a number of ours."""
    return text if text == MISSING else f"paper {text}"
