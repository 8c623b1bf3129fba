"""Imitators for the studies: taught once, and kept with what they were taught with.

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
from lowgear.baselines.demonstrations import Demonstrations
from lowgear.baselines.gail import GailSettings
from lowgear.baselines.record import Amount, record
from lowgear.baselines.student import Students
from lowgear.config.paper import Figures
from lowgear.config.run import RunConfig
from lowgear.config.tasks import file_name, find
from lowgear.envs import make_env
from lowgear.policy.file import Policy, load
from lowgear.studies.evaluations import evaluate_once
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import Setup

METHODS = ("bc", "dagger", "gail")


@dataclass(frozen=True)
class ImitationRunner:
    """One teacher, and what all of its students have in common."""

    setup: Setup
    store: RunStore
    config: RunConfig  # the teacher's run
    teacher: Policy
    units: int  # of every student

    def row(self, method: str, amount: Amount, label: str, paper: Figures) -> TableRow:
        """Students of a method, one for each seed, evaluated."""
        settings, seeds = self._settings(method), self.setup.seeds
        what: list[Any] = [method, asdict(amount), asdict(settings), self.units, seeds, _digest(self.teacher)]
        digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]
        directory = self.store.path / "students" / f"{file_name(self.config.task)}-{method}-{digest}"
        paths = [directory / f"agent{number}.safetensors" for number in range(len(seeds))]
        if not all(path.exists() for path in paths):
            make_directory(directory)
            (shown,) = record([self.teacher], self._make_env, amount, progress=self._progress("recording"))
            students = self._fit(method, shown, settings)
            shown.save(directory / "demonstrations.safetensors")
            for policy, path in zip(students.policies, paths, strict=True):
                policy.save(path)
        policies = {f"seed {seed}": partial(load, path) for seed, path in zip(seeds, paths, strict=True)}
        found = evaluate_once(directory, policies, self._make_env, "greedy", self.setup.episodes, self.store.progress)
        results = tuple(SeedResult.of(seed, found[f"seed {seed}"]) for seed in seeds)
        return TableRow(find(self.config.task), label, results, paper, load(paths[0]).header.steps)

    def _settings(self, method: str) -> CloneSettings | GailSettings:
        """Of the paper, or ours; GAIL plays as many steps as the study's agents, where they are given."""
        paper = self.setup.recipe == "paper"
        if method == "gail":
            settings = GailSettings() if paper else gail.MODERN
            return settings if self.setup.steps is None else replace(settings, steps=self.setup.steps)
        return clone.PAPER if paper else clone.MODERN

    def _fit(self, method: str, shown: Demonstrations, settings: CloneSettings | GailSettings) -> Students:
        seeds = self.setup.seeds
        data = [shown] * len(seeds)
        if isinstance(settings, GailSettings):
            return gail.fit(data, self._make_env, self.units, seeds, settings, self._progress("gail: steps"))
        if method == "dagger":
            teachers, labelling = [self.teacher] * len(seeds), dagger.at_equal_data(shown, settings)
            progress = self._progress("dagger: rounds")
            return dagger.fit(teachers, self._make_env, self.units, seeds, labelling, progress)[0]
        return clone.fit(data, self.units, seeds, settings, self._progress("bc: epochs"))

    @property
    def _make_env(self) -> Any:
        return partial(make_env, self.config)

    def _progress(self, what: str) -> Callable[[int, int], None]:
        return partial(self.store.progress, f"{self.config.task}, {self.units} units, {what}")


def make_directory(path: Path) -> None:
    """With its parents; one that exists is left as it is."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LowgearError(f"could not make {path}: {error.strerror}") from None


def _digest(teacher: Policy) -> str:
    whole = hashlib.sha256(json.dumps(asdict(teacher.header)).encode())
    assert teacher.header.forced_gear is not None
    for weight, bias in teacher.weights.gears[teacher.header.forced_gear]:
        whole.update(weight.tobytes() + bias.tobytes())
    return whole.hexdigest()
