"""`lowgear tune`: the dial's setting that meets a demand."""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.options import env_timeout_option, json_option, list_option, trust_option
from lowgear.commands.output import progress_bar, show

if TYPE_CHECKING:
    from lowgear.config.run_directory import RunDirectory
    from lowgear.evaluation.tune import TuneResult
    from lowgear.policy.file import Policy

DEMANDS = {  # what to write for each
    "keep_return": "a share above 0 and at most 1, for example 0.95",
    "max_flops": "a share of the large gear's FLOPs, for example 0.2",
    "max_latency_us": "microseconds above 0, for example 0.5",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--keep-return", type=float, metavar="SHARE", help="Keep this share of the best return, or success rate: 0.95."
)
@click.option("--max-flops", type=float, metavar="SHARE", help="Spend at most this share of the large gear's: 0.2.")
@click.option(
    "--max-latency-us",
    type=float,
    metavar="US",
    help="Mean microseconds per step of the C controller, at most, on this machine.",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep a share of this run's large-only agents' mean return, not of the agent's own best.",
)
@list_option("--agents", lists.integers, "Numbers of the agents to tune: 0-4.  [default: all with a dial]")
@click.option(
    "--episodes", default=64, show_default=True, help="At most so many at a setting; fewer where the answer is clear."
)
@click.option(
    "--master",
    type=click.Choice(["greedy", "boltzmann"]),
    help="How the master picks.  [default: as `lowgear evaluate`]",
)
@click.option("--best", is_flag=True, help="The policies that scored best while training, not the last ones.")
@click.option("--seed", default=1, show_default=True, help="Of the episodes' starts; `lowgear evaluate` uses 0.")
@env_timeout_option
@trust_option
@json_option
def tune(directory: Path, agents: tuple[int, ...] | None, best: bool, as_json: bool, **options: Any) -> None:
    """Set the dial of the agents in DIRECTORY to what meets a demand.

    Finds the cheapest setting that keeps a share of the return, or the best one within a share of the large gear's
    FLOPs or within a time per step, and writes it into each policy as its default: `evaluate`, `export` and
    `Agent.load` go by it. Says so where no setting meets the demand, and leaves that policy as it is.

    \b
      lowgear tune runs/NAME --keep-return 0.95
      lowgear tune runs/NAME --keep-return 0.95 --reference runs/NAME
      lowgear tune runs/NAME --max-flops 0.1
      lowgear tune runs/NAME --max-latency-us 0.06
    """
    from lowgear.config.run_directory import RunDirectory
    from lowgear.policy.files import write_whole

    _check(options)
    run = RunDirectory(directory, options["trust"])
    policies = _with_dials(run, agents, best)
    found = dict(zip(policies, _search(run, list(policies.values()), options), strict=True))
    report = {
        "task": run.read_config().task,
        **{name: options[name] for name in DEMANDS},
        "reference": None if options["reference"] is None else str(options["reference"]),
        "agents": [
            {
                "agent": agent,
                "variant": policy.header.variant,
                "seed": policy.header.seed,
                "relative_coefficient": policy.at(found[agent].cost_coefficient).header.relative_coefficient,
            }
            | asdict(found[agent])
            for agent, policy in policies.items()
        ],
    }
    met = {agent: setting for agent, setting in found.items() if setting.meets}
    for agent, setting in met.items():
        policies[agent].at(setting.cost_coefficient).save(run.policy(agent, best))
    write_whole(run.path / "tuning.json", json.dumps(report, indent=2).encode())
    show(report, as_json, _print)
    if not met:
        click.get_current_context().exit(1)


def _print(report: dict[str, Any]) -> None:
    """The table, and what it has no room for."""
    from lowgear.commands import tables

    tables.print_tuning(report["agents"])
    for row in report["agents"]:
        if not row["meets"]:
            click.echo(_miss(row, report), err=True)
        elif row["latency_us"] is not None:
            click.echo(f"agent {row['agent']}: {row['latency_us']:.3g} µs per step")


def _miss(row: dict[str, Any], demand: dict[str, Any]) -> str:
    agent, nearest = f"agent {row['agent']}", f"the nearest, λ {row['cost_coefficient']:.3g},"
    if demand["max_latency_us"] is not None:
        return (
            f"{agent}: no setting takes {demand['max_latency_us']:.3g} µs per step or less; "
            f"{nearest} takes {row['latency_us']:.3g} µs"
        )
    if demand["max_flops"] is not None:
        return (
            f"{agent}: no setting spends {demand['max_flops']:.1%} of the large gear's FLOPs or less; "
            f"{nearest} spends {1 - row['flops_reduction']:.1%}"
        )
    return (
        f"{agent}: no setting scores {row['demanded']:.1f}, {demand['keep_return']:.1%} of "
        f"{row['best_score']:.1f}; {nearest} scores {row['score_mean']:.1f} ± {row['score_ci95']:.1f}"
    )


def _check(options: dict[str, Any]) -> None:
    demands = {name: options[name] for name in DEMANDS if options[name] is not None}
    if len(demands) != 1:
        raise LowgearError(
            "say what the setting must do: --keep-return 0.95 or --max-flops 0.2 or --max-latency-us 0.5, one of them"
        )
    for name, value in demands.items():
        if not 0 < value < float("inf") or (name == "keep_return" and value > 1):
            raise LowgearError(f"--{name.replace('_', '-')} {value:g}: write {DEMANDS[name]}")
    if options["keep_return"] is None and options["reference"] is not None:
        raise LowgearError("--reference goes with --keep-return: what is spent is measured as it is")
    if options["episodes"] < 2:
        raise LowgearError(f"--episodes {options['episodes']}: an interval needs 2 or more")


def _with_dials(run: "RunDirectory", agents: tuple[int, ...] | None, best: bool) -> "dict[int, Policy]":
    """The policies to tune, by the number of their agent."""

    policies = run.load_policies(best)
    for agent in agents or ():
        if agent >= len(policies):
            shown = ",".join(map(str, agents or ()))
            raise LowgearError(f"--agents {shown}: the run has no agent {agent}, only 0 to {len(policies) - 1}")
    chosen = range(len(policies)) if agents is None else agents
    found = {agent: policies[agent] for agent in chosen if policies[agent].turns}
    if not found:
        raise LowgearError(
            f"{run.path} has no dial to set: its coefficients were settled when it was trained; the modern recipe's "
            "asymmetric agents have one"
        )
    return found


def _search(run: "RunDirectory", policies: "list[Policy]", options: dict[str, Any]) -> "list[TuneResult]":
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from lowgear.envs import make_env
    from lowgear.evaluation.tune import Demand, search

    config = run.read_config()
    make = partial(make_env, config)
    columns = SpinnerColumn(), TextColumn("{task.completed} episodes"), TimeElapsedColumn()
    with progress_bar("", None, *columns) as update:
        reference = None if options["reference"] is None else _reference(options["reference"], config.task, options)
        latency = None if options["max_latency_us"] is None else _latency(policies[0], make)
        return search(
            policies,
            Demand(options["keep_return"], reference, options["max_flops"], options["max_latency_us"]),
            make,
            options["master"] or config.master,
            seed=options["seed"],
            episodes_at_most=options["episodes"],
            latency=latency,
            progress=lambda count: update(advance=count),
        )


def _latency(policy: "Policy", make_env: Any) -> Any:
    """Times episodes by what gears and picks take in C; the same for all agents of a run, whose shapes are."""
    from lowgear.bench.deploy import latency
    from lowgear.export import compiler
    from lowgear.export.source import record_episodes

    compiler.need("--max-latency-us")
    return latency(policy, record_episodes(policy, make_env, 1)).us_each


def _reference(directory: Path, task: str, options: dict[str, Any]) -> float:
    """Mean return of a run's large-only agents."""
    from lowgear.config.run_directory import RunDirectory
    from lowgear.envs import make_env
    from lowgear.evaluation.evaluate import play_policies
    from lowgear.evaluation.tune import scores

    run = RunDirectory(directory, options["trust"])
    config = run.read_config()
    if config.task != task:
        raise LowgearError(f"--reference {directory} was trained on {config.task}, not on {task}")
    large = [policy for policy in run.load_policies() if policy.header.variant == "large-only"]
    if not large:
        raise LowgearError(f"--reference {directory} has no large-only agent: train it with --variants large-only")
    played = play_policies(large, partial(make_env, config), options["episodes"], "greedy", options["seed"])
    return float(scores(played).mean())
