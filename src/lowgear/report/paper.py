"""The paper's figures for a task, and scores scaled as the paper scales them."""

import math
from dataclasses import dataclass, replace

from lowgear.config import paper
from lowgear.config.paper import NOTHING, Figures
from lowgear.config.tasks import Task
from lowgear.policy.arrays import DoubleArray


@dataclass(frozen=True)
class Scaling:
    """A random policy is 0, large-only is 1."""

    random: float  # the paper's
    large: float
    own: bool  # `large` is the run's own

    @property
    def note(self) -> str:
        """For the reader."""
        whose = "this run's large-only agent" if self.own else "the paper's large-only agents"
        return f"0: a random policy ({self.random:g}, from the paper). 1: {whose} ({self.large:,.0f})."

    def apply(self, scores: DoubleArray) -> DoubleArray:
        """The scores on that scale."""
        return (scores - self.random) / (self.large - self.random)


def scaling(task: Task, large_only: float | None) -> Scaling | None:
    """By the run's large-only score where it has one, else by the paper's; None where they are no scale."""
    if task.published is None:
        return None
    large = task.published.large_only[0] if large_only is None else large_only
    if not math.isfinite(large) or large <= task.published.random:
        return None
    return Scaling(task.published.random, large, large_only is not None)


def published_figures(task: Task, variant: str) -> Figures:
    """The paper's for a variant of a task, with the shares of agents that have one gear."""
    if task.published is None:
        return NOTHING
    found = paper.variant(task.name, variant)
    if variant == "small-only":
        return replace(found, large_share=(0.0, 0.0))
    if variant == "large-only":
        return replace(found, large_share=(1.0, 0.0), flops_reduction=0.0)
    return found


def mean(pair: tuple[float, float] | None) -> float | None:
    """Of a mean and its deviation."""
    return None if pair is None else pair[0]
