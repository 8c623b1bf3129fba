"""Scores and costs in words and rows, ours beside the paper's: for the page, as Markdown and as CSV."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lowgear.config.paper import Figures
from lowgear.config.tasks import imported_module
from lowgear.policy.setting import own_setting, same_setting
from lowgear.report.frontier import setting_name, setting_score
from lowgear.report.paper import mean, published_figures
from lowgear.report.runs import RunData
from lowgear.report.settings import OWN_NOTE, Setting, headline, named
from lowgear.report.style import pays, variant_style
from lowgear.report.text import (
    MINUS,
    MISSING,
    count,
    csv_text,
    interval,
    markdown_text,
    microseconds,
    number,
    percent,
    score,
    score_pair,
    steps,
)
from lowgear.report.timing import StepTimes

Json = dict[str, Any]
FEW_EPISODES, FEW_SEEDS = 50, 3  # fewer of either say little
COMPARED = ("task", "small-only", "large-only", "asymmetric", "large gear", "FLOPs saved")
CSV_COLUMNS = (
    "run,task,recipe,steps,variant,cost_coefficient,relative_coefficient,seeds,score_mean,score_std,score_best,score_iqm,score_iqm_low,"
    "score_iqm_high,success_rate,large_share,period,flops_per_step,flops_saved,paper_score,paper_large_share,paper_flops_saved"
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
            (setting_score(kind, ours), score_pair(kind, *paper.score) if paper.score else MISSING),
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
    columns = f"{_scored_by(run)}|paper's {kind}|large gear|paper's|FLOPs saved|paper's|seeds".split("|")
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


def cautions(run: RunData) -> list[str]:
    """What to keep in mind where there is too little data to tell controllers apart."""
    evaluation, found = run.evaluation, []
    if not evaluation.settings:
        return []
    if evaluation.episodes < FEW_EPISODES:
        words = ["lowgear", "evaluate", str(run.path), "--frontier", "7", "--episodes", "200", *_trust(run)]
        found.append(
            f"{count(evaluation.episodes, 'episode')} of each controller: differences between scores may be chance. "
            f"`{shlex.join(words)}` narrows the intervals."
        )
    if evaluation.seeds < FEW_SEEDS:
        trained = "One trained agent" if evaluation.seeds == 1 else f"{evaluation.seeds} trained agents"
        found.append(
            f"{trained} of each variant: another seed may learn something else, which no number of episodes shows. "
            "`lowgear train … --seeds 0-4` trains five."
        )
    return found


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
            lines.append([*about, *ours, s.success, s.large_share, s.period, s.flops, s.saved, *theirs])
    return csv_text(CSV_COLUMNS, lines)


def tiles(run: RunData, times: StepTimes | None = None) -> Json | None:
    """What the asymmetric agents score and save, at a glance."""
    found = [row for row in summary_rows(run) if row.setting.variant == "asymmetric"]
    if not found:
        return None
    kind = run.evaluation.kind
    chosen = headline([row.setting for row in found])
    row = next(row for row in found if row.setting.key == chosen.key)
    ours, paper = row.setting, row.paper
    large = next((s.score.mean for s in run.settings if s.variant == "large-only"), 0.0)
    second = ["best seed", score(kind, ours.score.best), kind]
    if large > 0:
        data = f", {_data(run)}" if cautions(run) else ""
        second = ["of large-only's return", percent(ours.score.mean / large), f"large-only: {score(kind, large)}{data}"]
    said = [interval(kind, ours.mean_low, ours.mean_high)]
    said += [f"paper {score(kind, paper.score[0])}"] if paper.score else []
    saved = "against the large gear" if paper.flops_reduction is None else f"paper {percent(paper.flops_reduction)}"
    share = "" if paper.large_share is None else f"paper {percent(mean(paper.large_share))}"
    return {
        "lead": f"Asymmetric agents at {ours.price}" + (f" ({row.note})" if row.note else ""),
        "cells": [
            [kind, score(kind, ours.score.mean), ", ".join(said)],
            second,
            *([["success rate", percent(ours.success), "at the episodes' last step"]] if _has_success(run) else []),
            ["FLOPs saved", percent(ours.saved), saved],
            *_time_tile(ours, times),
            ["steps in the large gear", percent(ours.large_share), share],
        ],
    }


def summary(run: RunData, times: StepTimes | None = None) -> Json:
    """The summary of a run for the page."""
    rows = summary_rows(run)
    published = any(row.paper.score for row in rows)
    title = "Ours beside the paper's" if published or not rows else "Scores and costs"
    if not rows:
        return {"title": title, "none": "No table: the run has no finite evaluation."}
    hint = f"{count(run.evaluation.episodes, 'episode')} for each agent; {_spread_words(run)}."
    success = ["success"] if _has_success(run) else []
    if published:
        hint = f"Ours above, the paper's below. {hint}"
    if any(row.note for row in rows):
        hint += " Settings are chosen by the same scores that are shown, which flatters them a little."
    if times is not None:
        hint += f" Microseconds of a mean step as C, measured with this report on {times.machine}."
    return {
        "title": title,
        "hint": hint,
        "caption": f"Scores and costs on {run.task.name}",
        "heads": ["controller", _scored_by(run), *success, "large gear", "FLOPs saved", "µs a step", "seeds", "steps"],
        "rows": [_summary_row(run, row, published, times) for row in rows],
    }


def comparison(runs: Sequence[RunData]) -> Json:
    """All runs, one row for each."""
    return {
        "title": "Means over seeds, with their standard deviations; of one seed, 95% intervals over episodes",
        "hint": "Asymmetric agents at their own setting, which export ships. Below: the paper's.",
        "caption": "All runs",
        "heads": list(COMPARED),
        "rows": [_comparison_row(run, place) for place, run in enumerate(runs)],
    }


def card(run: RunData, setting: Setting, times: StepTimes | None = None, main: int | None = None) -> Json:
    """Everything about one setting, and how to export it: the main agent where it is one of the setting's."""
    kind, found = run.evaluation.kind, setting.score
    several = found.seeds > 1
    facts = {
        kind: score_pair(kind, found.mean, found.std) if several else score(kind, found.mean),
        f"95% over {'seeds' if several else 'episodes'}": interval(kind, setting.mean_low, setting.mean_high),
        **({"best seed": score(kind, found.best)} if several else {}),
        **({"success rate": percent(setting.success)} if setting.success is not None else {}),
        "large gear": percent(setting.large_share),
        "FLOPs a step": number(setting.flops, 0),
        "FLOPs saved": percent(setting.saved),
        **({"time a step": microseconds(times.of(setting))} if times else {}),
        "steps a pick": "no picks" if setting.period is None else number(setting.period, 1),
        "seeds": str(found.seeds),
    }
    return {
        "name": setting_name(setting),
        "note": OWN_NOTE if setting.own else "",
        "colour": variant_style(setting.variant).colour,
        "facts": facts,
        "export": export_command(run, setting, main),
    }


def export_command(run: RunData, setting: Setting, main: int | None = None) -> str:
    """What writes the setting's main or else its best agent as C, to be typed where the report was made."""
    one = max(setting.agents, key=lambda score: (score.agent == main, score.score))
    words = ["lowgear", "export", str(run.path), "--format", "c"]
    if run.path.is_dir():  # a policy file is one agent
        words += ["--agent", str(one.agent)]
    policy = run.policies.get(one.agent)
    if policy is not None and policy.turns and not same_setting(own_setting(policy), one.coefficient):
        words.append(f"--cost-coefficient={one.coefficient!r}")
    return shlex.join([*words, *_trust(run)])


def _trust(run: RunData) -> list[str]:
    """What a command needs to play the run's task, which whoever made the report has trusted."""
    return ["--trust"] if imported_module(run.config.task) is not None else []


def _time_tile(setting: Setting, times: StepTimes | None) -> list[list[str]]:
    """The microseconds of a step, beside those of the large gear alone."""
    taken = None if times is None else times.of(setting)
    if times is None or taken is None:
        return []
    return [["a step of the C controller", microseconds(taken), f"large gear: {microseconds(times.gears_us[-1])}"]]


def _has_success(run: RunData) -> bool:
    """Whether its environments tell of success, though they are judged by their return."""
    return any(setting.success is not None for setting in run.settings)


def _data(run: RunData) -> str:
    return f"{count(run.evaluation.episodes, 'episode')}, {count(run.evaluation.seeds, 'seed')}"


def _scored_by(run: RunData) -> str:
    """What stands in the column of scores."""
    kind, seeds = run.evaluation.kind, {setting.score.seeds > 1 for setting in run.settings}
    return f"{kind}, mean ± sd" if seeds == {True} else f"{kind} (95% interval)" if seeds == {False} else kind


def _spread_words(run: RunData) -> str:
    seeds = {setting.score.seeds > 1 for setting in run.settings}
    words = {True: "mean and standard deviation over seeds", False: "of one seed, 95% interval over episodes"}
    return "; ".join(words[several] for several in (True, False) if several in seeds)


def _summary_row(run: RunData, row: SummaryRow, published: bool, times: StepTimes | None) -> Json:
    setting, known = row.setting, row.paper.score is not None
    cells = [[ours, _papers(theirs) if published else None] for ours, theirs in row.cells(run.evaluation.kind)]
    if _has_success(run):
        cells.insert(1, [percent(setting.success), None])
    cells.append([microseconds(times.of(setting) if times else None).removesuffix(" µs"), None])
    cells.append([str(setting.score.seeds), "paper 5" if known else None])
    cells.append([steps(run.evaluation.steps), f"paper {steps(run.task.steps)}" if known else None])
    at = setting.price if pays(setting.variant) else ""
    note = ", ".join(filter(None, [at, row.note]))
    colour = variant_style(setting.variant).colour
    return {"key": setting.key, "colour": colour, "name": setting.variant, "note": note, "cells": cells}


def _comparison_row(run: RunData, place: int) -> Json:
    about = {"link": f"#run-{place}", "name": run.task.name, "note": run.name}
    rows = summary_rows(run)
    last = {row.setting.variant: row for row in rows if not row.setting.own}
    last |= {row.setting.variant: row for row in rows if row.setting.own}
    if not last:
        return about | {"none": "not evaluated"}
    cells = {variant: row.cells(run.evaluation.kind) for variant, row in last.items()}
    nothing = [(MISSING, MISSING)] * 3
    pairs = [cells.get(variant, nothing)[0] for variant in COMPARED[1:4]] + cells.get("asymmetric", nothing)[1:]
    return about | {"cells": [[ours, _papers(theirs)] for ours, theirs in pairs]}


def _papers(text: str) -> str:
    """What stands below a number of ours."""
    return text if text == MISSING else f"paper {text}"
