"""Tables of what ablate.py found on the six tasks that settings are chosen on.

    python benchmarks/ablation_summary.py results/ablations > results/ablations/tables.md

A score is the mean of an agent's evaluations along training, divided by the best-known return at 200,000 steps
of public methods (FetchPush by 1). Main effects are differences between the halves of a 16-run factorial design;
their intervals come from 4,000 bootstraps that draw agents anew within each task and half.
"""

import json
import sys
from pathlib import Path

import numpy as np

BEST = {
    "Ant": 5300,
    "HalfCheetah": 10800,
    "hopper-stand": 856,
    "finger-spin": 983,
    "cartpole-swingup": 876,
    "FetchPush": 1,
}
FACTORS = {
    "call1": [
        "rewards scaled / raw",
        "critics 3e-4 / 1e-3",
        "actor and α 3e-4 / 1e-3",
        "entropy target −A/2 / −A",
        "first α .01 / 1",
        "twins' mean / minimum",
        "actor every 2nd / every update",
        "noise held, zeta(2) / fresh",
    ],
    "call2": [
        "values kept (PopArt) / not",
        "gain 10 / 1",
        "layer norm / none",
        "critics 3e-4 / 1e-3",
        "actor and α 3e-4 / 1e-3",
        "actor every / every 2nd update",
        "pessimism by rule / half",
        "τ .005 / .01 (FetchPush .02)",
    ],
}
DRAWS = 4000


def curve(agent):
    """(steps, return or success), each step once."""
    points = {p["steps"]: p["return"] if p["success"] is None else p["success"] for p in agent["curve"]}
    return sorted(points.items())


def load(folder, horizon=10**9):
    """{task: [(setting, seed, curve mean, last two points' mean)]}, scores."""
    found = {}
    for path in sorted(Path(folder).glob("*.json")):
        run = json.loads(path.read_text())
        best = next(value for task, value in BEST.items() if path.stem.startswith(task))
        rows = []
        for agent in run["agents"]:
            values = [v / best for steps, v in curve(agent) if steps <= horizon]
            rows.append((agent["setting"], agent["seed"], float(np.mean(values)), float(np.mean(values[-2:]))))
        found[path.stem] = rows
    return found


def iqm(values):
    """Mean of the middle half."""
    ordered = np.sort(np.asarray(values))
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def interval(groups, statistic, rng):
    """Of a statistic of all groups together, agents drawn anew within each."""
    draws = [statistic([group[rng.integers(0, len(group), len(group))] for group in groups]) for _ in range(DRAWS)]
    return np.percentile(draws, [2.5, 97.5])


def effects(call, found, rng):
    names = FACTORS[call]
    tasks = [task for task in BEST if task in found]
    print(f"\n## {call}: main effects on the curve mean (on the last two evaluations)\n")
    print("| first / second |", " | ".join(tasks), "| all tasks [95%] | IQM first, second |")
    print("| --- |" + " --- |" * (len(tasks) + 2))
    for place, name in enumerate(names):
        cells, plus, minus = [], [], []
        for task in tasks:
            runs = [row for row in found[task] if row[0].startswith("f") and set(row[0][1:]) <= {"+", "-"}]
            halves = [[row for row in runs if row[0][1 + place] == sign] for sign in "+-"]
            mean, last = ([float(np.mean([row[c] for row in half])) for half in halves] for c in (2, 3))
            cells.append(f"{mean[0] - mean[1]:+.2f} ({last[0] - last[1]:+.2f})")
            plus.append(np.array([row[2] for row in halves[0]]))
            minus.append(np.array([row[2] for row in halves[1]]))
        low, high = interval(plus + minus, difference, rng)
        both = f"{iqm(np.concatenate(plus)):.2f}, {iqm(np.concatenate(minus)):.2f}"
        print(
            f"| {name} |", " | ".join(cells), f"| {difference(plus + minus):+.3f} [{low:+.3f}, {high:+.3f}] | {both} |"
        )


def difference(groups):
    """Between the means of the first half of the groups and those of the second."""
    half = len(groups) // 2
    return np.mean([a.mean() - b.mean() for a, b in zip(groups[:half], groups[half:], strict=True)])


def each(title, found):
    print(f"\n## {title}: curve means, each seed (mean of the last two evaluations)\n")
    settings = list(dict.fromkeys(row[0] for rows in found.values() for row in rows if not row[0].startswith("f")))
    tasks = list(found)
    print("| setting |", " | ".join(tasks), "|")
    print("| --- |" + " --- |" * len(tasks))
    for setting in settings:
        cells = []
        for task in tasks:
            rows = [row for row in found[task] if row[0] == setting]
            cells.append(" ".join(f"{row[2]:.2f} ({row[3]:.2f})" for row in rows))
        print(f"| {setting} |", " | ".join(cells), "|")


def together(title, found, settings, tasks, rng):
    print(
        f"\n### {title}\n\n| setting | IQM of curve means [95%] | IQM of last two | runs |\n| --- | --- | --- | --- |"
    )
    for setting in settings:
        groups, last = (
            [np.array([row[c] for row in found[task] if row[0] == setting]) for task in tasks] for c in (2, 3)
        )
        low, high = interval(groups, lambda g: iqm(np.concatenate(g)), rng)
        joined = np.concatenate(groups)
        middle = f"{iqm(joined):.2f} [{low:.2f}, {high:.2f}]"
        print(f"| {setting} | {middle} | {iqm(np.concatenate(last)):.2f} | {len(joined)} |")


def main():
    rng = np.random.default_rng(0)
    root = Path(sys.argv[1])
    print("# Tables of the ablations\n\nMade by `python benchmarks/ablation_summary.py results`.")
    for call in ("call1", "call2"):
        found = load(root / call)
        effects(call, found, rng)
        each(f"{call}, settings beside the design", found)
    found = load(root / "call3")
    each("call3", found)
    large = ["base", "actor 1e-3", "gain 10", "values not kept", "loud start"]
    light = ["HalfCheetah", "hopper-stand", "finger-spin", "cartpole-swingup"]
    together("call3, large-only, the four tasks that all five settings played", found, large, light, rng)
    together("call3, large-only, with Ant", found, [s for s in large if s != "actor 1e-3"], ["Ant", *light], rng)
    print("\n### HalfCheetah by critic width, curve means up to 120,000 steps\n")
    found = load(root / "call3", horizon=120_192)
    for task in ("HalfCheetah-128", "HalfCheetah", "HalfCheetah-512"):
        rows = [row for row in found[task] if row[0] == "base"]
        print(f"- {task}:", ", ".join(f"{row[2]:.3f} ({row[3]:.2f})" for row in rows))


if __name__ == "__main__":
    main()
