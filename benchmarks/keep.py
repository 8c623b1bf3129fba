"""Writes what a run scored into results/: its last evaluation, how it was made, and its curves while training.

A curve is [steps, return, share of large] for each evaluation while training, by the number of the agent.

    lowgear train cartpole-swingup --steps 100000 --seeds 0-2 --out DIR
    lowgear evaluate DIR --frontier 5 --episodes 50
    python benchmarks/keep.py DIR results/modern-cartpole-swingup.json --command "lowgear train ...; ..."
"""

import json
from pathlib import Path

import click

from lowgear.checkpoint import RunDirectory


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
    curves = {}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        if line["kind"] == "evaluation":
            points = curves.setdefault(line["agent"], [])
            points.append([line["steps"], round(line["return_mean"], 1), round(line["large_share"], 3)])
    head = {
        "command": command,
        "commit": commit or provenance["commit"],
        "device": device or provenance["device"],
        "versions": provenance["versions"],
    } | {key: value for key, value in report.items() if key != "agents"}
    lines = ",\n".join("  " + json.dumps(agent) for agent in report["agents"])
    shown = ",\n".join(f'  "{agent}": {json.dumps(points)}' for agent, points in curves.items())
    text = json.dumps(head, indent=1).removesuffix("\n}")
    out.write_text(f'{text},\n "curves": {{\n{shown}\n }},\n "agents": [\n{lines}\n ]\n}}\n')
    json.loads(out.read_text())
    click.echo(f"{out}: {len(report['agents'])} scores of {len({a['agent'] for a in report['agents']})} agents")


if __name__ == "__main__":
    main()
