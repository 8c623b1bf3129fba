"""The run directory.

config.json      everything that defines the run, with versions and the git commit
metrics.jsonl    one line for each log interval and agent
stopped.json     agents that went no further, and why; where there are none there is no such file
checkpoint/      rows as they were collected, the learners' state, and latest.json, which names what is valid
policies/        agentK.safetensors, the last, and agentK-best.safetensors
frozenK.safetensors  the policy of gear K, where that is frozen
evaluation.json  what `lowgear evaluate` found
tracking.json    the trackers that were chosen for it, and its runs there
lock             held by the process that trains
"""

import errno
import json
import os
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.gears import frozen_of
from lowgear.config.ranges import MOST_STEPS
from lowgear.config.run import RunConfig, whole_chunks
from lowgear.config.tasks import check_trust
from lowgear.policy import fields
from lowgear.policy.fields import BadField
from lowgear.policy.file import Policy, load
from lowgear.policy.files import read_json, write_whole
from lowgear.policy.gears import FROZEN, Gear


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

    def beside(self, name: str) -> Path:
        """Where a file about the run goes."""
        return self.path / name

    def create(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        """Make a new run's directory; one that exists is never touched."""
        try:
            self.make(config, provenance)
        except FileExistsError:
            raise LowgearError(
                f"{self.path} exists: choose another --out, or go on with it by `lowgear train --resume {self.path}`"
            ) from None

    def make(self, config: RunConfig, provenance: dict[str, Any]) -> None:
        """Make a new run's directory in one move; FileExistsError if there is one."""
        if self.path.exists():
            raise FileExistsError
        partial = self.path.with_name(f".lowgear-{uuid.uuid4().hex}.partial")
        try:
            for folder in (partial, partial / self.policies.name, partial / self.checkpoint.name):
                folder.mkdir(parents=True)
            with (partial / self.config.name).open("wb") as file:
                file.write(_config_bytes(config, provenance))
                file.flush()
                os.fsync(file.fileno())
            for number, policy in self._frozen_policies(config):
                policy.save(partial / self.frozen(number).name)
            partial.rename(self.path)
        except LowgearError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                raise FileExistsError from None
            raise LowgearError(f"could not make {self.path}: {error.strerror}") from None

    def extended(self, config: RunConfig, steps: int) -> RunConfig:
        """The same run with more steps; fewer are an error. Nothing is written before `keep_steps`."""
        longer = replace(config, steps=whole_chunks(steps, config.recipe.chunk))
        if longer.steps < config.steps:
            raise LowgearError(f"--steps {steps}: {self.path} is a run of {config.steps}; write that many or more")
        if steps > MOST_STEPS:
            raise LowgearError(f"--steps {fields.shown(steps)}: a run has {MOST_STEPS:,} at most")
        return longer

    def keep_steps(self, config: RunConfig) -> None:
        """Write down how many steps the run has now, where they have become more."""
        raw = json.loads(self.config.read_text(encoding="utf-8"))
        if raw["steps"] < config.steps:
            write_whole(self.config, _config_bytes(config, raw.get("provenance", {})))

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
        return self._with_frozen(config)

    def _with_frozen(self, config: RunConfig) -> RunConfig:
        """With the policies of its frozen gears, which must be those that it was made with."""
        found = []
        for (number, gear), wanted in zip(_numbered(config), config.frozen, strict=True):
            path = self.frozen(number)
            one = frozen_of(load(path))
            if one != wanted or one.read.header.gears != (gear,):
                raise LowgearError(
                    f"{path} is not the policy that gear {number} of this run was frozen from: bring back the run's own"
                )
            found.append(one)
        return replace(config, frozen=tuple(found))

    @staticmethod
    def _frozen_policies(config: RunConfig) -> list[tuple[int, Policy]]:
        """Those of its frozen gears, by number."""
        return [(number, one.read) for (number, _), one in zip(_numbered(config), config.frozen, strict=True)]

    def frozen(self, gear: int) -> Path:
        """Where the policy of a frozen gear is kept."""
        return self.path / f"frozen{gear}.safetensors"

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

    @property
    def untouched(self) -> bool:
        """Whether no training has left anything in it."""
        return not self.metrics.exists() and not any(self.policies.iterdir()) and not any(self.checkpoint.iterdir())

    def finished(self, config: RunConfig) -> bool:
        """Whether every agent's last policy has seen all of the run's steps, but for agents that stopped before.

        A policy that is damaged has not: a run that goes on writes it anew. A run whose agents have all stopped has
        broken off.
        """
        stopped = self.read_stopped()
        if len(stopped) >= len(config.agents):
            return False
        for agent in range(len(config.agents)):
            if agent in stopped:
                continue
            path = self.policy(agent)
            if not path.exists():
                return False
            try:
                policy = load(path)
            except LowgearError:  # damaged
                return False
            _check_owner(path, policy, config, agent)
            if policy.header.steps < config.steps:
                return False
        return True

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
        _check_owner(path, policy, config, agent)
        return policy

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
        found = {}
        try:
            for agent, raw in read_json(self.stopped, "list of agents", "start a new run").items():
                stopped = fields.entries("an agent", raw)
                steps = fields.whole("steps", fields.entry(stopped, "steps"), 0, fields.MAX_COUNT)
                number = fields.whole("an agent", int(agent) if agent.isdecimal() else agent, 0, fields.MAX_COUNT)
                found[number] = steps, str(fields.entry(stopped, "why"))
        except BadField as error:
            raise LowgearError(f"{self.stopped} is damaged ({error}): start a new run") from None
        return found

    @property
    def lock(self) -> Path:
        """Held by the process that trains into the directory."""
        return self.path / "lock"


def _config_bytes(config: RunConfig, provenance: dict[str, Any]) -> bytes:
    return json.dumps(config.to_json() | {"provenance": provenance}, indent=2).encode()


def _numbered(config: RunConfig) -> list[tuple[int, Gear]]:
    """The gears that are frozen."""
    return [(number, gear) for number, gear in enumerate(config.gears) if gear.kind == FROZEN]


def _check_owner(path: Path, policy: Policy, config: RunConfig, agent: int) -> None:
    """An error where a policy is of another run, or of another agent."""
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


def _shown(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
