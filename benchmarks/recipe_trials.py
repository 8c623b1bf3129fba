"""Trials of the recipe: keeps what run directories found, and makes tables of it.

    python benchmarks/recipe_trials.py keep results/recipe/confirmation.json --commit 59d9a1f RUN RUN ...
    python benchmarks/recipe_trials.py show results/recipe/*.json > results/recipe/tables.md

A run's evaluations while training, its frontier (RUN.frontier.json, of `lowgear evaluate --frontier`) and a longer
evaluation (RUN.evaluation.json) where they lie beside it. What follows the first dash of a run's name is its setting,
which runs of several tasks share. Scores in the overview are divided by the best public return at 200,000 steps, or the
best there is; interquartile means over tasks and seeds, with 95% intervals that draw each task's seeds anew.
"""

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import click

from lowgear.config.recipes import PAPER
from lowgear.config.run_directory import RunDirectory
from lowgear.evaluation.statistics import bootstrap, interquartile_mean

BEST = {
    "Ant-v3": 5300,
    "HalfCheetah-v3": 10800,
    "hopper-stand": 856,
    "finger-spin": 983,
    "cartpole-swingup": 876,
    "FetchPush-v1": 1,
    "FetchSlide-v1": 0.8,
    "Walker2d-v3": 5300,
    "walker-stand": 983,
    "reacher-easy": 967,
    "ball_in_cup-catch": 980,
    "fish-swim": 750,
    "Swimmer-v3": 359,
    "BipedalWalker-v3": 330,
    "MountainCarContinuous-v0": 94.7,
}
FIGURES = ("relative_coefficient", "return_mean", "return_std", "success_rate", "large_share", "flops_reduction")


@click.group()
def main(): ...


@main.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--commit", required=True, help="of the code that trained them")
@click.option("--note", default="")
def keep(out, runs, commit, note):
    """Write what RUNS found to OUT."""
    found = [part for run in runs for part in condensed(run)]
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(json.dumps(run) for run in found)
    out.write_text(f'{{"commit": {json.dumps(commit)}, "note": {json.dumps(note)}, "runs": [\n{rows}\n]}}\n')


def condensed(path):
    """A run directory in a few lines, the agents of each discount apart."""
    config = RunDirectory(path).read_config()
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    recipe, paper = asdict(config.recipe), asdict(PAPER)
    curves = defaultdict(list)
    for line in lines:
        if line["kind"] == "evaluation":
            score = line["return_mean"] if line["success_rate"] is None else line["success_rate"]
            curves[line["agent"]].append([line["steps"], rounded(score), rounded(line["flops_reduction"])])
    by_discount = defaultdict(list)
    for number, agent in enumerate(config.agents):
        by_discount[agent.discount].append(number)
    return [
        {
            "name": path.name + f"-{discount:g}" * (len(by_discount) > 1),
            "task": config.task,
            "gears": [gear.to_json() for gear in config.gears],
            "asked_steps": config.steps,
            "episodes": config.evaluate_episodes,
            "settings": {
                name: value for name, value in (recipe | {"discount": discount}).items() if value != paper[name]
            },
            "agents": [
                {"variant": config.agents[number].variant, "seed": config.agents[number].seed, "curve": curves[number]}
                for number in numbers
            ],
            "frontier": beside(path, "frontier", numbers),
            "evaluation": beside(path, "evaluation", numbers),
        }
        for discount, numbers in by_discount.items()
    ]


def beside(path, what, numbers):
    """What `lowgear evaluate --json` printed for agents of the run, if it did."""
    file = path.with_name(f"{path.name}.{what}.json")
    if not file.exists() or not file.stat().st_size:
        return None
    report = json.loads(file.read_text())
    about = ("variant", "seed", *FIGURES)
    rows = [{name: rounded(row[name]) for name in about} for row in report["agents"] if row["agent"] in numbers]
    return {"episodes": report["episodes"], "agents": rows}


def rounded(value):
    return float(f"{value:.5g}") if isinstance(value, float) else value


@main.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def show(files):
    """Markdown tables of FILES."""
    print("# Tables of the trials\n\nMade by `python benchmarks/recipe_trials.py show`.")
    for file in files:
        kept = json.loads(file.read_text())
        print(f"\n## {file.stem}, commit {kept['commit']}\n\n{kept['note']}\n")
        print(
            "Score of the last evaluation while training, each seed (FLOPs saved), and the mean of the whole curve.\n"
        )
        print("| run | task | steps | large-only | mean | curve | asymmetric | mean | curve |")
        print("| --- | --- | ---: | --- | ---: | ---: | --- | ---: | ---: |")
        for run in kept["runs"]:
            print(f"| {run['name']} | {run['task']} | {run['agents'][0]['curve'][-1][0]:,} | {curves(run)} |")
        overview(kept["runs"])
        frontiers(kept["runs"])
        evaluations(kept["runs"])


def curves(run):
    """Cells of a row."""
    cells = []
    for variant in ("large-only", "asymmetric"):
        own = [agent["curve"] for agent in run["agents"] if agent["variant"] == variant]
        if not own:
            cells += ["", "", ""]
            continue
        each = [f"{number(last(curve))}" + f" ({curve[-1][2]:.0%})" * (variant == "asymmetric") for curve in own]
        cells += [", ".join(each), number(fmean(map(last, own))), number(fmean(map(whole, own)))]
    return " | ".join(cells)


def overview(runs):
    """The interquartile means of each setting's runs, against the best public scores."""
    by_setting = defaultdict(list)
    for run in runs:
        if run["task"] in BEST:
            by_setting[run["name"].partition("-")[2]].append(run)
    if not by_setting:
        return
    print("\nOf the best public score, interquartile means over tasks and seeds [95% interval].\n")
    print("| setting | tasks | large-only, last | curve | asymmetric, last | curve |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for setting, own in by_setting.items():
        tasks = len({run["task"] for run in own})
        cells = [spread(own, variant, part) for variant in ("large-only", "asymmetric") for part in (last, whole)]
        print(f"| {setting or 'as it is'} | {tasks} | {' | '.join(cells)} |")


def last(curve):
    return curve[-1][1]


def whole(curve):
    return fmean(point[1] for point in curve)


def spread(runs, variant, part):
    """The interquartile mean of part of every agent's curve, with its interval; every task with as many seeds."""
    table = [
        [part(agent["curve"]) / BEST[run["task"]] for agent in run["agents"] if agent["variant"] == variant]
        for run in runs
    ]
    table = [row for row in table if row]
    if not table:
        return ""
    seeds = min(map(len, table))
    scores = list(zip(*(row[:seeds] for row in table), strict=True))
    low, high = bootstrap(scores)
    return f"{interquartile_mean(scores):.2f} [{low:.2f}, {high:.2f}]"


def frontiers(runs):
    """Along the dial, means over seeds; a table for each set of settings."""
    by_settings = defaultdict(list)
    for run in runs:
        if run["frontier"]:
            settings = {round(row["relative_coefficient"], 3) for row in asymmetric(run["frontier"])}
            by_settings[tuple(sorted(settings))].append(run)
    for settings, known in by_settings.items():
        print("\nAlong the dial, means over seeds: score (share of the large gear; FLOPs saved).\n")
        print("| run | " + " | ".join(f"{value:g}" for value in settings) + " |")
        print("| --- |" + " --- |" * len(settings))
        along(known, settings)


def along(runs, settings):
    """Rows of a table of frontiers."""
    for run in runs:
        cells = []
        for value in settings:
            rows = [r for r in asymmetric(run["frontier"]) if round(r["relative_coefficient"], 3) == value]
            share, saved = (fmean(row[name] for row in rows) for name in ("large_share", "flops_reduction"))
            cells.append(f"{number(fmean(map(score_of, rows)))} ({share:.0%}; {saved:.0%})")
        print(f"| {run['name']} | {' | '.join(cells)} |")


def evaluations(runs):
    """Longer evaluations, each seed."""
    known = [run for run in runs if run["evaluation"]]
    if not known:
        return
    print(f"\nAfter training, {known[0]['evaluation']['episodes']} episodes of each agent, the dial where it stands.\n")
    print("| run | large-only | mean | asymmetric (FLOPs saved) | mean | saved | of large-only |")
    print("| --- | --- | ---: | --- | ---: | ---: | ---: |")
    for run in known:
        ours = asymmetric(run["evaluation"])
        large = [score_of(row) for row in run["evaluation"]["agents"] if row["variant"] == "large-only"]
        mean, saved = fmean(map(score_of, ours)), fmean(row["flops_reduction"] for row in ours)
        each = ", ".join(f"{number(score_of(row))} ({row['flops_reduction']:.0%})" for row in ours)
        alone = number(fmean(large)) if large else ""
        part = f"{mean / fmean(large):.0%}" if large else ""
        cells = [", ".join(map(number, large)), alone, each, number(mean), f"{saved:.1%}", part]
        print(f"| {run['name']} | {' | '.join(cells)} |")


def asymmetric(report):
    return [row for row in report["agents"] if row["variant"] == "asymmetric"]


def score_of(row):
    return row["return_mean"] if row["success_rate"] is None else row["success_rate"]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
