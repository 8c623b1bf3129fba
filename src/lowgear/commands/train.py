"""`lowgear train`: a population from nothing, or a run that goes on."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear.errors import LowgearError

if TYPE_CHECKING:
    from lowgear.config import RunConfig


@click.command()
@click.argument("task", required=False)
@click.option("--recipe", default="modern", show_default=True, help="Settings of the learners: modern or paper.")
@click.option("--steps", type=int, help="Environment steps of each agent.  [default: the paper's]")
@click.option("--seeds", default="0", show_default=True, help="One agent for each: 0-4 or 0,2,7.")
@click.option(
    "--variants",
    default="asymmetric",
    show_default=True,
    help="asymmetric, small-only, large-only, fixed-cost, no-cost, separate-buffers: one agent for each and each seed.",
)
@click.option(
    "--cost-coefficients",
    metavar="LIST",
    help="Prices of compute, 0.001,0.1: the ends of the dial, or one agent for each where there is no dial (the "
    "paper's recipe, and the variant fixed-cost).  [default: from the paper's for the task]",
)
@click.option("--discounts", metavar="LIST", help="Discounts of the gears: 0.99,0.999.  [default: the recipe's]")
@click.option("--learning-rates", metavar="LIST", help="Of the gears: 3e-4,1e-3.  [default: the recipe's]")
@click.option("--gears", metavar="WIDTHS", help="Hidden widths, cheapest first: 8,64.  [default: the paper's]")
@click.option(
    "--period",
    metavar="LIST",
    help="Steps a pick of the master holds, or those it may choose from: 5 or 2,5,20.  [default: the recipe's]",
)
@click.option("--master-units", type=int, help="Hidden width of the master.  [default: the recipe's]")
@click.option(
    "--known-prices/--learned-prices",
    default=None,
    help="Whether a dial's master is told what its choices cost and learns what they earn alone (a higher coefficient "
    "then never picks a dearer choice in the same state), or learns both.  [default: known, with --recipe modern]",
)
@click.option("--critic-units", type=int, help="Hidden width of every gear's critics.  [default: the recipe's]")
@click.option("--environments", type=int, help="Of each agent: more keep more cores busy.  [default: the recipe's, 1]")
@click.option("--evaluate-every", type=int, help="Steps between evaluations, 0 for none.  [default: a tenth]")
@click.option("--evaluate-episodes", default=5, show_default=True, help="Episodes of each agent then.")
@click.option("--checkpoint-every", default=40_000, show_default=True, help="Steps between checkpoints.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's directory.  [default: runs/TASK-RECIPE-TIME]")
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with this run instead.")
def train(task: str | None, resume: Path | None, **options: Any) -> None:
    """Train a population of agents on TASK.

    Every combination of seeds, variants and coefficients is one agent, and all of them learn in one program: five
    seeds of three variants cost far less than fifteen runs. Policies, metrics and checkpoints go to the run's
    directory; `--resume DIR` goes on exactly where its last checkpoint left it.

    \b
      lowgear train cartpole-swingup --steps 100000 --seeds 0-2
      lowgear train walker-stand --variants asymmetric,small-only,large-only --seeds 0-4
      lowgear train gym:Pendulum-v1 --gears 8,64 --cost-coefficients 0.001 --steps 50000
      lowgear train --resume runs/walker-stand-modern-20261115-081500
    """
    from lowgear.checkpoint import RunDirectory

    if (task is None) == (resume is None):
        raise LowgearError("name a TASK to train, or a run to go on with by --resume DIR, and not both")
    if resume is not None:
        _reject_options_beside_resume()
        directory = RunDirectory(resume)
        config = directory.read_config()
    else:
        assert task is not None
        directory, config = _new_run(task, options)
    _run(directory, config)


def _reject_options_beside_resume() -> None:
    context = click.get_current_context()
    given = [
        name
        for name in context.params
        if name not in ("task", "resume")
        and context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    ]
    if given:
        option = "--" + given[0].replace("_", "-")
        raise LowgearError(f"{option} cannot change a run that goes on: leave it out, or start a new run")


def _new_run(name: str, options: dict[str, Any]) -> "tuple[Any, RunConfig]":
    import time

    from lowgear.checkpoint import RunDirectory
    from lowgear.commands import lists
    from lowgear.config import resolve
    from lowgear.provenance import provenance
    from lowgear.tasks import find, parse_gears

    def listed(option: str) -> list[float] | None:
        text = options[option]
        return None if text is None else lists.numbers("--" + option.replace("_", "-"), text)

    task = find(name)
    single = ("master_units", "known_prices", "critic_units", "environments")
    overrides = {key: options[key] for key in single if options[key] is not None}
    if options["period"] is not None:
        overrides["periods"] = tuple(lists.integers("--period", options["period"]))
    config = resolve(
        task,
        options["recipe"],
        steps=options["steps"],
        seeds=lists.integers("--seeds", options["seeds"]),
        variants=lists.words(options["variants"]),
        cost_coefficients=listed("cost_coefficients"),
        discounts=listed("discounts"),
        learning_rates=listed("learning_rates"),
        gears=None if options["gears"] is None else parse_gears(options["gears"]),
        overrides=overrides,
        evaluate_every=options["evaluate_every"],
        evaluate_episodes=options["evaluate_episodes"],
        checkpoint_every=options["checkpoint_every"],
    )
    stamp = time.strftime("%Y%m%d-%H%M%S")
    safe_name = task.name.replace(":", "-").replace("/", "-")
    directory = RunDirectory(options["out"] or Path("runs") / f"{safe_name}-{config.recipe.name}-{stamp}")
    from lowgear.blueprint import make_env, method_of

    env = make_env(config, 1)  # what can't be made, or learned in, leaves no directory behind
    method_of(config, env.spec, env.goal_rule)
    env.close()
    directory.create(config, provenance())
    return directory, config


def _run(directory: Any, config: "RunConfig") -> None:
    from functools import partial

    from lowgear import tables
    from lowgear.blueprint import make_env
    from lowgear.progress import Display, TensorBoard
    from lowgear.train import Training

    if directory.finished(config):
        click.echo(f"{directory.path} is finished; `lowgear evaluate {directory.path}` scores it", err=True)
        return
    make = partial(make_env, config)
    training = Training(config, make(config.environments), make, directory)
    done = training.collector.steps
    if done:
        click.echo(f"going on from {done} of {config.steps} steps", err=True)
    display = Display(config.steps, done)
    boards = [TensorBoard(directory.path / "tensorboard", len(config.agents))] if TensorBoard.available() else []
    try:
        training.run([display, *boards])
    except KeyboardInterrupt:
        display.close()
        click.echo(f"stopped; go on with `lowgear train --resume {directory.path}`", err=True)
        raise
    finally:
        display.close()
        for board in boards:
            board.close()
        with contextlib.suppress(Exception):
            training.close()
    if training.last_evaluation:
        tables.print_evaluation(training.last_evaluation)
    click.echo(str(directory.path))
