"""`lowgear tasks`: what can be trained."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands.completion import task_names
from lowgear.commands.options import json_option, kinds_option
from lowgear.commands.output import progress_bar, show

if TYPE_CHECKING:
    from lowgear.config.gears import GivenGear
    from lowgear.config.tasks import Task
    from lowgear.envs import EnvSpec


@click.command()
@click.argument("name", required=False, shell_complete=task_names)
@kinds_option("Gears to price instead of the preset: 8,64 or hold,8,64x64x64, as `lowgear train` takes them.")
@click.option("--try", "try_out", is_flag=True, help="Step each task for a second with random actions.")
@json_option
def tasks(name: str | None, gears: "tuple[GivenGear, ...] | None", try_out: bool, as_json: bool) -> None:
    """Show what can be trained.

    All published tasks with their presets, or the one called NAME.

    NAME is a published task, or gym:ID, dmc:domain-task or envpool:ID for any other environment with
    Box actions, or module:Class for one of your own: a class or a function of a Python module, here
    in the working directory or installed. Such a task is played for a moment with random actions, to show
    what its rewards are like.
    """
    from lowgear.commands import tables
    from lowgear.config.tasks import published_tasks

    if name is None and gears is not None:
        widths = ",".join(map(str, gears))
        raise LowgearError(f"--gears {widths} prices one task: write `lowgear tasks NAME --gears {widths}`")
    chosen = [_find(name, gears)] if name else list(published_tasks().values())
    rows = [tables.task_row(task, _spec(task), gears) for task in chosen]
    if name and (try_out or chosen[0].published is None):
        rows[0] |= {"rewards": _rewards(chosen[0])}
    if try_out:
        speeds = _try(chosen)
        rows = [row | {"steps_per_second": speed} for row, speed in zip(rows, speeds, strict=True)]
    if name:
        show(rows[0], as_json, tables.print_task)
    else:
        show(rows, as_json, tables.print_tasks)


def _find(name: str, gears: "tuple[GivenGear, ...] | None") -> "Task":
    from lowgear.config.tasks import find

    task = find(name)
    # Other gears are no longer the published task: its figures would stand beside costs that are not theirs.
    return task if gears is None else replace(task, published=None)


def _spec(task: "Task") -> "EnvSpec | None":
    """What only the made environment can tell; a published task's sizes are known without it."""
    if task.published is not None:
        return None
    from lowgear import envs

    env = envs.make(task, 1)
    env.close()
    return env.spec


def _rewards(task: "Task") -> dict[str, Any]:
    """What random actions earn."""
    from lowgear.envs.trial import rewards

    return asdict(rewards(task))


def _try(chosen: "list[Task]") -> list[float]:
    """Steps a second of each task, with a bar on standard error."""
    from lowgear.envs.trial import steps_per_second

    speeds: list[float] = []
    with progress_bar("", len(chosen)) as update:
        for task in chosen:
            update(description=task.name)
            speeds.append(steps_per_second(task, lambda share: update(completed=len(speeds) + share)))
    return speeds
