"""The run directory.

config.json      everything that defines the run, with versions and the git commit
metrics.jsonl    one line for each log interval and agent
checkpoint/      rows as they were collected, the learners' state, and latest.json, which names what is valid
policies/        agentK.safetensors, the last, and agentK-best.safetensors
evaluation.json  what `lowgear evaluate` found
"""

import json
import os
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.tasks import check_trust
from lowgear.policy.fields import BadField
from lowgear.policy.file import Policy, load
from lowgear.policy.files import read_json, write_whole


class RunDirectory:
    """Files of one run."""

    def __init__(self, path: str | Path, trust: bool = False) -> None:
        self.path, self.trust = Path(path), trust  # trust: its task may import a Python module
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.jsonl"
        self.policies = self.path / "policies"
        self.evaluation = self.path / "evaluation.json"
        self.checkpoint = self.path / "checkpoint"
        self.latest = self.checkpoint / "latest.json"

    def create(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        """Make a new run's directory; one that exists is never touched."""
        if self.path.exists():
            raise LowgearError(
                f"{self.path} exists: choose another --out, or go on with it by `lowgear train --resume {self.path}`"
            )
        try:
            self.policies.mkdir(parents=True)
            self.checkpoint.mkdir()
        except OSError as error:
            raise LowgearError(f"could not make {self.path}: {error.strerror}") from None
        write_whole(self.config, json.dumps(config.to_json() | {"provenance": provenance}, indent=2).encode())

    def read_config(self, environment: bool = True) -> RunConfig:
        """The run's definition; anything else is an error.

        So is a task that would import a module, where its environment is wanted and the run is not trusted.
        """
        if not self.config.is_file():
            raise LowgearError(f"{self.path} is not a run: it has no config.json")
        if not self.trust:
            self._check_links()
        raw = read_json(self.config, "configuration", "start a new run")
        try:
            config = RunConfig.from_json(raw)
        except (BadField, LowgearError) as error:
            raise LowgearError(
                f"{self.config} is damaged or of another version of Lowgear ({error}): start a new run"
            ) from None
        if environment:
            check_trust(config.task, self.config, self.trust)
        return config

    def _check_links(self) -> None:
        """Refuse links that lead out of the directory: what is written into the run would land there."""
        home = self.path.resolve()
        for folder, folders, files in os.walk(self.path):
            for path in (Path(folder, name) for name in (*folders, *files)):
                if path.is_symlink() and not path.resolve().is_relative_to(home):
                    raise LowgearError(
                        f"{path} is a link that leads out of the run, to {path.resolve()}: put a copy in its place, "
                        "or say --trust"
                    )

    def finished(self, config: RunConfig) -> bool:
        """Whether every agent's last policy has seen all of the run's steps."""
        paths = [self.policy(agent) for agent in range(len(config.agents))]
        if not all(path.exists() for path in paths):
            return False
        return all(self.load_policy(config, agent).header.steps >= config.steps for agent in range(len(config.agents)))

    def load_policies(self, best: bool = False) -> list[Policy]:
        """The last policy of every agent, or the best one."""
        config = self.read_config()
        if not self.policy(0, best).exists():
            raise LowgearError(
                f"{self.path} has no policies yet: train it further with `lowgear train --resume {self.path}`"
            )
        return [self.load_policy(config, agent, best) for agent in range(len(config.agents))]

    def load_policy(self, config: RunConfig, agent: int, best: bool = False) -> Policy:
        """One agent's policy; that of another run, or of another agent, is an error."""
        path = self.policy(agent, best)
        policy = load(path)
        header, settings, recipe = policy.header, config.agents[agent], config.recipe
        wanted = {
            "task": config.task,
            "recipe": recipe.name,
            "variant": settings.variant,
            "seed": settings.seed,
            "gears": config.gears,
            "periods": recipe.periods,
            "master_units": recipe.master_units,
            "activation": recipe.actor_activation,
        }
        for name, value in wanted.items():
            found = getattr(header, name)
            if found != value:
                raise LowgearError(
                    f"{path} is of another run: its {name} is {_shown(found)}, not agent {agent}'s {_shown(value)}; "
                    "name the file itself to export it, or bring back the run's own"
                )
        return policy

    def policy(self, agent: int, best: bool = False) -> Path:
        """Where an agent's policy is kept."""
        return self.policies / f"agent{agent}{'-best' if best else ''}.safetensors"

    def rows(self, number: int) -> Path:
        """Rows collected between checkpoint `number` and the next."""
        return self.checkpoint / f"rows-{number}.bin"

    def state(self, number: int) -> Path:
        """The learners at checkpoint `number`."""
        return self.checkpoint / f"state-{number}.safetensors"


def _shown(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
