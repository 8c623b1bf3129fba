"""The studies by name, and how one is carried out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lowgear import LowgearError
from lowgear.config.tasks import Task, published_tasks
from lowgear.policy.files import write_whole
from lowgear.studies import ablations, distillation, performance, published, sizes, sweeps, table
from lowgear.studies.lines import Line, overall
from lowgear.studies.pool import Listeners, Pool
from lowgear.studies.scoring import Progress
from lowgear.studies.setup import Group, Setup
from lowgear.training.provenance import provenance


@dataclass(frozen=True)
class Workshop:
    """Where a study is carried out: trains, evaluates and shows how far it is."""

    setup: Setup
    pool: Pool
    listeners: Listeners
    progress: Progress

    def answer(self, groups: Sequence[Group]) -> list[Line]:
        """The groups' lines; what is missing is made first."""
        self.pool.complete(self.pool.plan(groups), self.listeners)
        return self.pool.lines(groups, self.setup.episodes, self.progress)


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper."""

    title: str
    groups: Callable[[Setup, Task], list[Group]]
    tasks: tuple[str, ...] = published.ABLATED  # where none is named
    reasoning: Callable[[Sequence[Line]], list[str]] | None = None  # of one task's lines, in words
    then: Callable[[Workshop, Task, list[Line]], list[Line]] | None = None  # lines that follow from the first ones
    later: str = ""  # what `then` does, for the plan
    across: str | None = None  # the axis of its figure, where it sweeps something


STUDIES = {
    "performance": Study(
        "Performance: small-only, large-only and asymmetric agents", performance.groups, tuple(published_tasks())
    ),
    "distillation": Study(
        "Distillation: asymmetric agents against one policy of the same price",
        distillation.groups,
        then=distillation.compare,
        later=distillation.LATER,
    ),
    "expert-data": Study(
        "Imitation with more expert data",
        distillation.groups,
        then=distillation.expert_data,
        later=distillation.LATER,
    ),
    "cost-term": Study("Ablation: with and without the cost term", ablations.cost_term),
    "shared-buffer": Study("Ablation: one buffer for all gears, and one for each", ablations.shared_buffer),
    "two-large": Study("Ablation: two large gears", ablations.two_large),
    "cost-coefficient": Study(
        "Score and share of large against the cost coefficient",
        sweeps.cost_coefficient,
        across="cost coefficient λ, log scale",
    ),
    "period": Study(
        "Score and share of large against the period", sweeps.period, across="period: steps that a pick holds"
    ),
    "sizes": Study(
        "Widths of the gears by the paper's procedure",
        sizes.groups,
        tuple(published_tasks()),
        reasoning=sizes.reasoning,
    ),
}


@dataclass(frozen=True)
class Answer:
    """What a study found."""

    title: str
    lines: list[Line]
    remarks: list[str]
    across: str | None = None  # the axis of its figure


def find(name: str) -> Study:
    """The study called `name`."""
    if name not in STUDIES:
        raise LowgearError(f"unknown study {name!r}: choose from {', '.join(STUDIES)}")
    return STUDIES[name]


def carry_out(study: Study, tasks: Sequence[Task], shop: Workshop) -> Answer:
    """Task by task: train, evaluate, compare."""
    lines: list[Line] = []
    remarks: list[str] = []
    for task in tasks:
        found = shop.answer(study.groups(shop.setup, task))
        if study.then is not None:
            found += study.then(shop, task, found)
        if study.reasoning is not None:
            remarks += study.reasoning(found)
        lines += found
    return Answer(study.title, lines, remarks + table.notes(overall(lines)), study.across)


def write(answer: Answer, setup: Setup, directory: Path) -> list[Path]:
    """The table as CSV, Markdown and LaTeX, every seed of it as JSON, and a figure where something is swept."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LowgearError(f"could not make {directory}: {error.strerror}") from None
    whole = {
        "title": answer.title,
        "setup": asdict(setup),
        "provenance": provenance(),
        "remarks": answer.remarks,
        "lines": [line.to_json() for line in answer.lines],
    }
    texts = {
        "table.md": table.markdown(answer.title, answer.lines, answer.remarks),
        "table.csv": table.comma_separated(answer.lines),
        "table.tex": table.latex(answer.title, answer.lines, answer.remarks),
        "study.json": json.dumps(whole, indent=1),
    }
    for name, text in texts.items():
        write_whole(directory / name, text.encode())
    return [*(directory / name for name in texts), *_draw(answer, directory)]


def _draw(answer: Answer, directory: Path) -> list[Path]:
    if answer.across is None:
        return []
    try:
        from lowgear.studies.figure import draw
    except ImportError:  # without the extra `report` the table stands alone
        return []
    return draw(answer.lines, answer.across, directory)
