"""What a person names to export, a run directory with an agent's number or a policy file, and what comes of it."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lowgear import LowgearError, envs
from lowgear.config import recipes, tasks
from lowgear.config.run_directory import RunDirectory
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import main_agent
from lowgear.evaluation.evaluate import starts
from lowgear.evaluation.record import Episode, record, respond
from lowgear.export.check import ExportedController, compare, require_equal
from lowgear.policy.file import Policy, load
from lowgear.policy.header import PolicyHeader
from lowgear.policy.setting import deployed

MakeEnv = Callable[[int], BatchEnv]
SEED = 0  # of the recorded episodes, that of `lowgear evaluate`
RANDOM_STEPS = 1000  # of a stretch of random observations


@dataclass(frozen=True)
class Source:
    """A policy, where it lies, and its environment."""

    policy: Policy
    path: Path
    agent: int | None  # None for a policy file
    make_env: MakeEnv | None  # None where it cannot be made here
    no_env: str = ""  # why
    chosen: str = ""  # why this agent, where the run has several and none was named

    def episodes(self, count: int, policy: Policy | None = None) -> list[Episode]:
        """Recorded episodes of the policy, or of another in its place; random where there is no environment."""
        if self.make_env is None:
            return random_episodes(policy or self.policy, count)
        return record_episodes(policy or self.policy, self.make_env, count)

    def check(self, exported: ExportedController, episodes: Sequence[Episode], what: str) -> dict[str, Any]:
        """Hold an export against its episodes; what export.json says of it, or an error where it acts otherwise."""
        return asdict(require_equal(compare(exported, episodes, self.make_env is not None), what))


@dataclass(frozen=True)
class ExportRequest:
    """One export that was asked for, in any format."""

    source: Source
    name: str  # of files and symbols
    weights: str = "float32"  # or int8, for C
    episodes: int = 4  # to check it on
    unchecked: bool = False  # write C although no compiler can check it


@dataclass(frozen=True)
class ExportFiles:
    """Files by name, and what export.json says of them."""

    files: dict[str, bytes]
    report: dict[str, Any]
    notes: tuple[str, ...] = ()  # what a person should know besides


def record_episodes(policy: Policy, make_env: MakeEnv, count: int, seed: int = SEED) -> list[Episode]:
    """The first episode of each of `count` environments, from the starts of `lowgear evaluate`."""
    with closing(make_env(count)) as env:
        return record(policy, env, starts(seed, count))


def random_episodes(policy: Policy, count: int, seed: int = SEED, steps: int = RANDOM_STEPS) -> list[Episode]:
    """What the policy does on standard normal observations, where the environment cannot be made."""
    observations = np.random.default_rng(seed).standard_normal((count, steps, policy.header.obs_dim), np.float32)
    return [respond(policy, each) for each in observations]


def read(
    path: Path,
    agent: int | None = None,
    best: bool = False,
    coefficient: float | None = None,
    trust: bool = False,
) -> Source:
    """The policy at a path, with its dial set where a coefficient is given.

    Of a run directory the agent that is named, or the one that stands for the run (`evaluation.main_agent`).
    It has no environment where its task names a Python module and is not trusted: an export can do without.
    """
    if path.is_dir():
        source = _from_run(path, agent, best, trust)
    elif path.is_file():
        if agent is not None or best:
            raise LowgearError(f"{path} is one policy: --agent and --best choose from a run directory")
        source = Source(load(path), path, None, None)
    else:
        raise LowgearError(f"{path}: no such run directory or policy file; `lowgear train` makes one")
    policy = deployed(source.policy, coefficient)
    try:
        return replace(source, policy=policy, make_env=_environment(policy, source, trust))
    except LowgearError as error:
        return replace(source, policy=policy, make_env=None, no_env=str(error))


def ends_on_success(header: PolicyHeader) -> bool:
    """Whether episodes of the policy's task end where they succeed, by the recipe that it was trained with."""
    return recipes.behind(header).end_on_success


def of_policy(policy: Policy, path: Path, make_envs: Callable[[], MakeEnv]) -> Source:
    """A policy in memory, to be called `path`, with the environments that it brings, if it can."""
    source = Source(policy, path, None, None)
    try:
        return replace(source, make_env=_fitting(make_envs(), policy))
    except LowgearError as error:
        return replace(source, no_env=str(error))


def default_out(source: Source, format_name: str) -> Path:
    """Where an export goes unless told: into the run, or beside the policy file."""
    if source.agent is None:
        return source.path.with_name(f"{source.path.stem}-{format_name}")
    return source.path.parent.parent / "export" / f"{source.path.stem}-{format_name}"


def writable(out: Path) -> Path:
    """The directory to write into, or an error before any work is done."""
    existing = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise LowgearError(f"--out {out}: {existing} is a file; name a directory")
    if not os.access(existing, os.W_OK):
        raise LowgearError(f"--out {out}: {existing} cannot be written to; name another directory")
    return out


def _from_run(path: Path, named: int | None, best: bool, trust: bool) -> Source:
    run = RunDirectory(path, trust)
    config = run.read_config(environment=False)  # `_environment` asks whether it may be made
    agent, why = main_agent.of_run(run, config, best) if named is None else (named, "")
    if not 0 <= agent < len(config.agents):
        raise LowgearError(f"--agent {agent}: {path} has agents 0 to {len(config.agents) - 1}")
    policy_path = run.policy(agent, best)
    if not policy_path.is_file():
        raise LowgearError(
            f"{path} has no {policy_path.name} yet: train it further with `lowgear train --resume {path}`"
        )
    several = f"agent {agent} of 0 to {len(config.agents) - 1}: {why}; --agent K names another"
    chosen = several if named is None and len(config.agents) > 1 else ""
    policy = run.load_policy(config, agent, best)
    return Source(policy, policy_path, agent, partial(envs.make_env, config), chosen=chosen)


def _environment(policy: Policy, source: Source, trust: bool) -> MakeEnv:
    """The policy's environment, if it may and can be made and has the policy's sizes."""
    header = policy.header
    tasks.check_trust(header.task, source.path, trust)
    make_env = source.make_env or _by_name(header.task, ends_on_success(header))
    return _fitting(make_env, policy)


def _fitting(make_env: MakeEnv, policy: Policy) -> MakeEnv:
    """The environments, if they have the policy's sizes."""
    header = policy.header
    with closing(make_env(1)) as env:
        spec = env.spec
    if any(getattr(spec, name) != getattr(header, name) for name in ("obs_dim", "action_low", "action_high")):
        raise LowgearError(f"{spec.name} has other sizes or bounds than the policy was trained on")
    return make_env


def _by_name(name: str, end_on_success: bool) -> MakeEnv:
    try:
        task = tasks.find(name)
    except LowgearError:
        task = tasks.find(f"gym:{name}")  # an Agent of a Gymnasium environment keeps the environment's own name
    return lambda count: envs.make(task, count, end_on_success=end_on_success)
