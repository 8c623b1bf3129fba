"""`lowgear tune`: the dial's setting that meets a demand."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lowgear.bench.deploy import Latency
    from lowgear.config.run_directory import RunDirectory
    from lowgear.envs import BatchEnv
    from lowgear.evaluation.tune import Found
    from lowgear.policy.file import Policy


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
@click.option("--agents", metavar="LIST", help="Numbers of the agents to tune: 0-4.  [default: all with a dial]")
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there.")
def tune(directory: Path, agents: str | None, best: bool, as_json: bool, **options: Any) -> None:
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
    import json
    from dataclasses import asdict

    from lowgear.commands import tables
    from lowgear.config.run_directory import RunDirectory
    from lowgear.policy.files import write_whole

    _check(options)
    run = RunDirectory(directory)
    policies = _with_dials(run, agents, best)
    found = _search(run, list(policies.values()), options)
    lines = [
        {"agent": agent, "variant": policy.header.variant, "seed": policy.header.seed} | asdict(one)
        for (agent, policy), one in zip(policies.items(), found, strict=True)
    ]
    report = {
        "task": run.read_config().task,
        "keep_return": options["keep_return"],
        "max_flops": options["max_flops"],
        "max_latency_us": options["max_latency_us"],
        "reference": None if options["reference"] is None else str(options["reference"]),
        "agents": lines,
    }
    for (agent, policy), one in zip(policies.items(), found, strict=True):
        if one.meets:
            policy.at(one.cost_coefficient).save(run.policy(agent, best))
    write_whole(run.path / "tuning.json", json.dumps(report, indent=2).encode())
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        tables.print_tuning(lines)
        _tell(lines, options)
    if not any(one.meets for one in found):
        click.get_current_context().exit(1)


def _tell(lines: list[dict[str, Any]], options: dict[str, Any]) -> None:
    """What the table has no room for."""
    for line in lines:
        if not line["meets"]:
            click.echo(_miss(line, options), err=True)
        elif line["latency_us"] is not None:
            click.echo(f"agent {line['agent']}: {line['latency_us']:.3g} µs per step")


def _check(options: dict[str, Any]) -> None:
    keep, flops, latency_us = options["keep_return"], options["max_flops"], options["max_latency_us"]
    if [keep, flops, latency_us].count(None) != 2:
        raise LowgearError(
            "say what the setting must do: --keep-return 0.95 or --max-flops 0.2 or --max-latency-us 0.5, one of them"
        )
    if keep is not None and not 0 < keep <= 1:
        raise LowgearError(f"--keep-return {keep:g}: write a share above 0 and at most 1, for example 0.95")
    if flops is not None and not 0 < flops < float("inf"):
        raise LowgearError(f"--max-flops {flops:g}: write a share of the large gear's FLOPs, for example 0.2")
    if latency_us is not None and not 0 < latency_us < float("inf"):
        raise LowgearError(f"--max-latency-us {latency_us:g}: write microseconds above 0, for example 0.5")
    if keep is None and options["reference"] is not None:
        raise LowgearError("--reference goes with --keep-return: what is spent is measured as it is")
    if options["episodes"] < 2:
        raise LowgearError(f"--episodes {options['episodes']}: an interval needs 2 or more")


def _with_dials(run: "RunDirectory", agents: str | None, best: bool) -> "dict[int, Policy]":
    """The policies to tune, by the number of their agent."""
    from lowgear.commands import lists
    from lowgear.commands.evaluate import load_policies

    policies = dict(enumerate(load_policies(run, best)))
    if agents is not None:
        chosen = lists.integers("--agents", agents)
        for agent in chosen:
            if agent not in policies:
                raise LowgearError(f"--agents {agents}: the run has no agent {agent}, only 0 to {len(policies) - 1}")
        policies = {agent: policies[agent] for agent in chosen}
    found = {agent: policy for agent, policy in policies.items() if policy.turns}
    if not found:
        raise LowgearError(
            f"{run.path} has no dial to set: its coefficients were settled when it was trained; the modern recipe's "
            "asymmetric agents have one"
        )
    return found


def _search(run: "RunDirectory", policies: "list[Policy]", options: dict[str, Any]) -> "list[Found]":
    from functools import partial

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from lowgear.envs import make_env
    from lowgear.evaluation.tune import Demand, search

    config = run.read_config()
    master = options["master"] or ("boltzmann" if config.boltzmann else "greedy")
    columns = SpinnerColumn(), TextColumn("{task.completed} episodes"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None)
        reference = None
        if options["reference"] is not None:
            reference = _reference(options["reference"], config.task, options)
        latency = None
        if options["max_latency_us"] is not None:
            latency = _latency(policies[0], partial(make_env, config)).us_each
        return search(
            policies,
            Demand(options["keep_return"], reference, options["max_flops"], options["max_latency_us"]),
            partial(make_env, config),
            master,
            seed=options["seed"],
            episodes_at_most=options["episodes"],
            latency=latency,
            progress=lambda count: progress.advance(bar, count),
        )


def _latency(policy: "Policy", make_env: "Callable[[int], BatchEnv]") -> "Latency":
    """What the gears and a pick take in C; the same for all agents of a run, whose shapes are."""
    from lowgear.bench.deploy import latency
    from lowgear.export import compiler
    from lowgear.export.episode import record

    compiler.need("--max-latency-us")
    return latency(policy, record(policy, make_env, 1, 0))


def _reference(directory: Path, task_name: str, options: dict[str, Any]) -> float:
    """Mean return of a run's large-only agents."""
    from functools import partial

    from lowgear.commands.evaluate import load_policies
    from lowgear.config.run_directory import RunDirectory
    from lowgear.envs import make_env
    from lowgear.evaluation.evaluate import play_policies
    from lowgear.evaluation.tune import scores

    run = RunDirectory(directory)
    config = run.read_config()
    if config.task != task_name:
        raise LowgearError(f"--reference {directory} was trained on {config.task}, not on {task_name}")
    large = [policy for policy in load_policies(run, False) if policy.header.variant == "large-only"]
    if not large:
        raise LowgearError(f"--reference {directory} has no large-only agent: train it with --variants large-only")
    played = play_policies(large, partial(make_env, config), options["episodes"], "greedy", options["seed"])
    return float(scores(played).mean())


def _miss(line: dict[str, Any], options: dict[str, Any]) -> str:
    nearest = f"the nearest, λ {line['cost_coefficient']:.3g},"
    if options["max_latency_us"] is not None:
        return (
            f"agent {line['agent']}: no setting takes {options['max_latency_us']:.3g} µs per step or less; "
            f"{nearest} takes {line['latency_us']:.3g} µs"
        )
    if options["max_flops"] is not None:
        return (
            f"agent {line['agent']}: no setting spends {options['max_flops']:.1%} of the large gear's FLOPs or less; "
            f"{nearest} spends {1 - line['flops_reduction']:.1%}"
        )
    return (
        f"agent {line['agent']}: no setting scores {line['demanded']:.1f}, {options['keep_return']:.1%} of "
        f"{line['best_score']:.1f}; {nearest} scores {line['score_mean']:.1f} ± {line['score_ci95']:.1f}"
    )
