"""Whether two versions of the code learn alike: the evaluations while training of their runs, side by side.

    git checkout OLD && lowgear train walker-stand --steps 120000 --seeds 0-11 --evaluate-every 10048 --out before
    git checkout NEW && lowgear train walker-stand --steps 120000 --seeds 0-11 --evaluate-every 10048 --out after
    python benchmarks/curves.py before after [BEFORE AFTER ...] --commits OLD,NEW --json FILE

Prints return, or success where the task knows it, as mean ± standard error over agents at every evaluation that both
runs have, and its mean over these evaluations with the difference, give or take two of its standard errors.
"""

import json
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear.config.run_directory import RunDirectory


def read(directory):
    """The task, and {steps: [score of each agent]} of a run."""
    run = RunDirectory(directory)
    curve = {}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        if line["kind"] == "evaluation":
            score = line["return_mean"] if line.get("success_rate") is None else line["success_rate"]
            curve.setdefault(line["steps"], []).append(score)
    config = json.loads(run.config.read_text())
    return config["task"], config["recipe"]["name"], curve


def shown(scores, digits):
    return f"{np.mean(scores):.{digits}f} ± {np.std(scores, ddof=1) / len(scores) ** 0.5:.{digits}f}"


def compare(before, after, console):
    (task, recipe, old), (other, _, new) = read(before), read(after)
    if task != other:
        raise click.ClickException(f"{before} is of {task} and {after} of {other}: compare runs of one task")
    steps = [each for each in old if each in new]
    if not steps:
        raise click.ClickException(f"{before} and {after} were never evaluated at the same step")
    digits = 2 if max(map(max, old.values())) <= 1 else 0
    table = Table(f"{task}, {recipe}", "before", "after")
    for each in steps:
        table.add_row(f"{each:,}", shown(old[each], digits), shown(new[each], digits))
    means = [np.mean([curve[each] for each in steps], axis=0) for curve in (old, new)]
    margin = 2 * sum(np.var(mean, ddof=1) / len(mean) for mean in means) ** 0.5
    table.add_row("their mean", *(shown(mean, digits) for mean in means))
    difference = np.mean(means[1]) - np.mean(means[0])
    console.print(table, f"difference {difference:+.{digits}f} ± {margin:.{digits}f}\n")
    curves = [{each: [round(float(score), 3) for score in curve[each]] for each in steps} for curve in (old, new)]
    return {"task": task, "recipe": recipe, "before": curves[0], "after": curves[1]}


@click.command()
@click.argument("directories", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--commits", default=None, help="Of the code before and after: 1a2b3c4,5d6e7f8.")
@click.option("--device", default=None, help="That all of them were trained on, in words.")
@click.option("--json", "json_path", default=None)
def main(directories, commits, device, json_path):
    """Runs before and after a change, in pairs."""
    if not directories or len(directories) % 2:
        raise click.UsageError("write pairs of directories: a run before the change, and one after it")
    console = Console(width=100)
    pairs = zip(directories[::2], directories[1::2], strict=True)
    found = [compare(before, after, console) for before, after in pairs]
    if json_path:
        named = dict(zip(("before", "after"), (commits or "").split(","), strict=False))
        Path(json_path).write_text(json.dumps({"commits": named, "device": device, "runs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
