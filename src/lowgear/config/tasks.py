"""The 16 published tasks with their presets, and how any other environment is named.

A published task goes by the paper's name, in any case (`walker-stand`, `swimmer-v3`). `gym:ID`, `dmc:domain-task` and
`envpool:ID` name anything else with a Box action space, `module:Class` and `module:function` what a person wrote; such
tasks have no preset.
"""

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.paper import Published, published, tables

PREFIXES = ("gym", "dmc", "envpool")
SOURCES = {"envpool": "EnvPool", "gym": "Gymnasium", "dmc": "dm_control", "python": "a Python module"}
OTHERS = "any other environment is gym:ID, dmc:domain-task, envpool:ID, or module:Class in Python"
PAPER_STEPS = 2_500_000
MOUNTAIN_CAR_STEPS = 100_000
MOST_WIDTH = 8192  # of a gear: 256 MiB of weights


@dataclass(frozen=True)
class Task:
    """One environment by name, with the paper's preset where it has one."""

    name: str
    source: str  # a key of SOURCES
    env_id: str
    obs_dim: int | None = None  # None until the environment is made
    act_dim: int | None = None
    gears: tuple[int, ...] | None = None  # hidden width of each gear, cheapest first
    cost_coefficient: float | None = None
    hindsight: bool = False
    boltzmann: bool = False  # the paper samples the master's softmax when it evaluates this task
    steps: int = PAPER_STEPS
    published: Published | None = None


@cache
def published_tasks() -> dict[str, Task]:
    """The 16 tasks by the paper's names, in the paper's order."""
    return {name: _published_task(name, row) for name, row in tables()["tasks"].items()}


def find(name: str) -> Task:
    """The task called `name`; an unknown name is an error that suggests the nearest ones."""
    source, colon, env_id = name.partition(":")
    if colon:
        return _named_environment(name, source, env_id)
    by_lower = {task.lower(): task for task in published_tasks()}
    if name.lower() in by_lower:
        return published_tasks()[by_lower[name.lower()]]
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(by_lower[n] for n in near)}?" if near else "`lowgear tasks` lists them;"
    raise LowgearError(f"unknown task {name!r}: {hint} {OTHERS}")


def imported_module(name: str) -> str | None:
    """The Python module that would be imported for a task: that of `gym:MODULE:ID` or `MODULE:NAME`."""
    source, colon, rest = name.partition(":")
    if colon and source.lower() in PREFIXES and source.lower() != "gym":
        return None
    module, colon, _ = (rest if source.lower() == "gym" else name).rpartition(":")
    return module if colon else None


def check_trust(name: str, path: Path, trust: bool) -> None:
    """An error where the task that a file at `path` names would import a module, unless the file is trusted.

    A person who types `gym:MODULE:ID` or `MODULE:NAME` asks for the import; a file that a stranger wrote does not
    speak for them.
    """
    module = imported_module(name)
    if module is not None and not trust:
        raise LowgearError(
            f"{path} names the task {name}, which would import the Python module {module} and run its code: "
            "if you know who wrote both, say --trust"
        )


def trust_flag(name: str) -> str:
    """What a command that is told to a person needs for a run of the task, beside the run."""
    return " --trust" if imported_module(name) is not None else ""


def file_name(task: str) -> str:
    """A task's name as part of a file's."""
    return task.replace(":", "-").replace("/", "-")


def _published_task(name: str, row: dict[str, Any]) -> Task:
    return Task(
        name=name,
        source="envpool",
        env_id=row["env_id"],
        obs_dim=row["obs_dim"],
        act_dim=row["act_dim"],
        gears=(row["small_units"], row["large_units"]),
        cost_coefficient=row["cost_coefficient"],
        hindsight=row["hindsight_replay"],
        boltzmann=row["boltzmann_evaluation"],
        steps=MOUNTAIN_CAR_STEPS if name.startswith("MountainCar") else PAPER_STEPS,
        published=published(name),
    )


def _named_environment(name: str, source: str, env_id: str) -> Task:
    prefix = source.lower()
    if prefix not in PREFIXES and env_id.isidentifier() and all(part.isidentifier() for part in source.split(".")):
        return Task(name=name, source="python", env_id=name)
    if prefix not in PREFIXES:
        known = ", ".join(f"{known}:" for known in PREFIXES)
        raise LowgearError(f"unknown source {source!r} in {name!r}: write {known}, or module:Class in Python")
    if not env_id:
        raise LowgearError(f"{name!r} names no environment: write for example gym:Pendulum-v1")
    if prefix == "dmc" and "-" not in env_id:
        raise LowgearError(f"{name!r} is not dmc:domain-task: write for example dmc:walker-walk")
    return Task(name=f"{prefix}:{env_id}", source=prefix, env_id=env_id)
