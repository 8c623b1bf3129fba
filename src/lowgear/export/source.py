"""What a person names to export: a run directory with an agent's number, or a policy file."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lowgear import LowgearError, envs
from lowgear.config import recipes, tasks
from lowgear.envs.protocol import BatchEnv
from lowgear.export.episode import Episode, imagine, record
from lowgear.policy.file import Policy, load

SEED = 0  # of the stored episodes, that of `lowgear evaluate`


@dataclass(frozen=True)
class Source:
    """A policy, where it lies, and its environment."""

    policy: Policy
    path: Path
    agent: int | None  # None for a policy file
    make_env: Callable[[int], BatchEnv] | None  # None where it cannot be made here
    no_env: str = ""  # why

    def episodes(self, count: int, policy: Policy | None = None) -> list[Episode]:
        """Stored episodes of the policy; of random observations where there is no environment."""
        if self.make_env is None:
            return imagine(policy or self.policy, count, SEED)
        return record(policy or self.policy, self.make_env, count, SEED)


def read(path: Path, agent: int | None = None, best: bool = False, coefficient: float | None = None) -> Source:
    """The policy at a path, with its dial set where a coefficient is given."""
    if path.is_dir():
        found = _of_run(path, agent or 0, best)
    elif path.is_file():
        if agent is not None or best:
            raise LowgearError(f"{path} is one policy: --agent and --best choose from a run directory")
        found = Source(load(path), path, None, None)
    else:
        raise LowgearError(f"{path}: no such run directory or policy file; `lowgear train` makes one")
    policy = found.policy if coefficient is None else found.policy.at(coefficient)
    try:
        make_env = _environment(policy, found.make_env)
    except LowgearError as error:
        return Source(policy, found.path, found.agent, None, str(error))
    return Source(policy, found.path, found.agent, make_env)


def default_out(source: Source, form: str) -> Path:
    """Where an export goes unless told: into the run, or beside the policy file."""
    if source.agent is None:
        return source.path.with_name(f"{source.path.stem}-{form}")
    return source.path.parent.parent / "export" / f"{source.path.stem}-{form}"


def writable(out: Path) -> Path:
    """The directory to write into, or an error before any work is done."""
    existing = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise LowgearError(f"--out {out}: {existing} is a file; name a directory")
    if not os.access(existing, os.W_OK):
        raise LowgearError(f"--out {out}: {existing} cannot be written to; name another directory")
    return out


def _of_run(path: Path, agent: int, best: bool) -> Source:
    from lowgear.config.run_directory import RunDirectory
    from lowgear.envs import make_env

    run = RunDirectory(path)
    config = run.read_config()
    if not 0 <= agent < len(config.agents):
        raise LowgearError(f"--agent {agent}: {path} has agents 0 to {len(config.agents) - 1}")
    policy_path = run.policy(agent, best)
    if not policy_path.is_file():
        raise LowgearError(
            f"{path} has no {policy_path.name} yet: train it further with `lowgear train --resume {path}`"
        )
    return Source(load(policy_path), policy_path, agent, partial(make_env, config))


def _environment(policy: Policy, known: Callable[[int], BatchEnv] | None) -> Callable[[int], BatchEnv]:
    """The policy's environment, if it can be made and has the policy's sizes."""
    header = policy.header
    make = known or _by_name(header.task, recipes.find(header.recipe, header.task).end_on_success)
    env = make(1)
    spec = env.spec
    env.close()
    sizes: Sequence[tuple[object, object]] = (
        (spec.obs_dim, header.obs_dim),
        (spec.action_low, header.action_low),
        (spec.action_high, header.action_high),
    )
    if any(have != want for have, want in sizes):
        raise LowgearError(f"{spec.name} has other sizes or bounds than the policy was trained on")
    return make


def _by_name(name: str, end_on_success: bool) -> Callable[[int], BatchEnv]:
    try:
        task = tasks.find(name)
    except LowgearError:
        task = tasks.find(f"gym:{name}")  # an Agent of a Gymnasium environment keeps the environment's own name
    return lambda count: envs.make(task, count, end_on_success=end_on_success)
