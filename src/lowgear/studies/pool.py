"""Runs that studies share: an agent that one study trained serves every other that asks for the same.

    DIR/runs/       run directories as `lowgear train` makes them
    DIR/students/   imitators, and what they were taught with
    DIR/NAME/       the tables of the study NAME

A run that was killed goes on from its last checkpoint. What was evaluated is kept in the run's scores.json.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.config.run import AgentConfig, RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.policy.file import Policy, load
from lowgear.studies.lines import Line, Scored
from lowgear.studies.scoring import Progress, scores
from lowgear.studies.setup import Group
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Listener, Training
from lowgear.training.provenance import provenance

Listeners = Callable[[RunConfig, int], list[Listener]]  # for a run, and the steps it has behind it


class Run(NamedTuple):
    """A run of the pool, finished or not, or one that is yet to begin."""

    directory: RunDirectory
    config: RunConfig
    finished: bool

    @property
    def steps_done(self) -> int:
        """Environment steps of each agent that need no repeating."""
        if self.finished:
            return self.config.steps
        latest = read_latest(self.directory)
        return latest.steps if latest is not None else 0


class Pool:
    """A directory of runs, and what makes the missing ones."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def plan(self, groups: Iterable[Group]) -> list[Run]:
        """The runs that hold these groups' agents, as few as programs allow, those that exist first."""
        existing = self.existing()
        wanted: dict[RunConfig, list[AgentConfig]] = {}
        used: dict[Path, Run] = {}
        for group in groups:
            program = replace(group.config, agents=())
            for agent in group.config.agents:
                run = _holding(existing, program, agent)
                if run is not None:
                    used[run.directory.path] = run
                elif agent not in wanted.setdefault(program, []):
                    wanted[program].append(agent)
        new = [replace(program, agents=tuple(agents)) for program, agents in wanted.items() if agents]
        return [*used.values(), *(Run(RunDirectory(self._path(config)), config, False) for config in new)]

    def complete(self, runs: Iterable[Run], listeners: Listeners) -> None:
        """Train what is not finished."""
        for run in runs:
            if run.finished:
                continue
            if not run.directory.config.exists():
                shutil.rmtree(run.directory.path, ignore_errors=True)  # a beginning that was cut short
                run.directory.create(run.config, provenance())
            make = partial(make_env, run.config)
            training = Training(run.config, make(run.config.environments), make, run.directory)
            try:
                training.run(listeners(run.config, training.collector.steps))
            finally:
                training.close()

    def lines(self, groups: Sequence[Group], episodes: int, progress: Progress | None = None) -> list[Line]:
        """What the groups' agents score, all of them trained; evaluated only where that was not done before."""
        runs = self.plan(groups)
        if any(not run.finished for run in runs):
            raise LowgearError(f"{self.path} has runs that are not finished: ask for the study again")
        where = [[_spot(runs, group, agent) for agent in group.config.agents] for group in groups]
        found: dict[Path, dict[str, Any]] = {}
        for run in runs:
            policies = {
                _name(number, group.setting): partial(_load, run, number, group.setting)
                for group, spots in zip(groups, where, strict=True)
                for holder, number in spots
                if holder is run
            }
            make, master = partial(make_env, run.config), "boltzmann" if run.config.boltzmann else "greedy"
            found[run.directory.path] = scores(run.directory.path, policies, make, master, episodes, progress)
        lines = []
        for group, spots in zip(groups, where, strict=True):
            seeds = [
                Scored.of(agent.seed, found[run.directory.path][_name(number, group.setting)])
                for agent, (run, number) in zip(group.config.agents, spots, strict=True)
            ]
            lines.append(
                Line(find(group.config.task), group.label, tuple(seeds), group.paper, group.config.steps, group.x)
            )
        return lines

    def policies(self, group: Group) -> list[Policy]:
        """The trained controllers of a group, seed by seed."""
        spots = [_spot(self.plan([group]), group, agent) for agent in group.config.agents]
        return [load(run.directory.policy(number)) for run, number in spots]

    def existing(self) -> list[Run]:
        """Every run of the pool, finished ones first."""
        runs = []
        for path in sorted(self.path.glob("runs/*/config.json")):
            directory = RunDirectory(path.parent)
            config = directory.read_config()
            runs.append(Run(directory, config, directory.finished(config)))
        return sorted(runs, key=lambda run: not run.finished)

    def _path(self, config: RunConfig) -> Path:
        digest = hashlib.sha256(json.dumps(config.to_json(), sort_keys=True).encode()).hexdigest()[:10]
        name = config.task.replace(":", "-").replace("/", "-")
        gears = "-".join(map(str, config.gears))
        return self.path / "runs" / f"{name}-{config.recipe.name}-{gears}-{digest}"


def _spot(runs: Sequence[Run], group: Group, agent: AgentConfig) -> tuple[Run, int]:
    run = _holding(runs, replace(group.config, agents=()), agent)
    assert run is not None, "planned for these groups"
    return run, run.config.agents.index(agent)


def _name(number: int, setting: float | None) -> str:
    return f"agent {number}" if setting is None else f"agent {number} at {setting!r}"


def _load(run: Run, number: int, setting: float | None) -> Policy:
    policy = load(run.directory.policy(number))
    return policy if setting is None else policy.at(setting)


def _holding(runs: Iterable[Run], program: RunConfig, agent: AgentConfig) -> Run | None:
    return next((run for run in runs if replace(run.config, agents=()) == program and agent in run.config.agents), None)
