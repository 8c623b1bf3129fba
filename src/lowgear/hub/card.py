"""README.md of a model: what the hub reads at its top, and what a person reads below."""

from typing import Any

from lowgear import __version__
from lowgear.hub.front_matter import front_matter
from lowgear.hub.scores import Row, Scores
from lowgear.policy.header import PolicyHeader
from lowgear.report.text import markdown_text

PICTURE = "frontier.png"
TASK = "reinforcement-learning"
COLUMNS = ("controller", "λ", "return", "large gear", "FLOPs per step", "FLOPs saved")
TEXT = """\
# {title}

A controller for `{task}` with the gears {widths}: a master network of {master_units} units picks one every {periods}
steps, and pays for what it picks. Trained with Lowgear for {steps:,} steps (recipe {recipe}, variant {variant}, seed
{seed}).

{scores}
## Use

```sh
pip install huggingface_hub lowgear
```

```python
import lowgear
from huggingface_hub import hf_hub_download

agent = lowgear.load(hf_hub_download("{repo}", "{file}"))  # runs no code from the file
action, state = agent.predict(observation, state=None)  # pass `state` on at the next step
{dial}```

`lowgear export {file} --format c` makes C99 of it that a robot can run.

Observations: {obs_dim} numbers{observations}. Actions: {act_dim}{actions}. `config.json` has the settings of its
training.
"""


def card(header: PolicyHeader, scores: Scores, name: str, file: str, licence: str, repo: str, picture: bool) -> str:
    """The whole README.md."""
    dial = header.dial
    turn = f"agent.cost_coefficient = {header.cost_coefficient:.3g}  # the dial: {{}} to {{}}, higher is cheaper\n"
    names = {
        "observations": f" ({', '.join(map(markdown_text, header.observation_names))})"
        if header.observation_names
        else "",
        "actions": f" ({', '.join(map(markdown_text, header.action_names))})" if header.action_names else "",
    }
    return (
        front_matter(metadata(header, scores, name, licence))
        + "\n"
        + TEXT.format(
            title=f"{markdown_text(header.task)}, {markdown_text(header.variant)}",
            task=header.task.replace("`", "'"),
            master_units=header.master_units,
            widths=" and ".join(map(str, header.gears)),
            periods=" or ".join(map(str, header.periods)),
            steps=header.steps,
            recipe=markdown_text(header.recipe),
            variant=header.variant,
            seed=header.seed,
            scores=_scores(scores, picture),
            repo=repo,
            file=file,
            dial=turn.format(f"{dial.low:.3g}", f"{dial.high:.3g}") if dial is not None and dial.turns else "",
            obs_dim=header.obs_dim,
            act_dim=header.act_dim,
            **names,
        )
    )


def metadata(header: PolicyHeader, scores: Scores, name: str, licence: str) -> dict[str, Any]:
    """What the hub reads; its results are those of the setting that is shipped."""
    found: dict[str, Any] = {
        "library_name": "lowgear",
        "license": licence,
        "pipeline_tag": TASK,
        "tags": ["lowgear", TASK, "robotics", "continuous-control", "soft-actor-critic", header.task],
    }
    if scores.own is None:
        return found
    result = {
        "task": {"type": TASK, "name": TASK},
        "dataset": {"type": header.task, "name": header.task},
        "metrics": [{"type": kind, "name": title, "value": value} for kind, title, value in _metrics(scores.own)],
    }
    return found | {"model-index": [{"name": name, "results": [result]}]}


def _metrics(row: Row) -> list[tuple[str, str, float]]:
    found = [
        ("mean_reward", "mean return", row["return_mean"]),
        ("flops_reduction", "FLOPs saved against the large gear", row["flops_reduction"]),
        ("flops_per_step", "FLOPs per step", row["flops_per_step"]),
        ("large_share", "share of steps in the large gear", row["large_share"]),
    ]
    if row["success_rate"] is not None:
        found.append(("success_rate", "success rate", row["success_rate"]))
    return [(kind, title, float(f"{value:.6g}")) for kind, title, value in found]


def _scores(scores: Scores, picture: bool) -> str:
    if not scores.rows:
        return ""
    lines = [f"| {' | '.join(COLUMNS)} |", f"| --- |{' ---: |' * (len(COLUMNS) - 1)}"]
    for row in (*scores.rows, *scores.others):
        mine, shipped = row["agent"] == scores.rows[0]["agent"], row is scores.own
        name = "this one" + ", as shipped" * shipped if mine else f"{markdown_text(row['variant'])}, seed {row['seed']}"
        half = row["return_ci95"]
        cells = [
            name,
            f"{row['cost_coefficient']:.3g}",
            f"{row['return_mean']:.4g}" + (f" ± {half:.2g}" if half > 0 else ""),
            f"{row['large_share']:.1%}",
            f"{row['flops_per_step']:,.0f}",
            f"{row['flops_reduction']:.1%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    shown = f"![Return against FLOPs per step]({PICTURE})\n\n" if picture else ""
    note = (
        f"λ is the price of compute, the dial's setting. Mean return over {scores.episodes} episodes with its 95% "
        f"interval; savings are against the large gear alone. Measured with Lowgear {__version__}."
    )
    table = "\n".join(lines)
    return f"## What it scores and costs\n\n{shown}{table}\n\n{note}\n"
