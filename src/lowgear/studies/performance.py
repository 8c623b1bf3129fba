"""Main table and supplement table: small-only, large-only and asymmetric agents, one population for each task."""

from lowgear.config.tasks import Task
from lowgear.studies import published
from lowgear.studies.setup import NOTHING, Group, Setup


def groups(setup: Setup, task: Task) -> list[Group]:
    """A line for each of the three."""
    figures = published.performance(task)
    return [
        Group(variant, setup.config(task, variant), paper=figures.get(variant, NOTHING))
        for variant in ("small-only", "large-only", "asymmetric")
    ]
