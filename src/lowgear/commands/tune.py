"""`lowgear tune`: the dial's setting that meets a demand."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.options import env_timeout_option, json_option, list_option, seed_option, trust_option
from lowgear.commands.output import progress_bar
from lowgear.commands.runs import open_runs, several_argument, show_each

if TYPE_CHECKING:
    from lowgear.config.run_directory import RunDirectory
    from lowgear.evaluation.tune import TuneResult
    from lowgear.policy.file import Policy


@click.command()
@several_argument
@click.option(
    "--keep-return", type=float, metavar="SHARE", help="Keep this share of the best return, or success rate: 0.95."
)
@click.option(
    "--max-flops", type=float, metavar="SHARE", help="Spend surely at most this share of the large gear's: 0.2."
)
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
@seed_option("--seed", 1, "Of the episodes' starts; `lowgear evaluate` uses 0.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@env_timeout_option
@trust_option
@json_option
def tune(
    directories: tuple[Path, ...],
    agents: tuple[int, ...] | None,
    best: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Set the dial of the agents in each DIR, a run directory or a policy file, to what meets a demand.

    Finds the cheapest setting that keeps a share of the return, or the best one within a share of the large gear's
    FLOPs or within a time per step, and WRITES it into each policy file as its default: `evaluate`, `export` and
    `lowgear.load` go by it. What was written, and what stood there before, is shown; --dry-run writes nothing. Says so
    where no setting meets the demand, and leaves that policy as it is (exit code 1 where none was set).

    A setting is "close" where it meets the demand on average, but its 95% interval reaches to the other side: more
    --episodes may move it. "nearest" stands where none meets the demand, beside the one that misses it least.

    \b
      lowgear tune runs/NAME --keep-return 0.95 --dry-run
      lowgear tune runs/NAME --keep-return 0.95 --reference runs/NAME
      lowgear tune runs/NAME --max-flops 0.1
      lowgear tune runs/NAME --max-latency-us 0.06
      lowgear tune walker.safetensors --keep-return 0.95
    """
    from lowgear.evaluation.asked import DEMANDS, check_demand
    from lowgear.report.terminal import print_text

    check_demand({name: options[name] for name in DEMANDS}, options["reference"], options["episodes"])
    runs = open_runs(directories, options["trust"])
    chosen = {path: _with_dials(run, agents, best) for path, run in runs.items()}
    reports = show_each(
        runs,
        lambda run: _tune(run, chosen[run.path], best, dry_run, options),
        as_json,
        lambda _, report: _print(report),
        lambda run, report: _write(run, chosen[run.path], best, report, as_json),
    )
    if not as_json:
        for line in _meanings(reports):
            print_text(line)
    if not any(row["meets"] for report in reports for row in report["agents"]):
        click.get_current_context().exit(1)


def _tune(
    run: "RunDirectory", policies: "dict[int, Policy]", best: bool, dry_run: bool, options: dict[str, Any]
) -> dict[str, Any]:
    """Search."""
    from lowgear.evaluation.asked import DEMANDS
    from lowgear.evaluation.summary import tuning_report

    found = _search(run, list(policies.values()), options)
    reference = None if options["reference"] is None else str(options["reference"])
    demand = {name: options[name] for name in DEMANDS} | {"reference": reference, "dry_run": dry_run}
    report = tuning_report(policies, found, demand)
    for row in report["agents"]:
        row["policy"] = str(run.policy(row["agent"], best))
    return report


def _write(
    run: "RunDirectory", policies: "dict[int, Policy]", best: bool, report: dict[str, Any], as_json: bool
) -> None:
    """Write what was found, unless it is a dry run: into the policies, and into tuning.json. It was shown already."""
    from lowgear.policy.files import write_whole

    for row in report["agents"]:
        if not row["meets"]:
            continue
        if not report["dry_run"]:
            policies[row["agent"]].at(row["cost_coefficient"]).save(run.policy(row["agent"], best))
        if not as_json:
            before, after = (f"λ {row[name]:.3g}" for name in ("cost_coefficient_before", "cost_coefficient"))
            verb = "would be written" if report["dry_run"] else "written"
            click.echo(f"agent {row['agent']}: {after} {verb} to {row['policy']}, where {before} stood")
    if not report["dry_run"]:
        write_whole(run.beside("tuning.json"), json.dumps(report, indent=2).encode())


def _print(report: dict[str, Any]) -> None:
    """The table, and what it has no room for."""
    from lowgear.commands import tables

    tables.print_tuning(report["agents"])
    for row in report["agents"]:
        if not row["meets"]:
            click.echo(_miss(row, report), err=True)
        elif row["latency_us"] is not None:
            click.echo(f"agent {row['agent']}: {row['latency_us']:.3g} µs per step")


def _meanings(reports: list[dict[str, Any]]) -> list[str]:
    """The tables' words, those that are in them."""
    report, rows = reports[0], [row for report in reports for row in report["agents"]]
    share = report["keep_return"]
    if share is not None:
        whose = "the reference's score" if report["reference"] else "its best score along the dial"
        demand = f"the cheapest setting of each agent that keeps {share:.1%} of {whose}"
    elif report["max_flops"] is not None:
        demand = f"the best setting of each agent within {report['max_flops']:.1%} of the large gear's FLOPs"
    else:
        demand = f"the best setting of each agent within {report['max_latency_us']:.3g} µs per step"
    meanings = [f"λ: {demand}; score: mean return, or success rate, and its 95% interval"]
    if any(row["best_score"] > 0 for row in rows):
        meanings.append(
            f"of best: score against {'the reference' if report['reference'] else 'the best along the dial'}"
        )
    meanings.append("saved: FLOPs against the large gear alone; played: episodes of the whole search")
    if any(row["meets"] and not row["certain"] for row in rows):
        meanings.append("close: meets the demand, but its 95% interval does not clear it; more --episodes may move it")
    if not all(row["meets"] for row in rows):
        meanings.append("nearest: no setting meets the demand; this one misses it least, and is not written")
    return meanings


def _miss(row: dict[str, Any], demand: dict[str, Any]) -> str:
    from lowgear.evaluation.numbers import score, score_pair

    agent, nearest = f"agent {row['agent']}", f"the nearest, λ {row['cost_coefficient']:.3g},"
    close = "" if row["certain"] else ", give or take: more --episodes may show that it does"
    if demand["max_latency_us"] is not None:
        return (
            f"{agent}: no setting surely takes {demand['max_latency_us']:.3g} µs per step or less; "
            f"{nearest} takes {row['latency_us']:.3g} µs{close}"
        )
    if demand["max_flops"] is not None:
        return (
            f"{agent}: no setting surely spends {demand['max_flops']:.1%} of the large gear's FLOPs or less; "
            f"{nearest} spends {1 - row['flops_reduction']:.1%}{close}"
        )
    return (
        f"{agent}: no setting scores {score(row['demanded'])}, {demand['keep_return']:.1%} of "
        f"{score(row['best_score'])}; {nearest} scores {score_pair(row['score_mean'], row['score_ci95'])}"
    )


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

    from lowgear.bench.deploy import latency_of
    from lowgear.envs import make_env
    from lowgear.evaluation.tune import Demand, search

    config = run.read_config()
    make = partial(make_env, config)
    columns = SpinnerColumn(), TextColumn("{task.completed} episodes"), TimeElapsedColumn()
    with progress_bar("", None, *columns) as update:
        reference = None if options["reference"] is None else _reference(options["reference"], config.task, options)
        latency = None
        if options["max_latency_us"] is not None:  # the same for all agents of a run, whose shapes are
            latency = latency_of(policies[0], make, "--max-latency-us").us_each
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
