"""Throughputs that `lowgear bench train --json` measured, on a machine like those that a study is planned for."""

import math
from pathlib import Path
from typing import NamedTuple

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.files import read_json

REMEDY = "write it with `lowgear bench train --json`"
MOST_CASES = 10_000
LARGEST = 1e15


class Case(NamedTuple):
    """One that was measured."""

    recipe: str
    agents: int
    update_mflop: float  # of all learners of an agent
    agent_steps_per_s: float


class Speeds:
    """Rates of a machine, from its benchmark."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases

    def rate(self, config: RunConfig, update_flops: float) -> float:
        """Agent-steps a second: of the case that is most alike, in proportion to the FLOPs of an update.

        Alike are first the recipe, then the FLOPs, then the number of agents, each by its ratio.
        """
        mflop, agents = update_flops / 1e6, len(config.agents)

        def apart(case: Case) -> tuple[bool, float]:
            ratio = abs(math.log(case.update_mflop / mflop)) + abs(math.log(case.agents / agents)) / 4
            return case.recipe != config.recipe.name, ratio

        nearest = min(self.cases, key=apart)
        return nearest.agent_steps_per_s * nearest.update_mflop / mflop


def read(path: Path) -> Speeds:
    """The cases of a benchmark's JSON."""
    raw = read_json(path, "benchmark", REMEDY)
    try:
        cases = [
            Case(
                recipe=fields.word("recipe", entry(case, "recipe")),
                agents=fields.whole("agents", entry(case, "agents"), 1, fields.MAX_COUNT),
                update_mflop=fields.number("update_mflop", entry(case, "update_mflop"), 1e-9, LARGEST),
                agent_steps_per_s=fields.number("agent_steps_per_s", entry(case, "agent_steps_per_s"), 1e-9, LARGEST),
            )
            for each in fields.items("cases", entry(raw, "cases"), 1, MOST_CASES)
            for case in [fields.entries("a case", each)]
        ]
    except BadField as error:
        raise LowgearError(f"{path} is no benchmark of training ({error}): {REMEDY}") from None
    return Speeds(cases)
