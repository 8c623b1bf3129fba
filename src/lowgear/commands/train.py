"""`lowgear train`: a population from nothing, or a run that goes on."""

import contextlib
import itertools
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c, lists
from lowgear.commands.completion import task_names, variants
from lowgear.commands.executors import NAMES, Place, executor_options
from lowgear.commands.options import (
    env_timeout_option,
    gears_option,
    list_option,
    recipe_option,
    set_option,
    steps_option,
    track_option,
    trust_option,
)

if TYPE_CHECKING:
    from lowgear.config.run import RunConfig
    from lowgear.config.run_directory import RunDirectory
    from lowgear.config.tasks import Task
    from lowgear.envs.watchdog import OnStuck
    from lowgear.training.loop import Training
    from lowgear.training.progress import Display


@click.command()
@click.argument("task", required=False, shell_complete=task_names)
@recipe_option
@steps_option
@list_option(
    "--seeds", lists.integers, "One agent for each: 0-4 or 0,2,7.", metavar=None, default="0", show_default=True
)
@list_option(
    "--variants",
    lambda _, text: lists.words(text),
    "One agent for each and each seed: asymmetric (all gears, and a master that pays for compute), small-only and "
    "large-only (one gear, no master), fixed-cost (one cost coefficient, no dial), no-cost (a cost coefficient of 0), "
    "separate-buffers (each gear learns from its own steps alone).",
    metavar=None,
    default="asymmetric",
    show_default=True,
    shell_complete=variants,
)
@list_option(
    "--cost-coefficients",
    lists.numbers,
    "Prices of compute in the task's rewards, 0.001,0.1: the ends of the dial, or one agent for each where there is no "
    "dial (the paper's recipe, and the variant fixed-cost).  [default: a dial measured against the scale of the "
    "rewards, which is found while training; with --recipe paper, the paper's for the task]",
)
@list_option("--discounts", lists.numbers, "Discounts of the gears: 0.99,0.999.  [default: the recipe's]")
@list_option(
    "--learning-rates", lists.numbers, "Of the gears' critics: 3e-4,1e-3 (actors: --set).  [default: the recipe's]"
)
@gears_option
@list_option(
    "--period",
    lists.integers,
    "Steps a pick of the master holds, or those it may choose from: 5 or 2,5,20.  [default: the recipe's]",
)
@click.option("--master-units", type=int, help="Hidden width of the master.  [default: the recipe's]")
@click.option(
    "--known-prices/--learned-prices",
    default=None,
    help="Whether a dial's master is told what its choices cost and learns what they earn alone (a higher coefficient "
    "then never picks a dearer choice in the same state), or learns both.  [default: known, with --recipe modern]",
)
@click.option("--critic-units", type=int, help="Least hidden width of the critics.  [default: the recipe's]")
@click.option(
    "--environments", type=int, help="Of each agent, which share its steps.  [default: 1; with a GPU 4 of EnvPool's]"
)
@click.option(
    "--max-episode-steps",
    type=int,
    metavar="N",
    help="Cut episodes there.  [default: the environment's own limit, or 10,000 where it sets none]",
)
@set_option
@click.option(
    "--settings", type=click.Path(path_type=Path), metavar="FILE", help="The same from a TOML file: batch = 128."
)
@click.option(
    "--evaluate-every", type=int, help="Steps between evaluations, 0 for none.  [default: a tenth of --steps]"
)
@click.option("--evaluate-episodes", default=5, show_default=True, help="Episodes of each agent then.")
@click.option("--checkpoint-every", default=40_000, show_default=True, help="Steps between checkpoints.")
@click.option(
    "--on-write-error",
    type=click.Choice(["stop", "go-on"]),
    default="stop",
    show_default=True,
    help="Where the disk is full or may not be written to: stop, or train on, keep in memory what is to be written "
    "(at most as much as the replay buffers), and write it with the next checkpoint that succeeds.",
)
@track_option("tensorboard where it is installed")
@click.option("--out", type=click.Path(path_type=Path), help="The run's directory.  [default: runs/TASK-RECIPE-TIME]")
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with this run instead.")
@executor_options
@click.option(
    "--shards",
    type=int,
    metavar="N",
    help="With --jobs or --ray, programs that the agents are spread over.  [default: as many as go at once]",
)
@env_timeout_option
@trust_option
def train(
    task: str | None,
    resume: Path | None,
    trust: bool,
    on_write_error: str,
    track: tuple[str, ...] | None,
    **options: Any,
) -> None:
    """Train a population of agents on TASK.

    Every combination of seeds, variants, cost coefficients, discounts and learning rates is one agent, and all of them
    learn in one program: five seeds of three variants cost far less than fifteen runs. Policies, metrics and
    checkpoints go to the run's directory; `--resume DIR` goes on exactly where it was, and with --steps N until it has
    N steps in all. Ctrl-C and `kill` stop a run at a checkpoint.

    A population too large for one program is spread over several, on this machine (--jobs) or on a Ray cluster (--ray).
    Agents learn as they would together, and are one run in the end; `lowgear study status DIR` shows where it stands.

    \b
      lowgear train cartpole-swingup --steps 100000 --seeds 0-2
      lowgear train walker-stand --variants asymmetric,small-only,large-only --seeds 0-4
      lowgear train gym:Pendulum-v1 --steps 50000
      lowgear train cartpole-swingup --gears hold,8,64
      lowgear train arm:Arm --steps 50000            the class Arm of arm.py, here
      lowgear train --resume runs/walker-stand-modern-20261115-081500
    """
    from lowgear.commands.train_spread import train_spread
    from lowgear.config.run_directory import RunDirectory
    from lowgear.studies.shards import has_begun, is_spread

    if task is not None and resume is not None and Path(task).is_dir():
        raise LowgearError(f"--resume goes on with one run at a time: name {resume} or {task}")
    if (task is None) == (resume is None):
        raise LowgearError("name a TASK to train, or a run to go on with by --resume DIR, and not both")
    place, shards = Place(**{name: options.pop(name) for name in NAMES}), options.pop("shards")
    if shards is not None and shards < 1:
        raise LowgearError(f"--shards {shards}: write 1 or more")
    if shards is not None and not place.elsewhere:
        raise LowgearError(f"--shards {shards} is for --jobs or --ray: add one of them, or leave it out")
    if resume is not None:
        _reject_options_beside_resume()
        directory = RunDirectory(resume, trust)
        config = directory.read_config()
        if options["steps"] is not None:
            config = directory.extended(config, options["steps"])
    else:
        assert task is not None
        directory, config = _new_run(task, options, together=not place.elsewhere)
    if place.elsewhere and directory.latest.exists():
        raise LowgearError(f"{directory.path} is one program already: go on with it without --jobs or --ray")
    ctrl_c.will_say(f"stopped while it was starting; {_again(directory, config)}")
    try:
        _settle_trackers(directory, track)
        if place.elsewhere or is_spread(directory):
            train_spread(directory, config, place, shards)
        else:
            _run(directory, config, go_on=on_write_error == "go-on")
    except LowgearError:
        if resume is None and directory.untouched and not has_begun(directory):
            shutil.rmtree(directory.path, ignore_errors=True)  # it would only stand in the way of another try
        raise


def _reject_options_beside_resume() -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        may = ("task", "resume", "steps", "trust", "on_write_error", "env_timeout", "track", "shards", *NAMES)
        if given and name not in may:
            raise LowgearError(
                f"{parameter.opts[0]} cannot change a run that goes on: leave it out, or start a new run"
            )


def _settle_trackers(directory: "RunDirectory", given: tuple[str, ...] | None) -> None:
    """Those that were asked for, from now on; without --track a run keeps those it has."""
    from lowgear.training.trackers.choice import ChosenTrackers, need

    chosen = ChosenTrackers.of(directory)
    if given is not None:
        chosen.settle(given)
    need(chosen.names)  # before anything is made


def _new_run(name: str, options: dict[str, Any], together: bool) -> "tuple[RunDirectory, RunConfig]":
    """Its directory; a population that learns `together`, in this process, must fit into its memory."""
    from lowgear.config import settings
    from lowgear.config.run_directory import RunDirectory
    from lowgear.config.tasks import file_name, find
    from lowgear.envs import make_env
    from lowgear.training import memory
    from lowgear.training.frozen import check_frozen
    from lowgear.training.provenance import provenance
    from lowgear.training.setup import method_of

    task, out = find(name), options.pop("out")
    options["periods"] = options.pop("period")
    file, assignments = options.pop("settings"), options.pop("assignments")
    of_recipe = ("periods", "master_units", "known_prices", "critic_units", "environments", "max_episode_steps")
    overrides = settings.from_file(file) if file else {}
    overrides |= settings.from_assignments(assignments)
    overrides |= {key: value for key in of_recipe if (value := options.pop(key)) is not None}
    config = _resolved(task, options, overrides)
    env = make_env(config, 1)  # what can't be made, or learned in, leaves no directory behind
    check_frozen(config, env.spec)
    population = len(config.agents) if together else 1
    memory.check(
        method_of(config, env.spec, env.goal_rule), population, config.capacity, config.recipe.updates_per_chunk
    )
    env.close()
    if out is not None:
        directory = RunDirectory(out)
        directory.create(config, provenance())
        return directory, config
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{file_name(task.name)}-{config.recipe.name}-{stamp}"
    for number in itertools.count(1):  # another run may begin in the same second
        directory = RunDirectory(Path("runs") / (name if number == 1 else f"{name}-{number}"))
        with contextlib.suppress(FileExistsError):
            directory.make(config, provenance())
            break
    return directory, config


def _resolved(task: "Task", options: dict[str, Any], overrides: dict[str, Any]) -> "RunConfig":
    """The run's definition; a task that cannot be made is the first thing to hear of."""
    from lowgear import envs
    from lowgear.config.run import resolve
    from lowgear.training.device import has_accelerator

    try:
        task = envs.sized(task, options["gears"])
        return resolve(task, **options, overrides=overrides, accelerator=has_accelerator())
    except LowgearError:
        envs.make(task, 1).close()
        raise


def _run(directory: "RunDirectory", config: "RunConfig", go_on: bool) -> None:
    from lowgear.commands import tables
    from lowgear.config.tasks import trust_flag
    from lowgear.envs import make_env
    from lowgear.training.loop import Training
    from lowgear.training.progress import STARTING, Display
    from lowgear.training.trackers.choice import default_trackers

    if directory.finished(config):
        evaluate = f"lowgear evaluate {directory.path}{trust_flag(config.task)}"
        click.echo(f"{directory.path} is finished; `{evaluate}` scores it", err=True)
        return
    make = partial(make_env, config)
    with contextlib.ExitStack() as opened:
        display = Display(config.steps)
        opened.callback(display.close)
        display.on_phase(STARTING)
        training = Training(
            config, make(config.environments), make, directory, go_on=go_on, trackers=default_trackers()
        )
        opened.callback(_close, training)
        _go(training, display, directory)
    if training.last_evaluation:
        tables.print_evaluation(training.last_evaluation, config.gears)
    click.echo(str(directory.path))


def _go(training: "Training", display: "Display", directory: "RunDirectory") -> None:
    """Train to the end; what stops it before is told, with the command that goes on."""
    from lowgear.envs import watchdog
    from lowgear.training.checkpoint import read_latest
    from lowgear.training.signals import stops

    config = training.config
    again = _again(directory, config)
    if training.collector.steps:
        display.on_notice(f"going on from {training.collector.steps} of {config.steps} steps")
        display.on_steps(training.collector.steps)
    if training.begins_anew:
        display.on_notice(f"{config.task} does not repeat itself: the episodes that were open begin anew")
    ctrl_c.will_say(f"stopped at once, at the last checkpoint; {again}")
    try:
        with (
            stops(training.stop, lambda: ctrl_c.say("stopping at a checkpoint; once more stops at once")) as heard,
            watchdog.stuck(partial(_end_stuck, display, watchdog.on_stuck(), again)),
        ):
            finished = training.run([display])
    finally:
        display.close()
    if not finished:
        latest = read_latest(directory)
        ctrl_c.will_say(f"stopped at {latest.steps if latest else 0} of {config.steps} steps; {again}")
        raise SystemExit(heard.exit_code)


def _again(directory: "RunDirectory", config: "RunConfig") -> str:
    from lowgear.config.tasks import trust_flag

    return f"go on with `lowgear train --resume {directory.path}{trust_flag(config.task)}`"


def _end_stuck(display: "Display", end: "OnStuck", again: str, why: str) -> None:
    """An environment's code can't be interrupted; what could be kept was written."""
    with contextlib.suppress(Exception):
        display.close()
    end(f"{why}; its code can't be interrupted, so the run ends here, with its policies as they stand; {again}")


def _close(training: "Training") -> None:
    with contextlib.suppress(Exception):
        training.close()
