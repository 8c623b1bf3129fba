"""The table of a run with the paper's figures beside ours: rows for the page, for Markdown and for CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from lowgear.config.tasks import Task, paper
from lowgear.report.runs import Run
from lowgear.report.settings import Setting, named

MISSING = "–"
COLUMNS = (
    "run,task,recipe,steps,variant,cost_coefficient,seeds,score_mean,score_std,score_best,score_iqm,score_iqm_low,"
    "score_iqm_high,large_share,period,flops_per_step,flops_saved,paper_score,paper_large_share,paper_flops_saved"
)


@dataclass(frozen=True)
class Printed:
    """What the paper prints for a variant of a task; None where it prints nothing."""

    score: tuple[float, float]  # mean and standard deviation of five seeds
    large_share: float | None
    saved: float | None


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    note: str  # which setting of the variant this is
    setting: Setting
    steps: int
    paper: Printed | None


def rows(run: Run) -> list[Row]:
    """The summary of a run; empty where it was not evaluated."""
    if run.evaluation is None:
        return []
    steps = int(run.evaluation["steps"])
    return [Row(note, setting, steps, printed(run.task, setting.variant)) for note, setting in named(run.settings)]


def with_success(run: Run) -> bool:
    """Whether the scores are success rates."""
    rows = run.evaluation["agents"] if run.evaluation else []
    return any(row["success_rate"] is not None for row in rows)


def printed(task: Task, variant: str) -> Printed | None:
    """The paper's figures for a variant of a task."""
    published = task.published
    if published is None:
        return None
    known = {
        "small-only": Printed(published.small_only, 0.0, None),
        "large-only": Printed(published.large_only, 1.0, 0.0),
        "asymmetric": Printed(published.asymmetric, published.large_share[0], published.flops_reduction),
    }
    ablation = paper()["ablation_table"]["rows"].get(task.name, {}).get(variant.replace("-", "_"))
    if ablation is not None:
        (mean, std), (share, _) = ablation
        known[variant] = Printed((mean, std), share / 100, None)
    return known.get(variant)


def markdown(run: Run) -> str:
    """The table as Markdown."""
    kind = "success rate" if with_success(run) else "return"
    heads = [
        "",
        "λ",
        f"{kind} (mean ± sd)",
        f"paper's {kind}",
        "large gear",
        "paper's",
        "FLOPs saved",
        "paper's",
        "seeds",
    ]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in rows(run):
        setting, theirs = row.setting, row.paper
        name = setting.variant + (f" ({row.note})" if row.note else "")
        cells = [
            name,
            MISSING if setting.variant.endswith("-only") else f"{setting.coefficient:.3g}",
            pair(setting.score.mean, setting.score.std),
            pair(*theirs.score) if theirs else MISSING,
            percent(setting.large_share),
            percent(theirs.large_share) if theirs else MISSING,
            percent(setting.saved),
            percent(theirs.saved) if theirs else MISSING,
            str(setting.score.seeds),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    steps = f"{run.evaluation['steps']:,} steps" if run.evaluation else "not evaluated"
    return f"### {run.task.name}, {run.config.recipe.name} recipe, {steps}\n\n" + "\n".join(lines) + "\n"


def sheet(runs: Sequence[Run]) -> str:
    """Every setting of every run as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS.split(","))
    for run in runs:
        for s in run.settings:
            theirs = printed(run.task, s.variant)
            ours = [s.score.seeds, s.score.mean, s.score.std, s.score.best, s.score.iqm, s.score.low, s.score.high]
            costs = [s.large_share, "" if s.period is None else s.period, s.flops, s.saved]
            steps = run.evaluation["steps"] if run.evaluation else ""
            paper_side = [theirs.score[0], theirs.large_share, theirs.saved] if theirs else [None] * 3
            writer.writerow(
                [run.name, run.task.name, run.config.recipe.name, steps, s.variant, s.coefficient, *ours, *costs]
                + ["" if value is None else value for value in paper_side]
            )
    return buffer.getvalue()


def pair(mean: float, std: float) -> str:
    """A mean with its spread, in as many digits as make sense."""
    digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 10 else 3 if abs(mean) < 1 else 2
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return MISSING if share is None else f"{share:.1%}"
