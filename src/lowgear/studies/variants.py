"""Tables that compare variants: the main and supplement tables, and the three ablations."""

from lowgear.config import paper
from lowgear.config.tasks import Task
from lowgear.studies.setup import Group, Setup


def performance(setup: Setup, task: Task) -> list[Group]:
    """Small-only, large-only and asymmetric agents."""
    return compare(setup, task, "small-only", "large-only", "asymmetric")


def cost_term(setup: Setup, task: Task) -> list[Group]:
    """With the cost term and without it."""
    return _ablate(setup, task, "no-cost")


def shared_buffer(setup: Setup, task: Task) -> list[Group]:
    """One buffer for all gears, and one for each."""
    return _ablate(setup, task, "separate-buffers")


def two_large(setup: Setup, task: Task) -> list[Group]:
    """Whether a second gear helps by itself: large-only, the asymmetric pair, two gears as wide as the large one."""
    pair = compare(setup, task, "large-only", "asymmetric")
    large = pair[0].config.gears[-1]
    config = setup.config(task, "asymmetric", gears=(large, large))
    return [*pair, Group("two-large", config, paper.two_large(task.name))]


def compare(setup: Setup, task: Task, *variants: str) -> list[Group]:
    """A group of each variant, beside the main and supplement tables."""
    return [Group(name, setup.config(task, name), paper.variant(task.name, name)) for name in variants]


def _ablate(setup: Setup, task: Task, without: str) -> list[Group]:
    return [Group(n, setup.config(task, n), paper.ablation(task.name, n)) for n in ("asymmetric", without)]
