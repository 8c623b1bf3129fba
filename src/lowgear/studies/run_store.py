"""Runs that studies share: an agent that one study trained serves every other that asks for the same.

    DIR/runs/       run directories as `lowgear train` makes them
    DIR/students/   imitators, and what they were taught with
    DIR/NAME/       the tables of the study NAME

A run that was killed goes on from its last checkpoint. What was evaluated is kept in the run's scores.json. A run that
fails, or an agent of it, is left out; the others go on.
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
from lowgear.config.tasks import file_name, find
from lowgear.envs import make_env
from lowgear.policy.file import Policy
from lowgear.studies.evaluations import Progress, evaluate_once
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.setup import Group
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Training
from lowgear.training.progress import Listener
from lowgear.training.provenance import provenance
from lowgear.training.signals import stops

Listeners = Callable[[RunConfig, int], list[Listener]]  # for a run, and the steps it has behind it


class StoredRun(NamedTuple):
    """A run of the store, finished or not, or one that is yet to begin."""

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

    def holds(self, program: RunConfig, agent: AgentConfig) -> bool:
        """Whether it is of this program and the agent is in its population."""
        return agent in self.config.agents and replace(self.config, agents=()) == program


class Member(NamedTuple):
    """An agent of a stored run, at a setting of its dial."""

    run: StoredRun
    number: int
    setting: float | None  # relative where its dial is; None: its own

    @property
    def seed(self) -> int:
        """The agent's."""
        return self.run.config.agents[self.number].seed

    @property
    def name(self) -> str:
        """As scores.json has it."""
        return f"agent {self.number}" + ("" if self.setting is None else f" at {self.setting!r}")

    def load(self) -> Policy:
        """Its controller."""
        policy = self.run.directory.load_policy(self.run.config, self.number)
        return policy if self.setting is None else policy.at(self.setting * (policy.header.cost_unit or 1.0))


class RunStore:
    """A directory of runs, and what makes the missing ones."""

    def __init__(
        self,
        path: Path,
        listeners: Listeners = lambda *_: [],
        progress: Progress = lambda *_: None,  # of evaluations
    ) -> None:
        self.path, self.listeners, self.progress = path, listeners, progress
        self.failures: list[str] = []  # what rows are without, and why

    def existing(self) -> list[StoredRun]:
        """Every run of the store, finished ones first."""
        runs = []
        for path in sorted(self.path.glob("runs/*/config.json")):
            directory = RunDirectory(path.parent, trust=True)  # only runs of tasks that were asked for are used
            config = directory.read_config()
            runs.append(StoredRun(directory, config, directory.finished(config)))
        return sorted(runs, key=lambda run: not run.finished)

    def plan(self, groups: Iterable[Group]) -> list[StoredRun]:
        """The runs that hold these groups' agents, as few as programs allow, those that exist first."""
        existing = self.existing()
        wanted: dict[RunConfig, list[AgentConfig]] = {}
        used: dict[Path, StoredRun] = {}
        for group in groups:
            program = replace(group.config, agents=())
            for agent in group.config.agents:
                run = next((run for run in existing if run.holds(program, agent)), None)
                if run is not None:
                    used[run.directory.path] = run
                elif agent not in wanted.setdefault(program, []):
                    wanted[program].append(agent)
        new = [replace(program, agents=tuple(agents)) for program, agents in wanted.items() if agents]
        return [
            *used.values(),
            *(StoredRun(RunDirectory(self._path(config), trust=True), config, False) for config in new),
        ]

    def rows(self, groups: Sequence[Group], episodes: int) -> list[TableRow]:
        """What the groups' agents score; only what is missing is trained and evaluated.

        Agents that fail are left out, and groups of which none is left: `failures` tells of them.
        """
        for run in self.plan(groups):
            if not run.finished:
                try:
                    self._train(run)
                except LowgearError as error:
                    self.fail(run.directory.path, str(error))
        runs = self.plan(groups)
        members = [_members(runs, group) for group in groups]
        summaries: dict[str, dict[str, Any]] = {}  # by run, and by the member's name
        for run in runs:
            if run.finished:
                summaries[run.directory.path.name] = self._evaluate(run, members, episodes)
        rows = [
            TableRow(
                task=find(group.config.task),
                label=group.label,
                seeds=tuple(
                    SeedResult.of(member.seed, summary)
                    for member in own
                    if (summary := summaries.get(member.run.directory.path.name, {}).get(member.name))
                ),
                paper=group.paper,
                steps=group.config.steps,
                x=group.x,
            )
            for group, own in zip(groups, members, strict=True)
        ]
        return [row for row in rows if row.seeds]

    def fail(self, where: object, why: str) -> None:
        """Note what rows will be without."""
        if f"{where}: {why}" not in self.failures:
            self.failures.append(f"{where}: {why}")

    def _evaluate(self, run: StoredRun, members: Sequence[Sequence[Member]], episodes: int) -> dict[str, Any]:
        """Scores of a run's members by their names; agents that stopped before the end have none."""
        stopped, path = run.directory.read_stopped(), run.directory.path
        own = [member for group in members for member in group if member.run is run]
        for number in sorted({member.number for member in own} & stopped.keys()):
            steps, why = stopped[number]
            self.fail(path, f"agent {number} stopped at {steps} steps: {why}")
        policies = {member.name: member.load for member in own if member.number not in stopped}
        make = partial(make_env, run.config)

        def fail(name: str, why: str) -> None:
            self.fail(path, f"{name} was not evaluated: {why}")

        return evaluate_once(path, policies, make, run.config.master, episodes, self.progress, fail)

    def policies(self, group: Group) -> list[Policy]:
        """The trained controllers of a group, seed by seed."""
        return [member.load() for member in _members(self.plan([group]), group)]

    def _train(self, run: StoredRun) -> None:
        if not run.directory.config.exists():
            shutil.rmtree(run.directory.path, ignore_errors=True)  # a beginning that was cut short
            run.directory.create(run.config, provenance())
        make = partial(make_env, run.config)
        training = Training(run.config, make(run.config.environments), make, run.directory)
        try:
            with stops(training.stop, lambda: None) as heard:
                finished = training.run(self.listeners(run.config, training.collector.steps))
        finally:
            training.close()
        if not finished:
            raise SystemExit(heard.exit_code)  # the same study goes on from there

    def _path(self, config: RunConfig) -> Path:
        digest = hashlib.sha256(json.dumps(config.to_json(), sort_keys=True).encode()).hexdigest()[:10]
        gears = "-".join(map(str, config.gears))
        return self.path / "runs" / f"{file_name(config.task)}-{config.recipe.name}-{gears}-{digest}"


def _members(runs: Sequence[StoredRun], group: Group) -> list[Member]:
    """Where each agent of a group is, among runs that were planned for it."""
    program = replace(group.config, agents=())
    found = []
    for agent in group.config.agents:
        run = next(run for run in runs if run.holds(program, agent))
        found.append(Member(run, run.config.agents.index(agent), group.setting))
    return found
