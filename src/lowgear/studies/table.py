"""A study's rows as a table: on a terminal, and as CSV, Markdown and LaTeX beside each other."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.table import Table

from lowgear.config.paper import Pair
from lowgear.report.text import csv_text
from lowgear.studies.rows import TableRow, aggregate

Column = tuple[str, Callable[[TableRow], str]]
RATE = 2  # scores nearer to zero are shown as success rates are
SMALL = 0.1  # and those below with three digits


def _number(value: float | None, like: float | None = None) -> str:
    """One decimal place, or three for rates, and more for what is smaller still; as many as `like` would have."""
    if value is None:
        return ""
    size = abs(value if like is None else like)
    digits = 1 if size >= RATE else 3 if not 0 < size < SMALL else min(9, 2 - math.floor(math.log10(size)))
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never minus zero


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _score(pair: Pair | None) -> str:
    return "" if pair is None else f"{_number(pair[0])} ± {_number(pair[1], pair[0])}"


def _share(pair: Pair | None) -> str:
    return "" if pair is None else f"{_percent(pair[0])} ± {_percent(pair[1])}"


def _own_score(row: TableRow) -> str:
    return _score((row.score.mean, row.score.std))


def _own_share(name: str) -> Callable[[TableRow], str]:
    return lambda row: _share((row.mean(name), row.std(name)))


def _iqm(row: TableRow) -> str:
    iqm, low, high = (_number(value, row.score.iqm) for value in row.score[4:])
    return f"{iqm} [{low}, {high}]"


COLUMNS: list[Column] = [
    ("task", lambda row: row.task.name),
    ("agents", lambda row: row.label),
    ("steps", lambda row: f"{row.steps:,}" if row.steps else ""),
    ("seeds", lambda row: str(len(row.seeds))),
    ("score", _own_score),
    ("IQM [95%]", _iqm),
    ("best (saved)", lambda row: f"{_number(row.best.score)} ({_percent(row.best.flops_reduction)})"),
    ("large", _own_share("large_share")),
    ("FLOPs/step", lambda row: f"{row.mean('flops_per_step'):,.0f}"),
    ("saved", _own_share("flops_reduction")),
    ("paper: score", lambda row: _score(row.paper.score)),
    ("paper: best", lambda row: _number(row.paper.best)),
    ("paper: large", lambda row: _share(row.paper.large_share)),
    ("paper: saved", lambda row: _percent(row.paper.flops_reduction)),
]
# What fits on 80 columns.
NARROW: list[Column] = [
    ("agents", lambda row: row.label),
    ("n", lambda row: str(len(row.seeds))),
    ("score", _own_score),
    ("IQM [95%]", _iqm),
    ("large", lambda row: _percent(row.mean("large_share"))),
    ("saved", lambda row: _percent(row.mean("flops_reduction"))),
    ("paper", lambda row: _number(row.paper.score[0] if row.paper.score else None)),
]


def _used(rows: Sequence[TableRow], columns: Sequence[Column] = COLUMNS) -> list[Column]:
    """Columns that say something: policies of one width alone have no gears to share and nothing to save."""
    alone = all(row.mean("large_share") == 1 for row in rows)
    return [
        (name, cell) for name, cell in columns if any(map(cell, rows)) and not (alone and name in ("large", "saved"))
    ]


def _told(name: str, form: Callable[[float], str]) -> Callable[[TableRow], str]:
    """A cell of what is told of deployed controllers alone; empty in other studies."""

    def cell(row: TableRow) -> str:
        value = row.told(name)
        return "" if value is None or row.told("weight_bytes") is None else form(value)

    return cell


DEPLOYED: list[Column] = [
    ("bytes", _told("weight_bytes", "{:,.0f}".format)),
    ("ns/step", _told("step_ns", "{:,.0f}".format)),
    ("decisions", _told("decisions", "{:,.0f}".format)),
    ("repeated", _told("repeated_share", _percent)),
    ("jerk", _told("jerk", "{:.3f}".format)),
]
COLUMNS += DEPLOYED
# What fits on 80 columns of controllers as they are deployed.
NARROW_DEPLOYED: list[Column] = [
    ("agents", lambda row: row.label),
    ("score", _own_score),
    ("FLOPs", lambda row: f"{row.mean('flops_per_step'):,.0f}"),
    *((name.removesuffix("/step").replace("decisions", "dec.").replace("repeated", "rep."), c) for name, c in DEPLOYED),
]


def terminal(rows: Sequence[TableRow]) -> list[Table]:
    """For rich, a table for each task."""
    tables = []
    for task in dict.fromkeys(row.task.name for row in rows):
        own = [row for row in rows if row.task.name == task]
        table = Table(title=f"{task}, {own[0].steps:,} steps", title_justify="left", box=box.SIMPLE_HEAD)
        table.padding = (0, 1, 0, 0)
        deployed = any(row.told("weight_bytes") is not None for row in own)
        columns = _used(own, NARROW_DEPLOYED if deployed else NARROW)
        for i, (name, _) in enumerate(columns):
            table.add_column(name, justify="right" if i else "left", no_wrap=True)
        for row in own:
            table.add_row(*(cell(row) for _, cell in columns))
        tables.append(table)
    return tables


def notes(rows: Sequence[TableRow]) -> list[str]:
    """The scores over all tasks, in words."""
    totals = aggregate(rows)
    if not totals:
        return []
    tasks, seeds = len({row.task.name for row in rows}), len(rows[0].seeds)
    shown = "; ".join(f"{label} {iqm:.3f} [{low:.3f}, {high:.3f}]" for label, (iqm, low, high) in totals.items())
    return [f"Over {tasks} tasks, {seeds} seeds each, scaled so that random is 0 and large-only 1: {shown}."]


def markdown(title: str, rows: Sequence[TableRow], remarks: Sequence[str]) -> str:
    """A page of one table."""
    columns = _used(rows)
    lines = ["| " + " | ".join(cell(row) for _, cell in columns) + " |" for row in rows]
    head = ["| " + " | ".join(name for name, _ in columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([f"# {title}", "", *head, *lines, "", *(f"{remark}\n" for remark in remarks)])


def latex(title: str, rows: Sequence[TableRow], remarks: Sequence[str]) -> str:
    """A table environment for booktabs."""
    columns = _used(rows)
    lines = [
        r"\begin{table}",
        rf"\caption{{{_tex(title)}}}",
        rf"\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}",
        r"\toprule",
        " & ".join(_tex(name) for name, _ in columns) + r" \\",
        r"\midrule",
        *(" & ".join(_tex(cell(row)) for _, cell in columns) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(_tex(remark) + r"\par" for remark in remarks),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def comma_separated(rows: Sequence[TableRow]) -> str:
    """Plain numbers; shares and reductions are fractions of 1."""
    records = [_record(row) for row in rows]
    return csv_text(",".join(records[0]), (record.values() for record in records))


def _record(row: TableRow) -> dict[str, Any]:
    """Columns of the CSV; what is None stays empty there."""
    paper = row.paper
    return {
        "task": row.task.name,
        "agents": row.label,
        "steps": row.steps,
        **{f"score_{name}" if name != "seeds" else name: value for name, value in row.score._asdict().items()},
        "large_share": row.mean("large_share"),
        "large_share_std": row.std("large_share"),
        "flops_per_step": row.mean("flops_per_step"),
        "flops_reduction": row.mean("flops_reduction"),
        "flops_reduction_std": row.std("flops_reduction"),
        "best_flops_reduction": row.best.flops_reduction,
        **{name: row.told(name) for name in ("decisions", "repeated_share", "jerk", "weight_bytes", "step_ns")},
        "paper_score": paper.score and paper.score[0],
        "paper_score_std": paper.score and paper.score[1],
        "paper_best": paper.best,
        "paper_large_share": paper.large_share and paper.large_share[0],
        "paper_flops_reduction": paper.flops_reduction,
    }


def _tex(text: str) -> str:
    for plain, command in (("%", r"\%"), ("_", r"\_"), ("&", r"\&"), ("±", r"$\pm$"), ("λ", r"$\lambda$")):
        text = text.replace(plain, command)
    return text
