"""`lowgear evaluate`: what a run's controllers score and cost."""

from pathlib import Path
from typing import Any

import click

from lowgear.errors import LowgearError


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--episodes", default=200, show_default=True, help="Episodes of each agent.")
@click.option(
    "--master",
    type=click.Choice(["greedy", "boltzmann"]),
    help="How the master picks: its best value, or softmax of its values.  [default: the paper's for the task]",
)
@click.option("--best", is_flag=True, help="The policies that scored best while training, not the last ones.")
@click.option("--seed", default=0, show_default=True, help="Of the episodes' starts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there.")
def evaluate(directory: Path, episodes: int, master: str | None, best: bool, seed: int, as_json: bool) -> None:
    """Score the controllers of the run in DIRECTORY over many episodes at once.

    Prints return (mean, spread, 95% interval), share of the large gear, FLOPs per step and the reduction against the
    large gear alone, for every agent, and keeps it in evaluation.json.

    \b
      lowgear evaluate runs/walker-stand-modern-20261115-081500 --episodes 50
    """
    import json

    from rich.console import Console
    from rich.progress import Progress

    from lowgear import envs, tables
    from lowgear.checkpoint import RunDirectory
    from lowgear.evaluate import of_policies, play, slots_for, summarise
    from lowgear.runtime import load, write_whole
    from lowgear.tasks import find

    if episodes < 1:
        raise LowgearError(f"--episodes {episodes}: write 1 or more")
    run = RunDirectory(directory)
    config = run.read_config()
    task = find(config.task)
    paths = [run.policy(agent, best) for agent in range(len(config.agents))]
    if not paths[0].exists():
        raise LowgearError(
            f"{directory} has no policies yet: train it further with `lowgear train --resume {directory}`"
        )
    policies = [load(path) for path in paths]
    how = master or ("boltzmann" if task.boltzmann else "greedy")
    players, sizes = of_policies(policies, how)
    env = envs.make(task, len(policies) * slots_for(len(policies), episodes))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("episodes", total=episodes * len(policies))
        played = play(players, env, episodes, seed, lambda count: progress.advance(bar, count))
    env.close()
    report: dict[str, Any] = {
        "task": config.task,
        "recipe": config.recipe.name,
        "steps": policies[0].header.steps,
        "episodes": episodes,
        "master": how,
        "agents": [
            {
                "agent": agent,
                "variant": policy.header.variant,
                "seed": policy.header.seed,
                "cost_coefficient": policy.header.cost_coefficient,
            }
            | summarise(played, agent, sizes)
            for agent, policy in enumerate(policies)
        ],
    }
    text = json.dumps(report, indent=2)
    write_whole(run.evaluation, text.encode())
    if as_json:
        click.echo(text)
    else:
        tables.print_evaluation(report["agents"])
