"""The studies by name, and how one is carried out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lowgear import LowgearError
from lowgear.config.paper import main_tasks
from lowgear.config.tasks import Task, published_tasks
from lowgear.policy.files import write_whole
from lowgear.studies import distillation, rivals, rivals_verdict, sizes, sweeps, table
from lowgear.studies.imitation import make_directory
from lowgear.studies.rows import TableRow
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import Groups, Setup
from lowgear.studies.variants import ablate, compare, two_large
from lowgear.training.provenance import provenance


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper."""

    title: str
    groups: Groups
    tasks: tuple[str, ...] = main_tasks()
    remarks: Callable[[Sequence[TableRow]], list[str]] | None = None  # on one task's rows
    # All rows of a task, from those of the groups.
    follow_up: Callable[[Setup, RunStore, Task, Sequence[TableRow]], list[TableRow]] | None = None
    later: str = ""  # what `follow_up` does, for the plan
    x_label: str | None = None  # of its figure, where it sweeps something
    on_frontier: bool = False  # its figure is scores against costs


ALL_TASKS = tuple(published_tasks())
STUDIES = {
    "performance": Study(
        "Performance: small-only, large-only and asymmetric agents",
        compare("small-only", "large-only", "asymmetric"),
        ALL_TASKS,
    ),
    "distillation": Study(
        "Distillation: asymmetric agents against one policy of the same price",
        distillation.groups,
        follow_up=distillation.same_price,
        later=distillation.LATER,
    ),
    "expert-data": Study(
        "Imitation with more expert data",
        distillation.groups,
        follow_up=distillation.expert_data,
        later=distillation.LATER,
    ),
    "cost-term": Study("Ablation: with and without the cost term", ablate("no-cost")),
    "shared-buffer": Study("Ablation: one buffer for all gears, and one for each", ablate("separate-buffers")),
    "two-large": Study("Ablation: two large gears", two_large),
    "cost-coefficient": Study(
        "Score and share of large against the cost coefficient",
        sweeps.cost_coefficient,
        x_label="cost coefficient λ",
    ),
    "period": Study(
        "Score and share of large against the period", sweeps.period, x_label="period: steps that a pick holds"
    ),
    "rivals": Study(
        "Rivals: asymmetric agents against other cheap controllers, on one frontier",
        rivals.groups,
        remarks=rivals_verdict.remarks,
        follow_up=rivals.frontier,
        later=rivals.LATER,
        on_frontier=True,
    ),
    "sizes": Study("Widths of the gears by the paper's procedure", sizes.groups, ALL_TASKS, remarks=sizes.reasoning),
}


def find(name: str) -> Study:
    """The study called `name`."""
    if name not in STUDIES:
        raise LowgearError(f"unknown study {name!r}: choose from {', '.join(STUDIES)}")
    return STUDIES[name]


def carry_out(study: Study, tasks: Sequence[Task], setup: Setup, store: RunStore) -> tuple[list[TableRow], list[str]]:
    """Train what is missing for all tasks; then, task by task, evaluate and compare. The table's rows, and remarks.

    What fails is left out, with what would have followed from it, and the next task goes on: `store.failures`.
    """
    rows: list[TableRow] = []
    remarks: list[str] = []
    store.train([group for task in tasks for group in study.groups(setup, task)], setup.episodes)
    for task in tasks:
        whole = len(store.failures)
        try:
            start = len(rows)
            rows += store.rows(study.groups(setup, task), setup.episodes)
            if study.follow_up is not None and len(store.failures) == whole:
                rows[start:] = study.follow_up(setup, store, task, rows[start:])
            if study.remarks is not None and len(store.failures) == whole:
                remarks += study.remarks(rows[start:])
        except LowgearError as error:
            store.fail(task.name, str(error))
    if not rows:
        raise LowgearError(store.failures[0])
    return rows, remarks + table.notes(rows) + [f"Left out: {failure}." for failure in store.failures]


def write(study: Study, rows: Sequence[TableRow], remarks: Sequence[str], setup: Setup, directory: Path) -> list[Path]:
    """The table as CSV, Markdown and LaTeX, every seed of it as JSON, and its figure, if it has one."""
    make_directory(directory)
    whole = {
        "title": study.title,
        "setup": asdict(setup),
        "provenance": provenance(),
        "remarks": remarks,
        "lines": [row.to_json() for row in rows],
    }
    texts = {
        "table.md": table.markdown(study.title, rows, remarks),
        "table.csv": table.comma_separated(rows),
        "table.tex": table.latex(study.title, rows, remarks),
        "study.json": json.dumps(whole, indent=1),
    }
    for name, text in texts.items():
        write_whole(directory / name, text.encode())
    return [*(directory / name for name in texts), *_draw(study, rows, directory)]


def _draw(study: Study, rows: Sequence[TableRow], directory: Path) -> list[Path]:
    if study.x_label is None and not study.on_frontier:
        return []
    try:
        from lowgear.studies import figure, rivals_figure
    except ImportError:  # without the extra `report` the table stands alone
        return []
    return rivals_figure.draw(rows, directory) if study.x_label is None else figure.draw(rows, study.x_label, directory)
