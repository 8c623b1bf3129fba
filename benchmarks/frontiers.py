"""Holds dial agents against agents that were each trained for one coefficient, from files that `keep.py` wrote.

    python benchmarks/frontiers.py results/modern-cartpole-swingup.json results/modern-finger-spin.json

Files of the same task are pooled: their agents must differ, by seed for example. For every single coefficient: the mean
return of its agents, and of the dial's agents at as many FLOPs (between the settings that were played, straight in the
logarithm; at the nearer end beyond them), with the difference and its 95% interval, from 10,000 draws of seeds with
replacement. Then whether a higher coefficient ever costs a dial agent more FLOPs than a lower one, beyond the intervals
of both settings.
"""

import json
from itertools import combinations
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(files):
    table = Table("task", "λ", "FLOPs saved", "trained for it", "the dial there", "difference", "95% interval")
    rises = []
    for task, agents in pooled(files).items():
        dials = grouped(agents, "asymmetric", "seed")
        fixed = grouped(agents, "fixed-cost", "price")
        if len({tuple(line["price"] for line in lines) for lines in dials.values()}) > 1:
            raise click.ClickException(f"{task}: the dials of its agents were not played at the same settings")
        for coefficient, lines in fixed.items():
            table.add_row(task, f"{coefficient:g}", *compared(list(dials.values()), lines))
        rises.append(f"{task}: {risen(dials)}")
    Console(width=110).print(table, *rises, sep="\n")


def pooled(files):
    """The lines of all files by task, each with the `price` it is known by; one that is there twice is an error."""
    tasks, places = {}, {}
    for file in files:
        found = json.loads(file.read_text())
        for line in found["agents"]:
            who = (found["task"], line["variant"], line["seed"], line["cost_coefficient"])
            if who in places:
                task, variant, seed, coefficient = who
                twice = f"{task}, {variant}, seed {seed}, coefficient {coefficient:g}"
                raise click.ClickException(f"{places[who]} and {file} both have {twice}: leave one of them out")
            places[who] = file
            relative = line.get("relative_coefficient")
            price = line["cost_coefficient"] if relative is None else relative
            tasks.setdefault(found["task"], []).append(line | {"price": price})
    return tasks


def grouped(agents, variant, key):
    """The lines of a variant by one of their values, each group along the dial."""
    groups = {}
    for line in sorted(agents, key=lambda line: line["cost_coefficient"]):
        if line["variant"] == variant:
            groups.setdefault(line[key], []).append(line)
    return groups


def compared(dials, lines):
    """What one coefficient's agents and the dial's give, as text."""
    rng = np.random.default_rng(0)

    def difference(some_dials, some_lines):
        flops = np.log(np.mean([line["flops_per_step"] for line in some_lines]))
        settings = np.array([[(line["flops_per_step"], line["return_mean"]) for line in dial] for dial in some_dials])
        curve = settings.mean(axis=0)
        curve = curve[np.argsort(curve[:, 0])]
        return (
            float(np.interp(flops, np.log(curve[:, 0]), curve[:, 1])),
            float(np.mean([line["return_mean"] for line in some_lines])),
        )

    there, own = difference(dials, lines)
    draws = []
    for _ in range(10_000):
        some_dials = [dials[i] for i in rng.integers(0, len(dials), len(dials))]
        some_lines = [lines[i] for i in rng.integers(0, len(lines), len(lines))]
        dial, single = difference(some_dials, some_lines)
        draws.append(dial - single)
    low, high = np.percentile(draws, [2.5, 97.5])
    saved = np.mean([line["flops_reduction"] for line in lines])
    return f"{saved:.1%}", f"{own:.0f}", f"{there:.0f}", f"{there - own:+.0f}", f"{low:+.0f} to {high:+.0f}"


def risen(dials):
    """In words: how often a higher setting of an agent's dial costs more than a lower one."""
    pairs = [(seed, *pair) for seed, lines in dials.items() for pair in combinations(lines, 2)]
    beyond = {}
    for seed, low, high in pairs:
        rise = low["flops_reduction"] - high["flops_reduction"]
        if rise > low["flops_reduction_ci95"] + high["flops_reduction_ci95"]:
            beyond.setdefault(seed, []).append(rise)
    count = sum(map(len, beyond.values()))
    worst = ", ".join(f"seed {seed} by up to {max(rises):.2%}" for seed, rises in beyond.items())
    return f"{count} of {len(pairs)} pairs of settings cost more at the higher, beyond their intervals" + (
        f" ({worst} of the large gear's FLOPs)" if beyond else ""
    )


if __name__ == "__main__":
    main()
