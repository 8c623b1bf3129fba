"""Success of agents in tasks with goals, counted at an episode's last step and as the paper's code does: at any step.

    python benchmarks/fetch_success.py results/evidence/FetchSlide-v1/policies/*.safetensors
    python benchmarks/fetch_success.py OUT/runs/FetchSlide-v1-*/policies/agent?.safetensors --json results/FILE.json

The authors' episodes end where the goal is first reached. Here they go on to the time limit, and each step pays −1
until the goal is reached and 0 while it is, so an episode that was ever there returns more than minus its length.
"""

import json
import sys
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from lowgear import LowgearError
from lowgear.config.tasks import find
from lowgear.envs import make
from lowgear.evaluation.evaluate import play_policies
from lowgear.evaluation.statistics import spread
from lowgear.policy import file
from lowgear.policy.files import write_whole
from lowgear.training.provenance import provenance


@click.command()
@click.argument("policies", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--episodes", default=200, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the episodes; `lowgear evaluate` has 0.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(policies, episodes, seed, json_path):
    found = [file.load(path) for path in policies]
    tasks = {policy.header.task for policy in found}
    if len(tasks) > 1:
        raise click.ClickException(f"policies of {len(tasks)} tasks: write those of one")
    masters = {policy.header.master for policy in found}
    if len(masters) > 1:
        raise click.ClickException("some of these policies pick by their best choice, others draw: name them apart")
    task = find(tasks.pop())
    with click.progressbar(length=len(found) * episodes, label=task.name, file=sys.stderr) as bar:
        played = play_policies(found, partial(make, task), episodes, masters.pop(), seed, progress=bar.update)
    if played.success is None or played.scored_by != "success":
        raise click.ClickException(f"{task.name} has no goals")
    ever = played.returns > -played.lengths
    rows = [
        {
            "variant": policy.header.variant,
            "seed": policy.header.seed,
            "at_last_step": played.success[number].mean(),
            "at_any_step": ever[number].mean(),
        }
        for number, policy in enumerate(found)
    ]
    table = Table("agents", "n", "at the last step", "at any step", title=f"{task.name}, {episodes} episodes")
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        cells = [spread([row[name] for row in mine]) for name in ("at_last_step", "at_any_step")]
        table.add_row(variant, str(len(mine)), *(f"{cell.mean:.3f} ± {cell.std:.3f}" for cell in cells))
    Console().print(table)
    if json_path:
        whole = {"task": task.name, "episodes": episodes, "seed": seed, "agents": rows, "provenance": provenance()}
        write_whole(json_path, (json.dumps(whole, indent=1) + "\n").encode())


if __name__ == "__main__":
    try:
        main()
    except LowgearError as error:
        raise SystemExit(f"fetch_success.py: error: {error}") from None
