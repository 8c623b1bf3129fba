"""Runs that studies share: an agent that one study trained serves every other that asks for the same.

    DIR/runs/       run directories as `lowgear train` makes them
    DIR/students/   imitators, and what they were taught with
    DIR/NAME/       the tables of the study NAME

A run that was killed goes on from its last checkpoint. What was evaluated is kept in the run's scores.json.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import evaluate
from lowgear.blueprint import make_env
from lowgear.checkpoint import RunDirectory
from lowgear.config import AgentConfig, RunConfig
from lowgear.errors import LowgearError
from lowgear.provenance import provenance
from lowgear.runtime import Policy, load, write_whole
from lowgear.studies.lines import Line, Scored
from lowgear.studies.setup import Group
from lowgear.tasks import find
from lowgear.train import Listener, Training

EVALUATION_SEED = 0
Listeners = Callable[[RunConfig, int], list[Listener]]  # for a run, and the steps it has behind it
Progress = Callable[[str, int, int], None]  # what, how much of it is done, of how much


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
        mark = self.directory.read_mark()
        return mark.steps if mark is not None else 0


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
            if not run.directory.path.exists():
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
        places: dict[Path, list[tuple[int, float | None]]] = {}
        where = []
        for group in groups:
            spots = [self._spot(runs, group, agent) for agent in group.config.agents]
            where.append(spots)
            for run, number in spots:
                places.setdefault(run.directory.path, []).append((number, group.setting))
        found = {
            run.directory.path: self._scores(run, places[run.directory.path], episodes, progress)
            for run in runs
            if run.directory.path in places
        }
        return [
            Line(
                find(group.config.task),
                group.label,
                tuple(
                    Scored.of(agent.seed, found[run.directory.path][number, group.setting])
                    for agent, (run, number) in zip(group.config.agents, spots, strict=True)
                ),
                group.paper,
                group.config.steps,
            )
            for group, spots in zip(groups, where, strict=True)
        ]

    def policies(self, group: Group) -> list[Policy]:
        """The trained controllers of a group, seed by seed."""
        spots = [self._spot(self.plan([group]), group, agent) for agent in group.config.agents]
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

    def _spot(self, runs: Sequence[Run], group: Group, agent: AgentConfig) -> tuple[Run, int]:
        run = _holding(runs, replace(group.config, agents=()), agent)
        assert run is not None, "planned for these groups"
        return run, run.config.agents.index(agent)

    def _scores(
        self, run: Run, places: Sequence[tuple[int, float | None]], episodes: int, progress: Progress | None
    ) -> dict[tuple[int, float | None], dict[str, Any]]:
        """Of agents at settings of their dials, from scores.json or played now."""
        path = run.directory.path / "scores.json"
        known: dict[str, dict[str, Any]] = _read(path)
        keys = {place: json.dumps([*place, episodes]) for place in places}
        missing = [place for place, key in keys.items() if key not in known]
        if missing:
            master = "boltzmann" if run.config.boltzmann else "greedy"
            policies = [_at(load(run.directory.policy(number)), setting) for number, setting in missing]
            done = 0

            def count(more: int) -> None:
                nonlocal done
                done += more
                if progress:
                    progress(run.directory.path.name, done, episodes * len(policies))

            played = evaluate.play_policies(
                policies, partial(make_env, run.config), episodes, master, EVALUATION_SEED, count
            )
            for i, place in enumerate(missing):
                known[keys[place]] = evaluate.summarise(played, i, policies[i].header.prices)
            write_whole(path, json.dumps(known, indent=1).encode())
        return {place: known[key] for place, key in keys.items()}


def _at(policy: Policy, setting: float | None) -> Policy:
    return policy if setting is None else policy.at(setting)


def _holding(runs: Iterable[Run], program: RunConfig, agent: AgentConfig) -> Run | None:
    return next((run for run in runs if replace(run.config, agents=()) == program and agent in run.config.agents), None)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return dict(known)
    except (OSError, TypeError, ValueError) as error:
        raise LowgearError(f"{path} is damaged ({error!r}): delete it, and it is evaluated anew") from None
