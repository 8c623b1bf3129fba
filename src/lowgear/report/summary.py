"""The table of a run with the paper's figures beside ours, as Markdown, and every setting as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from lowgear.report.paper import Printed, printed
from lowgear.report.runs import RunData
from lowgear.report.settings import Setting, named
from lowgear.report.text import MINUS, MISSING, pair, percent

COLUMNS = (
    "run,task,recipe,steps,variant,cost_coefficient,seeds,score_mean,score_std,score_best,score_iqm,score_iqm_low,"
    "score_iqm_high,large_share,period,flops_per_step,flops_saved,paper_score,paper_large_share,paper_flops_saved"
)


@dataclass(frozen=True)
class SummaryRow:
    """One line of the table."""

    note: str  # which setting of the variant this is
    setting: Setting
    paper: Printed | None


def rows(run: RunData) -> list[SummaryRow]:
    """The summary of a run; empty where it was not evaluated."""
    return [SummaryRow(note, setting, printed(run.task, setting.variant)) for note, setting in named(run.settings)]


def markdown(run: RunData) -> str:
    """The table as Markdown."""
    kind = run.score_kind
    columns = f"{kind} (mean ± sd)|paper's {kind}|large gear|paper's|FLOPs saved|paper's|seeds".split("|")
    heads = ["", "λ", *columns]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in rows(run):
        setting, theirs = row.setting, row.paper
        cells = [
            setting.variant + (f" ({row.note})" if row.note else ""),
            MISSING if setting.variant.endswith("-only") else f"{setting.coefficient:.3g}",
            pair(setting.score.mean, setting.score.std),
            pair(*theirs.score) if theirs else MISSING,
            percent(setting.large_share),
            percent(theirs.large_share if theirs else None),
            percent(setting.saved),
            percent(theirs.saved if theirs else None),
            str(setting.score.seeds),
        ]
        lines.append(f"| {' | '.join(cells)} |".replace(MINUS, "-"))
    return f"### {run.task.name}, {run.config.recipe.name} recipe, {run.steps:,} steps\n\n" + "\n".join(lines) + "\n"


def settings_csv(runs: Sequence[RunData]) -> str:
    """Every setting of every run."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS.split(","))
    for run in runs:
        for s in run.settings:
            paper = printed(run.task, s.variant)
            about = [run.name, run.task.name, run.config.recipe.name, run.steps, s.variant, s.coefficient]
            ours = [s.score.seeds, s.score.mean, s.score.std, s.score.best, s.score.iqm, s.score.low, s.score.high]
            theirs = [paper.score[0], paper.large_share, paper.saved] if paper else [None] * 3
            writer.writerow([*about, *ours, s.large_share, s.period, s.flops, s.saved, *theirs])
    return buffer.getvalue()
