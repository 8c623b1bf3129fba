"""Writes what a run scored into results/: its last evaluation, how it was made, and its curves while training.

A curve is [steps, return, share of large] for each evaluation while training, by the number of the agent. Where the
task knows success there is also [steps, success] of the episodes it trained on, with all the noise they explore with.

    lowgear train cartpole-swingup --steps 100000 --seeds 0-2 --out DIR
    lowgear evaluate DIR --frontier 5 --episodes 50
    python benchmarks/keep.py DIR results/modern-cartpole-swingup.json --command "lowgear train ...; ..."
"""

import json
from pathlib import Path

import click

from lowgear.config.run_directory import RunDirectory


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--command", required=True, help="What made the run and its evaluation, to be written down.")
@click.option("--commit", help="Of the code, where the run's own record has none.")
@click.option("--device", help="Of the machine, in words.")
def main(directory, out, command, commit, device):
    run = RunDirectory(directory)
    provenance = json.loads(run.config.read_text())["provenance"]
    report = json.loads(run.evaluation.read_text())
    curves, successes = {}, {}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        if line["kind"] == "evaluation":
            points = curves.setdefault(line["agent"], [])
            points.append([line["steps"], round(line["return_mean"], 1), round(line["large_share"], 3)])
        elif line.get("success") is not None:
            successes.setdefault(line["agent"], []).append((line["steps"], line["success"], line["episodes"]))
    head = {
        "command": command,
        "commit": commit or provenance["commit"],
        "device": device or provenance["device"],
        "versions": provenance["versions"],
    } | {key: value for key, value in report.items() if key != "agents"}
    lines = ",\n".join("  " + json.dumps(agent) for agent in report["agents"])
    if successes:
        head["success_while_training"] = {agent: binned(points) for agent, points in successes.items()}
    shown = ",\n".join(f'  "{agent}": {json.dumps(points)}' for agent, points in curves.items())
    text = json.dumps(head, indent=1).removesuffix("\n}")
    out.write_text(f'{text},\n "curves": {{\n{shown}\n }},\n "agents": [\n{lines}\n ]\n}}\n')
    json.loads(out.read_text())
    click.echo(f"{out}: {len(report['agents'])} scores of {len({a['agent'] for a in report['agents']})} agents")


def binned(points, parts=40):
    """[steps, success] in some forty equal parts of the run."""
    last = points[-1][0]
    found = []
    for part in range(parts):
        inside = [p for p in points if part * last < p[0] * parts <= (part + 1) * last]
        episodes = sum(count for _, _, count in inside)
        if episodes:
            found.append([inside[-1][0], round(sum(s * count for _, s, count in inside) / episodes, 3)])
    return found


if __name__ == "__main__":
    main()
