"""Tables that compare variants: the main and supplement tables, and the three ablations."""

from lowgear.config import paper
from lowgear.config.tasks import Task
from lowgear.studies.setup import Group, Groups, Setup


def compare(*variants: str) -> Groups:
    """A group of each variant, beside the main and supplement tables."""
    return lambda setup, task: [Group(n, setup.config(task, n), paper.variant(task.name, n)) for n in variants]


def ablate(without: str) -> Groups:
    """The asymmetric agents and the variant that lacks something, beside the ablations' table."""
    return lambda setup, task: [
        Group(name, setup.config(task, name), paper.ablation(task.name, name)) for name in ("asymmetric", without)
    ]


def two_large(setup: Setup, task: Task) -> list[Group]:
    """Whether a second gear helps by itself: large-only, the asymmetric pair, two gears as wide as the large one."""
    pair = compare("large-only", "asymmetric")(setup, task)
    large = pair[0].config.gears[-1]
    config = setup.config(task, "asymmetric", gears=(large, large))
    return [*pair, Group("two-large", config, paper.two_large(task.name))]
