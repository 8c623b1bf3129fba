"""Return against cost, one dot for each episode: plays the episodes and scales them as the paper does.

Return is scaled so that a random policy is 0 and large-only is 1, cost so that the large gear alone is 1. The paper's
random score is used; large-only is this run's own where it has one, else the paper's.
"""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from lowgear.envs import make_env
from lowgear.evaluation.evaluate import flops_each, play_policies
from lowgear.report.cast import Role
from lowgear.report.runs import Run
from lowgear.report.settings import best, cheapest

FloatArray = npt.NDArray[np.float64]
SEED = 1_000  # starts that `lowgear evaluate` has not used by default


@dataclass(frozen=True)
class Scale:
    """How returns are scaled; `note` tells the reader."""

    random: float
    large: float
    note: str

    def apply(self, returns: FloatArray) -> FloatArray:
        """Random is 0, large-only 1."""
        return (returns - self.random) / (self.large - self.random)


@dataclass(frozen=True)
class Cloud:
    """The episodes of one controller."""

    label: str
    variant: str
    agent: int
    coefficient: float
    returns: FloatArray
    costs: FloatArray  # FLOPs per step over the large gear's


def play(run: Run, roles: Sequence[Role], episodes: int, progress: Callable[[int], None] | None = None) -> list[Cloud]:
    """`episodes` episodes of each role where the run was trained."""
    if not roles or episodes < 1:
        return []
    policies = [role.policy for role in roles]
    played = play_policies(policies, partial(make_env, run.config), episodes, run.master, SEED, progress)
    return [
        Cloud(
            role.label,
            role.policy.header.variant,
            role.agent,
            role.policy.header.cost_coefficient,
            played.returns[place],
            flops_each(played, place, role.policy.header.prices) / role.policy.header.prices.gears[-1],
        )
        for place, role in enumerate(roles)
    ]


def chosen(run: Run, roles: Sequence[Role]) -> list[Role]:
    """The star at its best and its cheapest good setting, and the baselines."""
    star = [role for role in roles if role.star]
    own = [s for s in run.settings if star and s.variant == star[0].policy.header.variant]
    wanted = {f"{s.coefficient:.6g}" for s in (best(own), cheapest(own))} if own else set()
    return [
        role for role in roles if not role.star or role.first or f"{role.policy.header.cost_coefficient:.6g}" in wanted
    ]


def scale_of(run: Run, clouds: Sequence[Cloud]) -> Scale | None:
    """The paper's scaling; None where its random score or a large-only score is unknown."""
    published = run.task.published
    if published is None or run.task.hindsight:
        return None  # the paper's Fetch scores are success rates, which one episode does not have
    own = [float(cloud.returns.mean()) for cloud in clouds if cloud.variant == "large-only"]
    large = own[0] if own else published.large_only[0]
    if not np.isfinite(large) or large <= published.random:
        return None
    whose = "this run's large-only agent" if own else "the paper's large-only agents"
    note = f"0: a random policy ({published.random:g}, from the paper). 1: {whose} ({large:,.0f})."
    return Scale(published.random, large, note)


def sheet(clouds: Sequence[tuple[Run, Cloud]]) -> str:
    """Every episode as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["run", "task", "agent", "variant", "cost_coefficient", "episode", "return", "cost_of_large"])
    for run, cloud in clouds:
        for number, (total, cost) in enumerate(zip(cloud.returns, cloud.costs, strict=True)):
            numbers = [number, f"{total:.6g}", f"{cost:.6g}"]
            writer.writerow([run.name, run.task.name, cloud.agent, cloud.variant, cloud.coefficient, *numbers])
    return buffer.getvalue()
