"""A program of a study: one population that is trained and scored in a directory of its own.

Its numbers depend on how its learners are cut into parts and on XLA's threads, so a program carries both: it comes to
the same in this process, in another one and on another machine of the same kind.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lowgear.config.cores import cores
from lowgear.config.gears import pack, unpack
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.envs import make_env
from lowgear.policy.file import Policy
from lowgear.studies.evaluations import Progress, evaluate_once
from lowgear.training.loop import Training
from lowgear.training.progress import STARTING, Listener
from lowgear.training.provenance import provenance
from lowgear.training.signals import Heard, stops

Scored = tuple[int, float | None]  # an agent, and where its dial stands; None: its own
XLA_THREADS = "NPROC"  # the variable by which XLA is told


@dataclass(frozen=True)
class Program:
    """What is trained, and which of its agents are scored afterwards."""

    name: str  # of its directory
    config: RunConfig
    parts: int  # that an agent's learners are cut into
    threads: int  # of XLA
    scored: tuple[Scored, ...] = ()
    episodes: int = 0

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return vars(self) | {"config": self.config.to_json(), "frozen": [pack(one) for one in self.config.frozen]}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Program":
        """Back from there."""
        scored = tuple((number, setting) for number, setting in raw["scored"])
        frozen = tuple(map(unpack, raw["frozen"]))
        config = replace(RunConfig.from_json(raw["config"]), frozen=frozen)
        others = {name: value for name, value in raw.items() if name != "frozen"}
        return cls(**others | {"config": config, "scored": scored})


def cut_here(population: int) -> tuple[int, int]:
    """The parts and threads that this machine would choose for so many agents."""
    told = os.environ.get(XLA_THREADS, "")
    return -(-cores() // population), int(told) if told.isdecimal() and int(told) else cores()


def name_of(scored: Scored) -> str:
    """As scores.json has it."""
    number, setting = scored
    return f"agent {number}" + ("" if setting is None else f" at {setting!r}")


def load(directory: RunDirectory, config: RunConfig, scored: Scored) -> Policy:
    """An agent's controller at a setting of its dial, relative where that is."""
    number, setting = scored
    policy = directory.load_policy(config, number)
    return policy if setting is None else policy.at(setting * (policy.header.cost_unit or 1.0))


def train(
    program: Program, directory: RunDirectory, listeners: Sequence[Listener], tracked: bool = True
) -> Heard | None:
    """To the end, from its last checkpoint if it has one; or the signal that stopped it at a checkpoint.

    Unless it is `tracked` here, trackers are another process's to tell.
    """
    config = program.config
    if not directory.config.exists():
        shutil.rmtree(directory.path, ignore_errors=True)  # a beginning that was cut short
        directory.create(config, provenance())
    make = partial(make_env, config)
    for listener in listeners:
        listener.on_phase(STARTING)
    trackers = () if tracked else None
    training = Training(config, make(config.environments), make, directory, trackers=trackers, parts=program.parts)
    try:
        with stops(training.stop) as heard:
            finished = training.run(list(listeners))
    finally:
        training.close()
    return None if finished else heard


def score(
    program: Program,
    directory: RunDirectory,
    progress: Progress,
    fail: Callable[[str, str], None],
) -> dict[str, Any]:
    """Scores by name; agents that stopped before the end have none."""
    stopped = directory.read_stopped()
    policies = {
        name_of(scored): partial(load, directory, program.config, scored)
        for scored in program.scored
        if scored[0] not in stopped
    }
    make, master = partial(make_env, program.config), program.config.master
    return evaluate_once(directory.path, policies, make, master, program.episodes, progress, fail)
