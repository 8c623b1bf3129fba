"""The evidence: a row of results/evidence for each task, from nothing, and the tables and the picture made of them.

    python benchmarks/evidence.py reproduce walker-stand     # trains, evaluates, and shows it beside the committed row
    python benchmarks/evidence.py keep runs/evidence         # writes finished rows into results/evidence
    python benchmarks/evidence.py join runs/evidence RUN RUN # runs of some of a row's agents each become one there
    python benchmarks/evidence.py tune finger-spin           # its committed policies within a fifth of the FLOPs
    python benchmarks/evidence.py show                       # results/evidence/README.md, tables, docs/pictures

A row is `lowgear study performance TASK`: asymmetric (with a dial), small-only and large-only agents of five seeds in
one population, 200 episodes each; then `lowgear evaluate --frontier 7 --episodes 50`. A row that falls short with the
dial at its default also has `lowgear tune --max-flops 0.2`, and 200 episodes from other starts at what that found.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from lowgear import LowgearError
from lowgear.config import paper
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import file_name, find, published_tasks
from lowgear.evaluation.evaluate import scored_by_success
from lowgear.report.settings import aggregate, own_settings
from lowgear.studies import table
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.shards import merge
from lowgear.training.provenance import provenance

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "results" / "evidence"
PICTURES = ROOT / "docs" / "pictures"
LEAD = "HalfCheetah-v3"  # whose frontier the README begins with
SEEDS = "900-904"  # on which no setting is tried
EPISODES = 200
SETTINGS = 7
FRONTIER_EPISODES = 50  # at each of them, and of each seed
STEPS = {
    "MountainCarContinuous-v0": 100_000,
    "Ant-v3": 400_000,
    "Walker2d-v3": 500_000,
    "walker-stand": 500_000,
    "finger-spin": 500_000,
    "reacher-easy": 1_000_000,
    "HalfCheetah-v3": 600_000,
    "FetchPush-v1": 600_000,
    "FetchPickAndPlace-v1": 590_000,
    "FetchSlide-v1": 660_000,
}
STEPS_OTHERWISE = 300_000
ENVIRONMENTS = 4  # of each agent, as `lowgear train` has them where a GPU learns
MOST_BYTES = 3_000_000  # of a task's policies
MOST_FLOPS = 0.2  # of the large gear's, for tuned agents
TUNED_SEED = 2  # of the episodes they are scored on; evaluations have 0, the search 1
VARIANTS = ("asymmetric", "small-only", "large-only")
# Best public scores by the steps they took: FlashSAC, XQC, BRO, SimBaV2, TQC, TD3, TRPO, SAC.
BEST_KNOWN = {
    "HalfCheetah-v3": {200_000: 10_800, 500_000: 12_200, 1_000_000: 14_500},
    "Ant-v3": {200_000: 5_300, 500_000: 6_700, 1_000_000: 7_600},
    "Walker2d-v3": {200_000: 5_300, 500_000: 6_700, 1_000_000: 7_300},
    "walker-stand": {200_000: 983, 500_000: 985, 1_000_000: 988},
    "finger-spin": {200_000: 983, 500_000: 987, 1_000_000: 989},
    "cartpole-swingup": {200_000: 876, 500_000: 879, 1_000_000: 880},
    "ball_in_cup-catch": {200_000: 980, 500_000: 981, 1_000_000: 983},
    "hopper-stand": {200_000: 856, 500_000: 939, 1_000_000: 939},
    "fish-swim": {200_000: 750, 500_000: 792, 1_000_000: 839},
    "reacher-easy": {200_000: 967, 500_000: 968, 1_000_000: 983},
    "Swimmer-v3": {1_000_000: 366},
    "BipedalWalker-v3": {500_000: 330},
    "MountainCarContinuous-v0": {50_000: 94.7},
    "FetchPush-v1": {1_000_000: 1.0},
    "FetchPickAndPlace-v1": {1_000_000: 1.0},
    "FetchSlide-v1": {2_500_000: 0.8},
}


@click.group()
def main(): ...


def study_command(task, out, steps):
    """What trains and evaluates a row; a finished one is not repeated."""
    words = ["study", "performance", task, "--seeds", SEEDS, "--steps", steps, "--episodes", EPISODES]
    return ["lowgear", *map(str, words), "--set", f"environments={ENVIRONMENTS}", "--out", str(out)]


def frontier_command(run):
    """What draws a row's frontier."""
    return ["lowgear", "evaluate", run, "--frontier", str(SETTINGS), "--episodes", str(FRONTIER_EPISODES)]


@main.command()
@click.argument("task")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/evidence"), show_default=True)
@click.option("--steps", type=int, help="Of each agent.  [default: as in results/evidence]")
def reproduce(task, out, steps):
    """Train and evaluate the row of TASK from nothing; what exists in OUT is not repeated."""
    task = find(task).name
    call(study_command(task, out, steps or STEPS.get(task, STEPS_OTHERWISE)))
    for run in finished(out):
        if run.read_config().task == task:
            call(frontier_command(str(run.path)))
            print_beside(read_row(run))


def call(command):
    """Run a command of Lowgear as a person would."""
    click.echo("$ " + " ".join(command), err=True)
    subprocess.run([sys.executable, "-m", *command], check=True)


def finished(store):
    """The finished runs of a store that are rows; other studies keep theirs there too."""
    runs = [RunDirectory(path.parent) for path in sorted(Path(store).glob("runs/*/config.json"))]
    return [run for run in runs if is_row(config := run.read_config()) and run.finished(config)]


def is_row(config):
    return {agent.variant for agent in config.agents} == set(VARIANTS)


@main.command()
@click.argument("store", type=click.Path(path_type=Path, exists=True))
@click.option("--device", help="The machine, in words.")
@click.option("--commit", help="Of the code, where the run's own record has none.")
@click.option("--note", default="", help="What a reader should know of these runs.")
def keep(store, device, commit, note):
    """Write the finished rows of STORE into results/evidence."""
    for run in finished(store):
        row = read_row(run, device, commit, note)
        if not row["frontier"]:
            raise click.ClickException(f"{run.path} has no frontier: lowgear evaluate {run.path} --frontier {SETTINGS}")
        folder = KEPT / row["task"]
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "policies").mkdir(parents=True)
        row["policies"] = copy_policies(run, folder / "policies")
        (folder / "evidence.json").write_text(as_text(row))
        click.echo(f"{folder}: {len(row['policies'])} policies")


def copy_policies(run, folder):
    """Those of all agents, or of the asymmetric ones where all are too large; the agents whose policies are kept."""
    agents = list(enumerate(run.read_config().agents))
    for chosen in (agents, [(number, agent) for number, agent in agents if agent.variant == "asymmetric"]):
        paths = [run.policy(number) for number, _ in chosen]
        if sum(path.stat().st_size for path in paths) <= MOST_BYTES:
            for path in paths:
                shutil.copy(path, folder)
            return [number for number, _ in chosen]
    return []


def read_row(run, device=None, commit=None, note=""):
    """What a run found: how it was made, what each agent scores at its own setting and along the dial, and curves."""
    config, raw = run.read_config(), json.loads(run.config.read_text())
    made = raw["provenance"]
    scores = json.loads((run.path / "scores.json").read_text())
    task = find(config.task)
    seeds = {name: [] for name in VARIANTS}
    for number, agent in enumerate(config.agents):
        summary = scores.get(f"agent {number}, {EPISODES} episodes")
        if summary is not None:
            seeds[agent.variant].append({"agent": number, "seed": agent.seed} | summary)
    frontier = json.loads(run.evaluation.read_text()) if run.evaluation.exists() else None
    return {
        "task": task.name,
        "commands": [
            " ".join(study_command(task.name, "OUT", config.steps)),
            " ".join(frontier_command(f"OUT/runs/{run.path.name}")),
        ],
        "commit": commit or made.get("commit"),
        "device": device or made.get("device"),
        "versions": made.get("versions"),
        "note": note,
        "steps": config.steps,
        "episodes": EPISODES,
        "config": {name: value for name, value in raw.items() if name != "provenance"},
        "scores": seeds,
        "stopped": {str(number): why for number, (_, why) in run.read_stopped().items()},
        "own_settings": own_settings(dict(enumerate(run.load_policies()))),
        "frontier": frontier,
        "curves": curves(run),
    }


def curves(run):
    """[steps, score, share of FLOPs saved] of each evaluation while training, by agent."""
    found = {}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        if line["kind"] == "evaluation":
            score = line["success_rate"] if scored_by_success(line) else line["return_mean"]
            found.setdefault(str(line["agent"]), []).append(
                [line["steps"], short(score), short(line["flops_reduction"])]
            )
    return found


def short(value):
    return float(f"{value:.5g}") if isinstance(value, float) else value


def as_text(row):
    """JSON with one line for each agent, so that a change can be read."""
    long = {"scores", "tuned", "frontier", "curves"}
    head = json.dumps({key: value for key, value in row.items() if key not in long}, indent=1).removesuffix("\n}")
    frontier = row["frontier"] or {}
    parts = {
        "scores": {name: rounded(agents) for name, agents in row["scores"].items()},
        **({"tuned": row["tuned"]} if row.get("tuned") else {}),
        "frontier": {key: value for key, value in frontier.items() if key != "agents"},
        "frontier_agents": rounded(frontier.get("agents", [])),
        "curves": row["curves"],
    }
    text = head
    for name, part in parts.items():
        text += f',\n "{name}": '
        if isinstance(part, list):
            text += "[\n" + ",\n".join("  " + json.dumps(each) for each in part) + "\n ]"
        else:
            lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
            text += "{\n" + ",\n".join(lines) + "\n }"
    return text + "\n}\n"


def rounded(agents):
    def plain(value):
        return [plain(each) for each in value] if isinstance(value, list) else short(value)

    return [{name: plain(value) for name, value in agent.items()} for agent in agents]


@main.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
def join(store, runs):
    """Put finished RUNS of the same settings and other agents together, as a run of STORE; they stay as they are."""
    parts = [RunDirectory(path) for path in runs]
    configs = [part.read_config() for part in parts]
    if len({replace(config, agents=()) for config in configs}) > 1:
        raise click.ClickException("the runs differ in more than their agents")
    for part, config in zip(parts, configs, strict=True):
        if not part.finished(config):
            raise click.ClickException(f"{part.path} is not finished: lowgear train --resume {part.path}")
    whole = replace(configs[0], agents=tuple(agent for config in configs for agent in config.agents))
    joined = RunDirectory(store / "runs" / f"{file_name(whole.task)}-joined")
    joined.path.parent.mkdir(parents=True, exist_ok=True)
    joined.create(whole, json.loads(parts[-1].config.read_text())["provenance"])
    merge(joined, parts)
    click.echo(joined.path)


@main.command()
@click.argument("tasks", nargs=-1, required=True)
def tune(tasks):
    """Tune the committed asymmetric agents of TASKS to a fifth of the FLOPs, and add what they score to their rows."""
    commit = provenance()["commit"]  # before anything is written
    for task in tasks:
        path = KEPT / find(task).name / "evidence.json"
        if not path.exists():
            raise click.ClickException(f"{find(task).name} has no row in results/evidence yet: reproduce it first")
        row = read(path)
        row["tuned"] = tuned(row, path.parent / "policies") | {"commit": commit}
        path.write_text(as_text(row))
        click.echo(table.markdown(f"{row['task']}, within {MOST_FLOPS:.0%} of FLOPs", [tuned_row(row)], []))


def tuned(row, policies):
    """The asymmetric agents of a row within MOST_FLOPS: the setting of each, and its score on episodes of its own."""
    agents = [agent["agent"] for agent in row["scores"]["asymmetric"]]
    files = [f"agent{number}.safetensors" for number in agents]
    search = ["lowgear", "tune", *files, "--max-flops", str(MOST_FLOPS)]
    play = ["lowgear", "evaluate", *files, "--episodes", str(EPISODES), "--seed", str(TUNED_SEED)]
    with TemporaryDirectory() as folder:
        for file in files:
            shutil.copy(policies / file, folder)  # tuning writes the setting into the file
        found = [run["agents"][0] for run in call_for_json(search, folder)["runs"]]
        scores = [run["agents"][0] for run in call_for_json(play, folder)["runs"]]
    missed = [number for number, agent in zip(agents, found, strict=True) if not agent["meets"]]
    if missed:
        raise click.ClickException(
            f"{row['task']}: no setting of agents {missed} stays within {MOST_FLOPS:.0%} of FLOPs"
        )
    return {
        "commands": [" ".join(search), " ".join(play)],
        "agents": rounded([score | {"agent": number} for number, score in zip(agents, scores, strict=True)]),
    }


def call_for_json(command, folder):
    """What a command of Lowgear prints with --json, run in a folder."""
    click.echo("$ " + " ".join(command), err=True)
    told = subprocess.run(
        [sys.executable, "-m", *command, "--json"], check=True, cwd=folder, stdout=subprocess.PIPE, text=True
    )
    return json.loads(told.stdout)


def load_rows():
    """The committed rows, in the paper's order of tasks."""
    files = {task: KEPT / task / "evidence.json" for task in published_tasks()}
    return [read(path) for path in files.values() if path.exists()]


def read(path):
    """A committed row as `read_row` gives it."""
    row = json.loads(path.read_text())
    row["frontier"] = row["frontier"] | {"agents": row.pop("frontier_agents")}
    return row


def table_rows(row):
    """A row's agents as the study's table has them."""
    task = find(row["task"])
    return [
        TableRow(
            task,
            variant,
            tuple(SeedResult.of(agent["seed"], agent) for agent in row["scores"][variant]),
            paper.variant(task.name, variant),
            row["steps"],
        )
        for variant in VARIANTS
        if row["scores"][variant]
    ]


def tuned_row(row):
    """A row's tuned agents, as a line of the study's table; None where it has none."""
    if "tuned" not in row:
        return None
    seeds = tuple(SeedResult.of(agent["seed"], agent) for agent in row["tuned"]["agents"])
    task = find(row["task"])
    return TableRow(task, "asymmetric, tuned", seeds, paper.variant(task.name, "asymmetric"), row["steps"])


def best_known(task, steps):
    """The best public score at so many steps, read between those where one is known."""
    known = BEST_KNOWN[task]
    return float(np.interp(steps, list(known), list(known.values())))


def print_beside(row):
    """A row just made, beside the committed one."""
    rows = table_rows(row)
    click.echo(table.markdown(f"{row['task']}, made here", rows, []))
    path = KEPT / row["task"] / "evidence.json"
    if path.exists():
        click.echo(table.markdown(f"{row['task']}, results/evidence", table_rows(read(path)), []))


@main.command()
def show():
    """Write the tables and the pictures of all committed rows."""
    from evidence_page import write_page, write_picture

    from lowgear.report.frontier import describe
    from lowgear.report.matplotlib_figure import save

    kept = load_rows()
    if not kept:
        raise click.ClickException(f"{KEPT} holds no row yet")
    rows = [line for row in kept for line in table_rows(row)]
    title, remarks = "Performance: small-only, large-only and asymmetric agents", table.notes(rows)
    (KEPT / "performance.md").write_text(table.markdown(title, rows, remarks))
    (KEPT / "performance.csv").write_text(table.comma_separated(rows))
    (KEPT / "performance.tex").write_text(table.latex(title, rows, remarks))
    write_page(kept, KEPT / "README.md", ROOT / "README.md", table_rows, tuned_row, best_known)
    evaluations = {row["task"]: aggregate(row["frontier"], own_of(row)) for row in kept}
    write_picture([(row, evaluations[row["task"]]) for row in kept], PICTURES)
    if LEAD in evaluations:
        with TemporaryDirectory() as folder:
            _, drawn = save(describe(evaluations[LEAD]), Path(folder))
            shutil.copy(drawn, PICTURES / "frontier.png")


def own_of(row):
    return {int(agent): value for agent, value in row["own_settings"].items()}


if __name__ == "__main__":
    try:
        main()
    except LowgearError as error:
        sys.exit(f"evidence.py: error: {error}")
