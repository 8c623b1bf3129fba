"""The paper's figures for a task, and scores scaled as the paper scales them."""

import math
from dataclasses import dataclass

from lowgear.config.tasks import Task, paper
from lowgear.policy.arrays import DoubleArray


@dataclass(frozen=True)
class Printed:
    """What the paper prints for a variant of a task; None where it prints nothing."""

    score: tuple[float, float] | None = None  # mean and standard deviation of five seeds
    large_share: float | None = None
    saved: float | None = None


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


def printed(task: Task, variant: str) -> Printed:
    """The paper's figures for a variant of a task."""
    published = task.published
    if published is None:
        return Printed()
    ablation = paper()["ablation_table"]["rows"].get(task.name, {}).get(variant.replace("-", "_"))
    if ablation is not None:
        (mean, std), (share, _) = ablation
        return Printed((mean, std), share / 100)
    known = {
        "small-only": Printed(published.small_only, 0.0),
        "large-only": Printed(published.large_only, 1.0, 0.0),
        "asymmetric": Printed(published.asymmetric, published.large_share[0], published.flops_reduction),
    }
    return known.get(variant, Printed())
