"""The paper's own recipe: its studies on a few tasks, in fewer steps than its 2.5M, beside its figures.

python benchmarks/paper_recipe.py run cartpole-swingup                       # every study, one after the other
python benchmarks/paper_recipe.py run HalfCheetah-v3 --studies performance
python benchmarks/paper_recipe.py keep runs/paper                            # writes results/paper
"""

import json
from pathlib import Path

import click
from evidence import SEEDS, call

from lowgear.config.tasks import find, published_tasks
from lowgear.policy.files import write_whole

KEPT = Path(__file__).resolve().parent.parent / "results" / "paper"
STEPS = 100_000  # all that the paper gave MountainCar
STUDIES = ("performance", "cost-coefficient", "period", "cost-term", "shared-buffer", "two-large", "distillation")


@click.group()
def main(): ...


@main.command()
@click.argument("task")
@click.option("--studies", default=",".join(STUDIES), show_default=True)
@click.option("--steps", default=STEPS, show_default=True, help="Of each agent.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/paper"), show_default=True)
def run(task, studies, steps, out):
    """Train, evaluate and tabulate STUDIES of TASK; what exists in OUT is not repeated."""
    task = find(task).name
    for study in studies.split(","):
        call(study_command(study, task, steps, out / task))


def study_command(study, task, steps, out):
    return [
        "lowgear",
        "study",
        study,
        task,
        "--recipe",
        "paper",
        "--seeds",
        SEEDS,
        "--steps",
        str(steps),
        "--out",
        str(out),
    ]


@main.command()
@click.argument("store", type=click.Path(path_type=Path, exists=True))
def keep(store):
    """Copy the tables of STORE into results/paper, and write its page of all that is there."""
    for path in sorted(store.glob("*/*/study.json")):
        task, study = path.parts[-3:-1]
        found = json.loads(path.read_text())
        command = study_command(study, task, found["setup"]["steps"], "OUT")
        target = KEPT / task / f"{study}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, (json.dumps({"command": " ".join(command)} | found, indent=1) + "\n").encode())
        click.echo(target)
    write_whole(KEPT / "README.md", page().encode())


def page():
    """Every study of every task, ours beside the paper's."""
    lines = [
        "# The paper's recipe",
        "",
        "Made by `python benchmarks/paper_recipe.py keep`. Mean ± standard deviation over five seeds, 200 episodes",
        "each; the paper's figures are means of five seeds after 2.5M steps (100,000 on MountainCar). *large* is the",
        "share of steps in the large gear, *saved* the FLOPs saved against it. The files have every seed, command,",
        "commit and device. reacher-easy's performance was trained on another device than its other studies, so its",
        "large-only and asymmetric agents there are not those of the other tables.",
    ]
    for study in STUDIES:
        paths = [path for task in published_tasks() if (path := KEPT / task / f"{study}.json").exists()]
        if paths:
            studies = [json.loads(path.read_text()) for path in paths]
            lines += ["", f"## {studies[0]['title']}", "", *table(studies)]
    return "\n".join(lines) + "\n"


def table(studies):
    yield "| task | steps | agents | score | large | saved | paper: score | large | saved |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for study in studies:
        for line in study["lines"]:
            paper = line["paper"] or {}
            cells = [
                f"[{line['task']}]({line['task']})",
                f"{line['steps']:,}" if line["steps"] else "",
                line["label"],
                pair((line["score"]["mean"], line["score"]["std"])),
                percent(mean(line, "large_share")),
                percent(mean(line, "flops_reduction")),
                pair(paper.get("score")),
                percent((paper.get("large_share") or [None])[0]),
                percent(paper.get("flops_reduction")),
            ]
            yield f"| {' | '.join(cells)} |"


def mean(line, name):
    return sum(seed[name] for seed in line["seeds"]) / len(line["seeds"])


def pair(score):
    if score is None:
        return ""
    digits = 2 if abs(score[0]) < 2 else 1
    return f"{round(score[0], digits) + 0.0:,.{digits}f} ± {score[1]:,.{digits}f}"


def percent(share):
    return "" if share is None else f"{share:.1%}"


if __name__ == "__main__":
    main()
