"""Agents that go no further, while the others do: how they are found and what is kept of them."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import trust_flag
from lowgear.training.checkpoint import read_latest
from lowgear.training.parallel import Learned


class Stopped(NamedTuple):
    """An agent that goes no further, while the others do."""

    steps: int  # that it has taken
    why: str


class StoppedCompiling(Exception):  # noqa: N818, nothing went wrong
    """A run was told to stop while its first updates were still being compiled, which can take minutes."""


def stopped_file(stopped: Mapping[int, Stopped]) -> bytes:
    """stopped.json, which `RunDirectory.read_stopped` reads."""
    kept = {str(number): stopped._asdict() for number, stopped in stopped.items()}
    return json.dumps(kept, indent=2).encode()


def kept_of(directory: RunDirectory | None, task: str) -> str:
    """What is left of a run that has no agent left, for its error."""
    if directory is None:
        return ""
    latest, again = read_latest(directory), f"lowgear train --resume {directory.path}{trust_flag(task)}"
    since = "the start" if latest is None else f"{latest.steps} steps"
    return f"; its policy is kept, and `{again}` tries again from {since}"


def not_finite(learned: Learned) -> dict[int, str]:
    """Agents with numbers that are not finite, and the first of those."""
    found: dict[int, str] = {}
    for name, value in learned.metrics.items():
        for agent in np.flatnonzero(~np.isfinite(value)).tolist():
            found.setdefault(agent, f"{name} is {value[agent]}")
    for leaf in (array for layers in learned.published.networks for layer in layers for array in layer):
        for agent in np.flatnonzero(~np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1)).tolist():
            found.setdefault(agent, "a weight is not finite")
    return found
