"""Imitators for the studies: taught once, kept in the pool with what they were taught with.

DIR/students/TASK-METHOD-DIGEST/   agentK.safetensors, demonstrations.safetensors, scores.json
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.baselines import clone, dagger, gail
from lowgear.baselines.clone import CloneSettings
from lowgear.baselines.dagger import DaggerSettings
from lowgear.baselines.demonstrations import Demonstrations
from lowgear.baselines.gail import GailSettings
from lowgear.baselines.record import Amount, record
from lowgear.config.run import RunConfig
from lowgear.config.tasks import Task
from lowgear.envs import make_env
from lowgear.policy.file import Policy, load
from lowgear.studies.lines import Line, Scored
from lowgear.studies.scoring import Progress, scores
from lowgear.studies.setup import Paper, Setup

Step = Callable[[int], None]
METHODS = ("bc", "dagger", "gail")


@dataclass(frozen=True)
class School:
    """One teacher, and what every student of a study has in common."""

    path: Path  # the pool's
    setup: Setup
    task: Task
    config: RunConfig  # the teacher's run
    teacher: Policy
    units: int  # of every student
    progress: Progress

    def line(self, method: str, amount: Amount, label: str, paper: Paper) -> Line:
        """Students of a method, one for each seed, scored."""
        settings = self._settings(method)
        seeds = self.setup.seeds
        what: list[Any] = [method, asdict(amount), asdict(settings), self.units, seeds, _digest(self.teacher)]
        digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]
        name = self.task.name.replace(":", "-").replace("/", "-")
        directory = self.path / "students" / f"{name}-{method}-{digest}"
        paths = [directory / f"agent{number}.safetensors" for number in range(len(seeds))]
        if not all(path.exists() for path in paths):
            self._teach(method, amount, settings, directory, paths)
        policies = {f"seed {seed}": partial(load, path) for seed, path in zip(seeds, paths, strict=True)}
        make = partial(make_env, self.config)
        found = scores(directory, policies, make, "greedy", self.setup.episodes, self.progress)
        scored = [Scored.of(seed, found[f"seed {seed}"]) for seed in seeds]
        return Line(self.task, label, tuple(scored), paper, load(paths[0]).header.steps)

    def _settings(self, method: str) -> CloneSettings | GailSettings:
        """Of the paper, or ours; GAIL plays as many steps as the study's agents, where they are given."""
        paper = self.setup.recipe == "paper"
        if method == "gail":
            settings = GailSettings() if paper else gail.MODERN
            return settings if self.setup.steps is None else replace(settings, steps=self.setup.steps)
        return clone.PAPER if paper else clone.MODERN

    def _teach(
        self, method: str, amount: Amount, settings: CloneSettings | GailSettings, directory: Path, paths: list[Path]
    ) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LowgearError(f"could not make {directory}: {error.strerror}") from None
        make, seeds = partial(make_env, self.config), self.setup.seeds
        (shown,) = record([self.teacher], make, amount, progress=self._counter("recording", amount.trajectories))
        if isinstance(settings, GailSettings):
            count = self._counter("gail: steps", -(-settings.steps // settings.batch_steps) * settings.batch_steps)
            students = gail.fit([shown] * len(seeds), make, self.units, seeds, settings, count)
        elif method == "dagger":
            lessons: DaggerSettings = dagger.at_equal_data(shown, settings)
            count = self._counter("dagger: rounds", lessons.rounds)
            students, _ = dagger.fit([self.teacher] * len(seeds), make, self.units, seeds, lessons, count)
        else:
            count = self._counter("bc: epochs", clone.epochs_of([shown] * len(seeds), seeds, settings))
            students = clone.fit([shown] * len(seeds), self.units, seeds, settings, count)
        _keep(shown, directory)
        for policy, path in zip(students.policies, paths, strict=True):
            policy.save(path)

    def _counter(self, what: str, total: int) -> Step:
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            self.progress(f"{self.task.name}, {self.units} units, {what}", done, total)

        return count


def _keep(shown: Demonstrations, directory: Path) -> None:
    shown.save(directory / "demonstrations.safetensors")


def _digest(teacher: Policy) -> str:
    whole = hashlib.sha256(json.dumps(asdict(teacher.header)).encode())
    assert teacher.header.forced_gear is not None
    for weight, bias in teacher.weights.gears[teacher.header.forced_gear]:
        whole.update(weight.tobytes() + bias.tobytes())
    return whole.hexdigest()
