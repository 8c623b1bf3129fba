"""A study's lines as a table: on a terminal, and as CSV, Markdown and LaTeX beside each other."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.table import Table

from lowgear.studies.lines import Line, Overall

Column = tuple[str, Callable[[Line], str]]
EMPTY = ""
RATE = 2  # scores nearer to zero are shown as success rates are


def _number(value: float, like: float | None = None) -> str:
    """One decimal place, or three for rates; as many as `like` would have."""
    return f"{value:.1f}" if abs(value if like is None else like) >= RATE else f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _score(pair: tuple[float, float] | None) -> str:
    return EMPTY if pair is None else f"{_number(pair[0])} ± {_number(pair[1], pair[0])}"


def _share(pair: tuple[float, float] | None) -> str:
    return EMPTY if pair is None else f"{_percent(pair[0])} ± {_percent(pair[1])}"


def _middle(line: Line) -> str:
    iqm, low, high = (_number(value, line.score.iqm) for value in line.score[4:])
    return f"{iqm} [{low}, {high}]"


def _best(line: Line) -> str:
    return f"{_number(line.best.score)} ({_percent(line.best.flops_reduction)})"


COLUMNS: list[Column] = [
    ("task", lambda line: line.task.name),
    ("agents", lambda line: line.label),
    ("steps", lambda line: f"{line.steps:,}" if line.steps else EMPTY),
    ("seeds", lambda line: str(len(line.seeds))),
    ("score", lambda line: _score((line.score.mean, line.score.std))),
    ("IQM [95%]", _middle),
    ("best (saved)", _best),
    ("large", lambda line: _share((line.mean("large_share"), line.std("large_share")))),
    ("FLOPs/step", lambda line: f"{line.mean('flops_per_step'):,.0f}"),
    ("saved", lambda line: _share((line.mean("flops_reduction"), line.std("flops_reduction")))),
    ("paper: score", lambda line: _score(line.paper.score)),
    ("paper: best", lambda line: EMPTY if line.paper.best is None else _number(line.paper.best)),
    ("paper: large", lambda line: _share(line.paper.large_share)),
    (
        "paper: saved",
        lambda line: EMPTY if line.paper.flops_reduction is None else _percent(line.paper.flops_reduction),
    ),
]
# What fits on 80 columns.
NARROW: list[Column] = [
    ("agents", lambda line: line.label),
    ("n", lambda line: str(len(line.seeds))),
    ("score", lambda line: _score((line.score.mean, line.score.std))),
    ("IQM [95%]", _middle),
    ("large", lambda line: _percent(line.mean("large_share"))),
    ("saved", lambda line: _percent(line.mean("flops_reduction"))),
    ("paper", lambda line: EMPTY if line.paper.score is None else _number(line.paper.score[0])),
]
OVERALL = "Over {tasks} tasks, {seeds} seeds each, scaled so that random is 0 and large-only 1: "


def _used(lines: Sequence[Line], columns: Sequence[Column] = COLUMNS) -> list[Column]:
    """Columns that say something: policies of one width alone have no gears to share and nothing to save."""
    alone = all(line.mean("large_share") == 1 for line in lines)
    said = [column for column in columns if any(column[1](line) for line in lines)]
    return [column for column in said if not (alone and column[0] in ("large", "saved"))]


def terminal(lines: Sequence[Line]) -> list[Table]:
    """For rich, a table for each task."""
    tables = []
    for task in dict.fromkeys(line.task.name for line in lines):
        mine = [line for line in lines if line.task.name == task]
        table = Table(title=f"{task}, {mine[0].steps:,} steps", title_justify="left", box=box.SIMPLE_HEAD)
        table.padding = (0, 1, 0, 0)
        columns = _used(mine, NARROW)
        for i, (name, _) in enumerate(columns):
            table.add_column(name, justify="right" if i else "left", no_wrap=True)
        for line in mine:
            table.add_row(*(cell(line) for _, cell in columns))
        tables.append(table)
    return tables


def notes(totals: Sequence[Overall]) -> list[str]:
    """The scores over all tasks, in words."""
    if not totals:
        return []
    first = OVERALL.format(tasks=totals[0].tasks, seeds=totals[0].seeds)
    return [first + "; ".join(f"{t.label} {t.iqm:.3f} [{t.low:.3f}, {t.high:.3f}]" for t in totals) + "."]


def markdown(title: str, lines: Sequence[Line], remarks: Sequence[str]) -> str:
    """A page of one table."""
    columns = _used(lines)
    rows = ["| " + " | ".join(cell(line) for _, cell in columns) + " |" for line in lines]
    head = ["| " + " | ".join(name for name, _ in columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([f"# {title}", "", *head, *rows, "", *(f"{remark}\n" for remark in remarks)])


def latex(title: str, lines: Sequence[Line], remarks: Sequence[str]) -> str:
    """A table environment for booktabs."""
    columns = _used(lines)
    rows = [" & ".join(_tex(cell(line)) for _, cell in columns) + r" \\" for line in lines]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_tex(title)}}}",
            rf"\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}",
            r"\toprule",
            " & ".join(_tex(name) for name, _ in columns) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *(_tex(remark) + r"\par" for remark in remarks),
            r"\end{table}",
            "",
        ]
    )


def comma_separated(lines: Sequence[Line]) -> str:
    """Plain numbers, one row for each line; shares and reductions are fractions of 1."""
    rows = [_record(line) for line in lines]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _record(line: Line) -> dict[str, Any]:
    paper_score, paper_share = line.paper.score or (EMPTY, EMPTY), line.paper.large_share or (EMPTY, EMPTY)
    return {
        "task": line.task.name,
        "agents": line.label,
        "steps": line.steps,
        **{f"score_{name}" if name != "seeds" else name: value for name, value in line.score._asdict().items()},
        "large_share": line.mean("large_share"),
        "large_share_std": line.std("large_share"),
        "flops_per_step": line.mean("flops_per_step"),
        "flops_reduction": line.mean("flops_reduction"),
        "flops_reduction_std": line.std("flops_reduction"),
        "best_flops_reduction": line.best.flops_reduction,
        "paper_score": paper_score[0],
        "paper_score_std": paper_score[1],
        "paper_best": EMPTY if line.paper.best is None else line.paper.best,
        "paper_large_share": paper_share[0],
        "paper_flops_reduction": EMPTY if line.paper.flops_reduction is None else line.paper.flops_reduction,
    }


def _tex(text: str) -> str:
    for plain, command in (("%", r"\%"), ("_", r"\_"), ("&", r"\&"), ("±", r"$\pm$"), ("λ", r"$\lambda$")):
        text = text.replace(plain, command)
    return text
