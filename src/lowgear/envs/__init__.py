"""Environments in batches, behind one protocol: EnvPool (default), Gymnasium and dm_control.

`make` is for a named task, `wrap` for what a person passes in from Python. Each adapter is imported when it
is first needed: their simulators take seconds to load and two of the three are extras.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lowgear import LowgearError
from lowgear.config.gears import GivenGear, need_sizes
from lowgear.config.run import RunConfig
from lowgear.config.tasks import Task, find
from lowgear.envs import watchdog
from lowgear.envs.interrupts import interrupts_wait
from lowgear.envs.protocol import BatchEnv, EnvSpec, Step

__all__ = ["BatchEnv", "EnvSpec", "Step", "make", "make_env", "sized", "wrap"]


def make(
    task: Task,
    num_envs: int,
    threads: int | None = None,
    end_on_success: bool = False,
    max_episode_steps: int | None = None,
) -> BatchEnv:
    """`num_envs` environments of `task`; `threads` counts for EnvPool only, the others step in turn.

    With `end_on_success` the episodes of a task that reports success end there, as the paper's Fetch tasks did. They
    are cut after `max_episode_steps`, or the environment's own limit; one that has none is given one
    (`spaces.ANY_LIMIT`), since nobody could tell how an endless episode scored.
    """
    env: BatchEnv
    if task.source == "envpool":
        with interrupts_wait():
            from lowgear.envs.pool import PoolEnv

        env = PoolEnv(task.name, task.env_id, num_envs, threads, end_on_success, max_episode_steps)
    elif task.source == "gym":
        with interrupts_wait():
            from lowgear.envs.gym import registered

        env = registered(task.name, task.env_id, num_envs, end_on_success, max_episode_steps)
    elif task.source == "python":
        from lowgear.envs.own import from_module

        env = from_module(task.name, num_envs, end_on_success, max_episode_steps)
    else:
        with interrupts_wait():
            from lowgear.envs.dmc import DmcEnv

        env = DmcEnv(task.name, task.env_id, num_envs, max_episode_steps)
    _check_sizes(task, env.spec)
    env.limit_s = watchdog.limit_s
    return env


def make_env(config: RunConfig, num_envs: int) -> BatchEnv:
    """A run's environments, as its recipe wants their episodes to end."""
    recipe = config.recipe
    return make(
        find(config.task),
        num_envs,
        end_on_success=recipe.end_on_success,
        max_episode_steps=recipe.max_episode_steps,
    )


def sized(task: Task, gears: Sequence[GivenGear] | None) -> Task:
    """The task with its sizes, where they decide which gear is the cheaper: an environment is made to tell."""
    if task.obs_dim is not None or not need_sizes(gears):
        return task
    env = make(task, 1)
    env.close()
    return replace(task, obs_dim=env.spec.obs_dim, act_dim=env.spec.act_dim)


def wrap(env: Any, num_envs: int = 1, end_on_success: bool = False) -> BatchEnv:
    """A Gymnasium environment, a function that makes one or a vector of them, or a vector, as a batch."""
    from lowgear.envs import own

    return own.wrap(env, num_envs, end_on_success)


def _check_sizes(task: Task, spec: EnvSpec) -> None:
    """A published task whose sizes are not the paper's would carry wrong costs everywhere."""
    if task.published is not None and (spec.obs_dim, spec.act_dim) != (task.obs_dim, task.act_dim):
        raise LowgearError(
            f"{task.name} has {spec.obs_dim} observations and {spec.act_dim} actions here "
            f"but {task.obs_dim} and {task.act_dim} in the paper: install the pinned envpool==1.2.5"
        )
