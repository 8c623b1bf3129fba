"""Runs that studies share: an agent that one study trained serves every other that asks for the same.

    DIR/runs/       run directories as `lowgear train` makes them
    DIR/students/   imitators, and what they were taught with
    DIR/NAME/       the tables of the study NAME

Runs are trained by this process, one after the other, or by a pool of `executors`. One that was killed goes on from its
last checkpoint. What was evaluated is kept in the run's scores.json. A run that fails, or an agent of it, is left out;
the others go on.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.config.agents import AgentConfig
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import file_name, find
from lowgear.policy.file import Policy
from lowgear.studies import executors
from lowgear.studies.child import Result
from lowgear.studies.evaluations import Progress
from lowgear.studies.executors import Pool
from lowgear.studies.overview import Overview, ProgramStatus
from lowgear.studies.program import Program, Scored, cut_here, load, name_of, score, train
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.setup import Group
from lowgear.studies.storage import Remote
from lowgear.studies.tracked import tracked
from lowgear.training.checkpoint import read_latest
from lowgear.training.progress import Listener

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
        return name_of((self.number, self.setting))

    def load(self) -> Policy:
        """Its controller."""
        return load(self.run.directory, self.run.config, (self.number, self.setting))


class RunStore:
    """A directory of runs, and what makes the missing ones."""

    def __init__(
        self,
        path: Path,
        listeners: Listeners = lambda *_: [],
        progress: Progress = lambda *_: None,  # of evaluations
        runs: Path | None = None,  # None: path/runs
        remote: Remote | None = None,  # where a pool's machines keep runs, if they share no directory with this one
    ) -> None:
        self.path, self.listeners, self.progress = path, listeners, progress
        self.runs, self.remote = runs or path / "runs", remote
        self.population: int | None = None  # agents of one run at most; None: all that its program can hold
        self.pool: Pool | None = None  # None: this process trains, one run after the other
        self.overview: Overview | None = None
        self.tell: Callable[[str], None] = lambda _: None  # what trackers of a pool's programs have to say
        self.estimate: Callable[[StoredRun], float | None] = lambda _: None  # seconds that are left of a run
        self.failures: list[str] = []  # what rows are without, and why
        self._failed: set[Path] = set()  # runs, which are not tried again

    def existing(self) -> list[StoredRun]:
        """Every run of the store, finished ones first."""
        runs = []
        for path in sorted(self.runs.glob("*/config.json")):
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
        new = [
            replace(program, agents=tuple(agents[start : start + most]))
            for program, agents in wanted.items()
            for most in [self.population or max(1, len(agents))]
            for start in range(0, len(agents), most)
        ]
        return [
            *used.values(),
            *(StoredRun(RunDirectory(self._path(config), trust=True), config, False) for config in new),
        ]

    def train(self, groups: Sequence[Group], episodes: int = 0) -> None:
        """Whatever is missing of the groups' agents, the longest runs first; `failures` tells of runs that fail.

        A pool's programs also score them, where episodes are wanted.
        """
        self._fetch()
        runs = self.plan(groups)
        times = {run.directory.path: self.estimate(run) for run in runs}
        self._show(runs, times)
        missing = [run for run in runs if not run.finished and run.directory.path not in self._failed]
        if self.pool is not None:
            missing.sort(key=lambda run: -(times[run.directory.path] or 0.0))
            self._train_in(
                self.pool,
                [self._program(run, runs, groups, episodes) for run in missing],
                [_program_of(run) for run in runs if run.finished],
            )
            return
        for run in missing:
            try:
                self._train(run, self._program(run, runs, groups, episodes))
            except LowgearError as error:
                self._fail_run(run.directory.path, str(error))

    def rows(self, groups: Sequence[Group], episodes: int) -> list[TableRow]:
        """What the groups' agents score; only what is missing is trained and evaluated.

        Agents that fail are left out, and groups of which none is left: `failures` tells of them.
        """
        self.train(groups, episodes)
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
        scored = tuple((member.number, member.setting) for member in own)
        program = replace(_program_of(run), scored=scored, episodes=episodes)

        def fail(name: str, why: str) -> None:
            self.fail(path, f"{name} was not evaluated: {why}")

        return score(program, run.directory, self.progress, fail)

    def policies(self, group: Group) -> list[Policy]:
        """The trained controllers of a group, seed by seed."""
        return [member.load() for member in _members(self.plan([group]), group)]

    def trained(self, group: Group) -> list[Policy]:
        """The same, without agents that stopped before the end."""
        members = _members(self.plan([group]), group)
        return [member.load() for member in members if member.number not in member.run.directory.read_stopped()]

    def _train(self, run: StoredRun, program: Program) -> None:
        listeners = self.listeners(run.config, run.steps_done)
        if self.overview is not None:
            listeners = [*listeners, self.overview.listener(program, run.steps_done)]
        heard = train(program, run.directory, listeners)
        if heard is not None:
            raise SystemExit(heard.exit_code)  # the same study goes on from there
        if self.overview is not None:
            self.overview.on_end(program, Result("done"))

    def _train_in(self, pool: Pool, programs: Sequence[Program], finished: Sequence[Program]) -> None:
        heard = self.overview or executors.Watcher()
        with tracked(heard, self.runs, self.tell, self.remote) as watcher:
            for program in finished:
                watcher.catch_up(program)
            for program, result in executors.carry_out(pool, programs, watcher):
                path = self.runs / program.name
                if self.remote is not None and result.kind == "done":
                    why = self.remote.bring(path, checkpoints=False)
                    result = Result("failed", why) if why else result
                if result.kind == "failed":
                    self._fail_run(path, result.why)
                watcher.finish(program, result)

    def _fail_run(self, path: Path, why: str) -> None:
        self._failed.add(path)
        self.fail(path, why)
        if self.overview is not None:
            self.overview.change(path.name, state="failed", why=why)

    def _fetch(self) -> None:
        """What other machines have left at the URL, and this one lacks."""
        for name in self.remote.names() if self.remote is not None else ():
            directory = RunDirectory(self.runs / name, trust=True)
            if not directory.config.exists() or not directory.finished(directory.read_config()):
                assert self.remote is not None
                self.remote.fetch(directory.path, checkpoints=False)

    def _show(self, runs: Sequence[StoredRun], times: dict[Path, float | None]) -> None:
        if self.overview is not None:
            self.overview.plan(
                ProgramStatus(
                    name=run.directory.path.name,
                    task=run.config.task,
                    gears=",".join(map(str, run.config.gears)),
                    agents=len(run.config.agents),
                    steps=run.config.steps,
                    state="done" if run.finished else "planned",
                    done=run.steps_done,
                    seconds=times[run.directory.path],
                )
                for run in runs
            )

    def _program(self, run: StoredRun, runs: Sequence[StoredRun], groups: Sequence[Group], episodes: int) -> Program:
        """With the members of the groups that it holds, where they are to be scored."""
        members = [member for group in groups for member in _members(runs, group)] if episodes else []
        scored: list[Scored] = [(member.number, member.setting) for member in members if member.run is run]
        program = replace(_program_of(run), scored=tuple(dict.fromkeys(scored)), episodes=episodes)
        return program if self.population is None else replace(program, parts=1)  # as in a large population

    def _path(self, config: RunConfig) -> Path:
        digest = hashlib.sha256(json.dumps(config.to_json(), sort_keys=True).encode()).hexdigest()[:10]
        gears = "-".join(map(str, config.gears)).replace(" ", "")
        return self.runs / f"{file_name(config.task)}-{config.recipe.name}-{gears}-{digest}"


def _program_of(run: StoredRun) -> Program:
    return Program(run.directory.path.name, run.config, *cut_here(len(run.config.agents)))


def _members(runs: Sequence[StoredRun], group: Group) -> list[Member]:
    """Where each agent of a group is, among runs that were planned for it."""
    program = replace(group.config, agents=())
    found = []
    for agent in group.config.agents:
        run = next(run for run in runs if run.holds(program, agent))
        found.append(Member(run, run.config.agents.index(agent), group.setting))
    return found
