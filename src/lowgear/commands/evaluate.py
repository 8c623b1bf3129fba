"""`lowgear evaluate`: what a run's controllers score and cost."""

import json
from collections.abc import Mapping
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
    from lowgear.policy.file import Policy


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--episodes", default=200, show_default=True, help="Episodes of each agent.")
@click.option(
    "--master",
    type=click.Choice(["greedy", "boltzmann"]),
    help="How the master picks: its best value, or softmax of its values.  [default: the paper's for the task]",
)
@list_option(
    "--cost-coefficients",
    lists.numbers,
    "Settings of the dial, 0.001,0.01,0.1: every dial agent plays at each.  [default: the policy's own]",
)
@click.option(
    "--frontier",
    type=int,
    metavar="N",
    help="N settings in even steps of the dial instead, both ends among them.",
)
@click.option("--best", is_flag=True, help="The policies that scored best while training, not the last ones.")
@click.option("--seed", default=0, show_default=True, help="Of the episodes' starts.")
@env_timeout_option
@trust_option
@json_option
def evaluate(directory: Path, best: bool, trust: bool, as_json: bool, **options: Any) -> None:
    """Score the controllers of the run in DIRECTORY over many episodes at once.

    Prints the cost coefficient λ and the same measured against the task's rewards (rel.), return (mean, 95% interval),
    share of the large gear, FLOPs per step and the reduction against the large gear alone, for every agent, and keeps
    it in evaluation.json; an agent whose environment fails is listed there as missing. With several settings of the
    dial it also draws return against FLOPs, with the run's small-only, large-only and fixed-cost agents beside it:
    frontier.svg and frontier.png.

    \b
      lowgear evaluate runs/walker-stand-modern-20261115-081500 --episodes 50
      lowgear evaluate runs/walker-stand-modern-20261115-081500 --frontier 7
    """
    from lowgear.commands import tables
    from lowgear.config.run_directory import RunDirectory
    from lowgear.policy.files import write_whole

    if options["episodes"] < 1:
        raise LowgearError(f"--episodes {options['episodes']}: write 1 or more")
    run = RunDirectory(directory, trust)
    policies = run.load_policies(best)
    numbered = _at_settings(policies, options["cost_coefficients"], options["frontier"])
    report = _evaluate(run, numbered, options)
    show(report, as_json, lambda report: tables.print_evaluation(report["agents"]))
    write_whole(run.evaluation, json.dumps(report, indent=2).encode())
    if len(numbered) > len(policies):
        _draw_frontier(report, directory)


def _at_settings(
    policies: "list[Policy]", coefficients: tuple[float, ...] | None, count: int | None
) -> "list[tuple[int, Policy]]":
    """Every dial agent at each setting asked for, the others as they are, with the agents' numbers."""
    from lowgear.evaluation.evaluate import at_settings

    if coefficients is not None and count is not None:
        raise LowgearError("--cost-coefficients and --frontier both choose the settings: give one of them")
    if count is not None and count < 2:
        raise LowgearError(f"--frontier {count}: a line needs 2 settings or more")
    settings = count or coefficients
    if settings is None:
        return list(enumerate(policies))
    if not any(policy.turns for policy in policies):
        raise LowgearError("no agent of this run has a dial: its coefficients were settled when it was trained")
    return at_settings(policies, settings)


def _evaluate(run: "RunDirectory", numbered: "list[tuple[int, Policy]]", options: dict[str, Any]) -> dict[str, Any]:
    from lowgear.envs import make_env
    from lowgear.evaluation.evaluate import play_policies, summarise

    config, episodes = run.read_config(), options["episodes"]
    master = options["master"] or config.master
    policies = [policy for _, policy in numbered]
    make = partial(make_env, config)
    with progress_bar("episodes", episodes * len(policies)) as update:
        played = play_policies(
            policies, make, episodes, master, options["seed"], lambda count: update(advance=count), may_miss=True
        )
    if len(played.missing) == len(policies):
        raise LowgearError(played.missing[0])
    return {
        "task": config.task,
        "recipe": config.recipe.name,
        "steps": policies[0].header.steps,
        "episodes": episodes,
        "master": master,
        "agents": [
            {
                "agent": agent,
                "variant": policy.header.variant,
                "seed": policy.header.seed,
                "cost_coefficient": policy.header.cost_coefficient,
                "relative_coefficient": policy.header.relative_coefficient,
            }
            | summarise(played, place, policy.header.cost)
            for place, (agent, policy) in enumerate(numbered)
            if place not in played.missing
        ],
    } | _missing(numbered, played.missing)


def _missing(numbered: "list[tuple[int, Policy]]", missing: Mapping[int, str]) -> dict[str, Any]:
    """Agents whose environments failed, at which setting and why; nothing where there are none."""
    rows = [
        {
            "agent": numbered[place][0],
            "cost_coefficient": numbered[place][1].header.cost_coefficient,
            "why": why,
        }
        for place, why in missing.items()
    ]
    for row in rows:
        click.echo(f"agent {row['agent']} at λ {row['cost_coefficient']:.4g} is missing: {row['why']}", err=True)
    return {"missing": rows} if rows else {}


def _draw_frontier(report: dict[str, Any], directory: Path) -> None:
    """Return against FLOPs as a picture, where the extra for pictures is installed."""
    try:
        from lowgear.report.frontier import draw
    except ImportError:
        click.echo("for a picture of the frontier: pip install 'lowgear[report]'", err=True)
        return
    for path in draw(report, directory):
        click.echo(str(path), err=True)
