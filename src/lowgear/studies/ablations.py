"""The three ablations: without the cost term, with a buffer for each gear, with two large gears."""

from lowgear.config.tasks import Task
from lowgear.studies import published
from lowgear.studies.setup import NOTHING, Group, Setup


def cost_term(setup: Setup, task: Task) -> list[Group]:
    """With the cost term and without it."""
    return [
        Group("asymmetric", setup.config(task, "asymmetric"), paper=published.ablation(task, "ours")),
        Group("no-cost", setup.config(task, "no-cost"), paper=published.ablation(task, "no_cost")),
    ]


def shared_buffer(setup: Setup, task: Task) -> list[Group]:
    """One buffer for all gears, and one for each."""
    return [
        Group("asymmetric", setup.config(task, "asymmetric"), paper=published.ablation(task, "ours")),
        Group(
            "separate-buffers",
            setup.config(task, "separate-buffers"),
            paper=published.ablation(task, "separate_buffers"),
        ),
    ]


def two_large(setup: Setup, task: Task) -> list[Group]:
    """Whether a second gear helps by itself: large-only, the asymmetric pair, two gears as wide as the large one."""
    large = setup.gears_of(task)[-1]
    figures = published.performance(task)
    return [
        Group("large-only", setup.config(task, "large-only"), paper=figures.get("large-only", NOTHING)),
        Group("asymmetric", setup.config(task, "asymmetric"), paper=figures.get("asymmetric", NOTHING)),
        Group("two-large", setup.config(task, "asymmetric", gears=(large, large)), paper=published.two_large(task)),
    ]
