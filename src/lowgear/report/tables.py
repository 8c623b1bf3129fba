"""Scores and costs in words and rows for the page, ours beside the paper's."""

from collections.abc import Sequence
from typing import Any

from lowgear.report.frontier import setting_name
from lowgear.report.runs import RunData
from lowgear.report.settings import Setting
from lowgear.report.style import pays, variant_style
from lowgear.report.summary import SummaryRow, rows
from lowgear.report.text import MISSING, number, percent, score, score_pair, short, steps

Json = dict[str, Any]
COMPARED = ("task", "small-only", "large-only", "asymmetric", "large gear", "FLOPs saved")


def tiles(run: RunData) -> Json | None:
    """What the asymmetric agents score and save, at a glance."""
    found = [row for row in rows(run) if row.setting.variant == "asymmetric"]
    if not found:
        return None
    row, kind = found[-1], run.score_kind
    ours, paper = row.setting, row.paper
    large = next((s.score.mean for s in run.settings if s.variant == "large-only"), None)
    spread = f"paper {score(kind, paper.score[0])}" if paper else f"± {score(kind, ours.score.std)}"
    if large is not None and large > 0:
        second = ["of large-only's return", percent(ours.score.mean / large), f"large-only: {score(kind, large)}"]
    else:
        second = ["best seed", score(kind, ours.score.best), kind]
    saved = f"paper {percent(paper.saved)}" if paper and paper.saved is not None else "against the large gear"
    share = f"paper {percent(paper.large_share)}" if paper else ""
    at = [f"at λ {short(ours.coefficient)}", f"({row.note})" if row.note else ""]
    return {
        "lead": " ".join(filter(None, ["Asymmetric agents", *at])),
        "cells": [
            [kind, score(kind, ours.score.mean), spread],
            second,
            ["FLOPs saved", percent(ours.saved), saved],
            ["steps in the large gear", percent(ours.large_share), share],
        ],
    }


def summary(run: RunData) -> Json:
    """The table of a run."""
    found = rows(run)
    published = any(row.paper for row in found)
    title = "Ours beside the paper's" if published or not found else "Scores and costs"
    if not found or run.evaluation is None:
        return {"title": title, "none": "No table: the run has no finite evaluation."}
    hint = [
        "Ours above, the paper's below." if published else "",
        f"{run.evaluation.episodes} episodes for each agent; mean and standard deviation over seeds.",
        "Settings are chosen by the same scores that are shown, which flatters them a little."
        if any(row.note for row in found)
        else "",
    ]
    return {
        "title": title,
        "hint": " ".join(filter(None, hint)),
        "caption": f"Scores and costs on {run.task.name}",
        "heads": ["controller", f"{run.score_kind}, mean ± sd", "large gear", "FLOPs saved", "seeds", "steps"],
        "rows": [_summary_row(run, row, published) for row in found],
    }


def comparison(runs: Sequence[RunData]) -> Json:
    """All runs, one row for each."""
    return {
        "title": "Means over seeds",
        "hint": "Asymmetric agents at the cheapest setting that keeps 95% of their best score. Below: the paper's.",
        "caption": "All runs",
        "heads": list(COMPARED),
        "rows": [_comparison_row(run, number) for number, run in enumerate(runs)],
    }


def card(run: RunData, setting: Setting) -> Json:
    """Everything about one setting."""
    kind, found = run.score_kind, setting.score
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
    ours, paper, kind = row.setting, row.paper, run.score_kind
    theirs: list[str | None] = [None] * 5
    if published:
        theirs[:3] = [MISSING] * 3
    if paper:
        printed = [percent(paper.large_share), percent(paper.saved), "5", steps(run.task.steps)]
        said = [f"paper {text}" if text != MISSING else text for text in printed]
        theirs = [f"paper {score_pair(kind, *paper.score)}", *said]
    mean = score_pair(kind, ours.score.mean, ours.score.std)
    cells = [mean, percent(ours.large_share), percent(ours.saved), str(ours.score.seeds), steps(run.steps)]
    at = f"λ {short(ours.coefficient)}" if pays(ours.variant) else ""
    return {
        "key": ours.key,
        "colour": variant_style(ours.variant).colour,
        "name": ours.variant,
        "note": ", ".join(filter(None, [at, row.note])),
        "cells": [list(pair) for pair in zip(cells, theirs, strict=True)],
    }


def _comparison_row(run: RunData, place: int) -> Json:
    about = {"link": f"#run-{place}", "name": run.task.name, "note": run.name}
    last = {row.setting.variant: row for row in rows(run)}
    if not last:
        return about | {"none": "not evaluated"}

    def cell(variant: str, what: str) -> list[str]:
        row = last.get(variant)
        if row is None:
            return [MISSING, MISSING]
        if what == "score":
            ours = score(run.score_kind, row.setting.score.mean)
            theirs = score(run.score_kind, row.paper.score[0]) if row.paper else MISSING
        else:
            ours, theirs = percent(getattr(row.setting, what)), percent(getattr(row.paper, what, None))
        return [ours, MISSING if theirs == MISSING else f"paper {theirs}"]

    scores = [cell(variant, "score") for variant in COMPARED[1:4]]
    return about | {"cells": [*scores, cell("asymmetric", "large_share"), cell("asymmetric", "saved")]}
