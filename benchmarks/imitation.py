"""Students of a large-only teacher: behaviour cloning, DAgger and GAIL on the same expert data, over seeds.

    lowgear train cartpole-swingup --steps 60000 --seeds 0-1 --variants large-only --out runs/teacher
    python benchmarks/imitation.py runs/teacher --data 2,5,25,200 --methods bc,dagger [--settings modern] [--json FILE]

The teacher is the run's best large-only agent. `--data` counts whole episodes; 0 is the paper's 25 × 50 pairs. Students
of a method are one population; each plays the same starts.
"""

import json
import statistics
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from lowgear.baselines import clone, dagger, gail
from lowgear.baselines.record import Amount, record
from lowgear.commands import lists
from lowgear.config.run_directory import RunDirectory
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import play_policies
from lowgear.policy.file import load as load_policy
from lowgear.training.provenance import provenance

CLONE = {"modern": clone.MODERN, "paper": clone.PAPER}
GAIL = {"modern": gail.MODERN, "paper": gail.GailSettings()}


def best_teacher(run, config, make, episodes):
    """The large-only agent that scores most, and its score."""
    policies = [load_policy(run.policy(number)) for number, a in enumerate(config.agents) if a.variant == "large-only"]
    if not policies:
        raise click.ClickException(f"{run.path} has no large-only agent: train one with --variants large-only")
    scores = play_policies(policies, make, episodes, "greedy", 1).returns.mean(axis=1)
    return policies[scores.argmax()], float(scores.max())


def imitate(method, data, teacher, make, options):
    """Students of a method, one for each seed."""
    units, seeds, settings = options["units"], options["seeds"], options["settings"]
    if method == "bc":
        return clone.fit([data] * len(seeds), units, seeds, CLONE[settings])
    if method == "dagger":
        labelling = dagger.at_equal_data(data, CLONE[settings])
        return dagger.fit([teacher] * len(seeds), make, units, seeds, labelling)[0]
    return gail.fit([data] * len(seeds), make, units, seeds, replace(GAIL[settings], steps=options["gail_steps"]))


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--methods", default="bc,dagger,gail")
@click.option("--data", "counts", default="0,25,200", help="Whole episodes; 0: 25 trajectories of 50 pairs.")
@click.option("--settings", default="modern", type=click.Choice(["modern", "paper"]))
@click.option("--units", default=8)
@click.option("--seeds", default="0-4")
@click.option("--gail-steps", default=300_000)
@click.option("--episodes", default=20)
@click.option("--json", "json_path", default=None)
def main(directory, methods, counts, json_path, **options):
    run, episodes = RunDirectory(directory), options["episodes"]
    config = run.read_config()
    make = partial(make_env, config)
    options["seeds"] = lists.integers("--seeds", options["seeds"])
    teacher, top = best_teacher(run, config, make, episodes)
    rows = []
    table = Table("data", "pairs", "method", "return", "of the teacher", "each seed", "seconds")
    for count in lists.integers("--data", counts):
        (data,) = record([teacher], make, Amount(count, None) if count else Amount())
        for method in lists.words(methods):
            began = time.perf_counter()
            students = imitate(method, data, teacher, make, options)
            seconds = time.perf_counter() - began
            returns = play_policies(students.policies, make, episodes, "greedy", 1).returns.mean(axis=1).tolist()
            mean, spread = statistics.mean(returns), statistics.stdev(returns) if len(returns) > 1 else 0.0
            name = f"{count} episodes" if count else "25 × 50"
            rows.append({"data": name, "pairs": len(data), "method": method, "returns": returns, "seconds": seconds})
            print(rows[-1], flush=True)
            shown = " ".join(f"{value:.0f}" for value in returns)
            share = f"{mean / top:.0%}"
            table.add_row(name, str(len(data)), method, f"{mean:.1f} ± {spread:.1f}", share, shown, f"{seconds:.0f}")
    units, settings = options["units"], options["settings"]
    title = f"{config.task}, teacher {top:.1f}, {units} units, {settings} settings, {episodes} episodes"
    Console(width=120).print(title, table)
    if json_path:
        about = {"task": config.task, "teacher": top} | options | {"provenance": provenance()}
        Path(json_path).write_text(json.dumps(about | {"found": rows}, indent=1))


if __name__ == "__main__":
    main()
