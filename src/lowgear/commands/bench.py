"""`lowgear bench`: what things take on this machine."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.options import gears_option, json_option, list_option, trust_option
from lowgear.commands.output import show
from lowgear.commands.runs import expanded, several_argument, show_each

if TYPE_CHECKING:
    from lowgear.bench.train_cases import Case
    from lowgear.export.source import Source


@click.group()
def bench() -> None:
    """Measure what things take on this machine."""


@bench.command()
@several_argument
@click.option("--agent", type=int, metavar="K", help="Which agent of the run.  [default: the best by its evaluation]")
@click.option("--best", is_flag=True, help="The policy that scored best while training, not the last one.")
@click.option("--cost-coefficient", type=float, metavar="X", help="Setting of the dial.  [default: the policy's own]")
@click.option("--episodes", default=2, show_default=True, help="Stored episodes to replay.")
@trust_option
@json_option
def deploy(
    directories: tuple[Path, ...],
    agent: int | None,
    best: bool,
    cost_coefficient: float | None,
    episodes: int,
    trust: bool,
    as_json: bool,
) -> None:
    """Time the controller in each DIR, a run directory or a policy file, as it would be deployed.

    Compiles its C, and that of each gear alone, and replays whole episodes through them, through ONNX Runtime and, if
    installed, PyTorch, all in turn. Counts instructions where Valgrind is installed, reads energy where the processor
    shows it, estimates microcontrollers, and says how much of the FLOPs saved is time saved.

    \b
      lowgear bench deploy runs/NAME --agent 2
      lowgear bench deploy runs/NAME --cost-coefficient 0.03 --json
    """
    from lowgear.bench.table import print_deploy
    from lowgear.export import compiler

    if episodes < 1:
        raise LowgearError(f"--episodes {episodes}: write 1 or more")
    compiler.need("lowgear bench deploy")
    show_each(
        {path: _source(path, agent, best, cost_coefficient, trust) for path in expanded(directories)},
        lambda source: _deploy(source, episodes),
        as_json,
        lambda _, report: print_deploy(report),
    )


def _source(path: Path, agent: int | None, best: bool, cost_coefficient: float | None, trust: bool) -> "Source":
    """The controller of a run or a policy file; one that has gears and never shifts is an error."""
    from lowgear.export.source import read

    source = read(path, agent, best, cost_coefficient, trust)
    header = source.policy.header
    if source.chosen:
        click.echo(f"note: {source.chosen}", err=True)
    if header.forced_gear is not None and len(header.gears) > 1:
        raise LowgearError(
            f"{source.path} is {header.variant}: it never shifts, so there is nothing to compare; "
            "name an asymmetric agent with --agent K, whose gears are timed alone as well"
        )
    return source


def _deploy(source: "Source", episodes: int) -> dict[str, Any]:
    from rich.console import Console

    from lowgear.bench.deploy import measure

    with Console(stderr=True).status("recording episodes") as status:
        stored = source.episodes(episodes)
        report: dict[str, Any] = {"policy": source.path.name, "from_environment": source.make_env is not None}
        report |= measure(source.policy, stored, lambda what: status.update(what))
    if source.make_env is None:
        click.echo(f"note: on random observations, not on episodes: {source.no_env}", err=True)
    return report


@bench.command()
@click.argument("task", required=False)
@click.option("--recipe", help="Settings of the learners: modern or paper.  [default: modern]")
@list_option("--agents", lists.integers, "One case for each number of agents: 1,8,32.  [default: 1]")
@gears_option
@click.option("--environments", type=int, help="Of each agent.  [default: 1; with a GPU 4 of EnvPool's]")
@click.option("--seconds", default=20.0, show_default=True, help="Of training to time in each case, once it is warm.")
@json_option
def train(task: str | None, seconds: float, as_json: bool, **options: Any) -> None:
    """Time training, with every learner updated once for each environment step.

    Without TASK: one and four agents on walker-stand with either recipe, and one with gears 64/256 on Walker2d-v3.
    Says where the main loop's time goes, how busy the learner is, and how near both come to the rate that this machine
    reaches on matrix products of the same shapes. Nothing is saved; each agent keeps its last 100,000 steps.

    \b
      lowgear bench train
      lowgear bench train walker-stand --agents 1,8,32,64
      lowgear bench train Walker2d-v3 --recipe paper --gears 64,256 --seconds 60 --json
    """
    import jax

    from lowgear.bench.table import print_train
    from lowgear.training.provenance import provenance

    measured = _measure(_cases(task, options), seconds)
    machine = {"cores": os.cpu_count(), "backend": jax.default_backend(), "provenance": provenance()}
    report = machine | {"cases": measured}
    show(report, as_json, print_train)


def _measure(cases: "Sequence[Case]", seconds: float) -> list[dict[str, Any]]:
    """What each case took, one after another, with a line on standard error that says how far it is."""
    from rich.console import Console

    from lowgear.bench.train import measure
    from lowgear.envs import make_env

    configs = [case.config() for case in cases]  # all first, so that a bad one is told at once
    measured = []
    with Console(stderr=True).status("", refresh_per_second=4) as status:
        for number, config in enumerate(configs, 1):
            agents = f"{len(config.agents)} agent{'s' * (len(config.agents) > 1)}"
            name = f"case {number} of {len(configs)}, {config.task} {config.recipe.name}, {agents}"

            def show(what: str, name: str = name) -> None:
                status.update(f"{name}: {what}")

            show("starting")
            measured.append(measure(config, make_env(config, config.environments), seconds, show))
    return measured


def _cases(task: str | None, options: dict[str, Any]) -> "Sequence[Case]":
    """Those of our own, or one for each number of agents on the task named."""
    from lowgear.bench.train_cases import CASES, Case

    if task is None:
        for name, value in options.items():
            if value is not None:
                shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
                raise LowgearError(f"--{name} {shown} is for a case of your own: name its TASK, as in walker-stand")
        return CASES
    recipe, gears, environments = options["recipe"] or "modern", options["gears"], options["environments"]
    return [Case(task, recipe, gears, count, environments) for count in options["agents"] or [1]]
