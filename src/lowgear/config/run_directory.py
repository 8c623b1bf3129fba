"""The run directory.

config.json      everything that defines the run, with versions and the git commit
metrics.jsonl    one line for each log interval and agent
stopped.json     agents that went no further, and why; where there are none there is no such file
checkpoint/      rows as they were collected, the learners' state, and latest.json, which names what is valid
policies/        agentK.safetensors, the last, and agentK-best.safetensors
evaluation.json  what `lowgear evaluate` found
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig, whole_chunks
from lowgear.policy.file import Policy, load
from lowgear.policy.files import write_whole


class RunDirectory:
    """Files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.jsonl"
        self.policies = self.path / "policies"
        self.evaluation = self.path / "evaluation.json"
        self.checkpoint = self.path / "checkpoint"
        self.latest = self.checkpoint / "latest.json"

    def create(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        """Make a new run's directory; one that exists is never touched."""
        try:
            self.make(config, provenance)
        except FileExistsError:
            raise LowgearError(
                f"{self.path} exists: choose another --out, or go on with it by `lowgear train --resume {self.path}`"
            ) from None

    def make(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        """Make a new run's directory; FileExistsError if there is one."""
        try:
            self.path.mkdir(parents=True)
            self.policies.mkdir()
            self.checkpoint.mkdir()
        except FileExistsError:
            raise
        except OSError as error:
            raise LowgearError(f"could not make {self.path}: {error.strerror}") from None
        self._write_config(config, provenance)

    def extend(self, config: RunConfig, steps: int) -> RunConfig:
        """The same run with more steps; fewer are an error."""
        longer = replace(config, steps=whole_chunks(steps, config.recipe.chunk))
        if longer.steps < config.steps:
            raise LowgearError(f"--steps {steps}: {self.path} is a run of {config.steps}; write that many or more")
        if longer.steps > config.steps:
            raw = json.loads(self.config.read_text(encoding="utf-8"))
            self._write_config(longer, raw.get("provenance", {}))
        return longer

    def _write_config(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        write_whole(self.config, json.dumps(config.to_json() | {"provenance": provenance}, indent=2).encode())

    def read_config(self) -> RunConfig:
        """The run's definition; anything else is an error."""
        if not self.config.is_file():
            raise LowgearError(f"{self.path} is not a run: it has no config.json")
        try:
            return RunConfig.from_json(json.loads(self.config.read_text(encoding="utf-8")))
        except (KeyError, TypeError, ValueError) as error:
            raise LowgearError(
                f"{self.config} is damaged or of another version of Lowgear ({error!r}): start a new run"
            ) from None

    @property
    def untouched(self) -> bool:
        """Whether no training has left anything in it."""
        return not self.metrics.exists() and not any(self.policies.iterdir()) and not any(self.checkpoint.iterdir())

    def finished(self, config: RunConfig) -> bool:
        """Whether every agent's last policy has seen all of the run's steps, but for agents that stopped before."""
        stopped = self.read_stopped()
        paths = [self.policy(agent) for agent in range(len(config.agents)) if agent not in stopped]
        return all(path.exists() and _steps_of(path) >= config.steps for path in paths)

    def load_policies(self, best: bool = False) -> list[Policy]:
        """The last policy of every agent, or the best one."""
        paths = [self.policy(agent, best) for agent in range(len(self.read_config().agents))]
        if not paths[0].exists():
            raise LowgearError(
                f"{self.path} has no policies yet: train it further with `lowgear train --resume {self.path}`"
            )
        return [load(path) for path in paths]

    def policy(self, agent: int, best: bool = False) -> Path:
        """Where an agent's policy is kept."""
        return self.policies / f"agent{agent}{'-best' if best else ''}.safetensors"

    def rows(self, number: int) -> Path:
        """Rows collected between checkpoint `number` and the next."""
        return self.checkpoint / f"rows-{number}.bin"

    def state(self, number: int, open_steps: int = 0) -> Path:
        """The learners at checkpoint `number`, or so many steps after it."""
        return self.checkpoint / f"state-{number}{f'-{open_steps}' if open_steps else ''}.safetensors"

    @property
    def stopped(self) -> Path:
        """Agents that went no further, while the others did."""
        return self.path / "stopped.json"

    def read_stopped(self) -> dict[int, tuple[int, str]]:
        """Their numbers, the steps that they had taken, and why."""
        if not self.stopped.exists():
            return {}
        try:
            raw = json.loads(self.stopped.read_text(encoding="utf-8"))
            return {int(agent): (int(found["steps"]), str(found["why"])) for agent, found in raw.items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise LowgearError(f"{self.stopped} is damaged ({error!r}): start a new run") from None

    @property
    def lock(self) -> Path:
        """Held by the process that trains into the directory."""
        return self.path / "lock"


def _steps_of(path: Path) -> int:
    """That a policy was trained for; 0 where its file is damaged, so that a run that goes on writes it anew."""
    try:
        return load(path).header.steps
    except LowgearError:
        return 0
