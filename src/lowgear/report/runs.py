"""A run directory as the report reads it: whatever is there is shown, whatever is missing or damaged is said.

Comes in: a path. Goes out: a `RunData`, whose notices are sentences for the person who reads the page.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task, find
from lowgear.policy.file import Policy, load
from lowgear.report.settings import Evaluation, Setting, aggregate

MetricsLine = dict[str, Any]
METRICS_FIELDS = {"kind": str, "steps": int, "agent": int, "variant": str}
NUMBERS = ("agent", "seed", "cost_coefficient", "return_mean", "large_share", "flops_per_step", "flops_reduction")


@dataclass(frozen=True)
class RunData:
    """What one directory holds."""

    path: Path
    config: RunConfig
    raw: dict[str, Any]  # config.json as it is written
    metrics: tuple[MetricsLine, ...]
    evaluation: Evaluation  # without settings where there is none
    policies: dict[int, Policy]  # the last of each agent
    notices: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the directory."""
        return self.path.resolve().name

    @property
    def task(self) -> Task:
        """What it was trained on; with other widths than the paper's it has none of the paper's figures."""
        task = find(self.config.task)
        return task if task.gears == self.config.gears else replace(task, published=None)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Of the evaluation."""
        return self.evaluation.settings


def read_run(path: Path) -> RunData:
    """Everything in `path`; what is no run at all is an error."""
    if not path.is_dir():
        raise LowgearError(f"{path}: no such directory; `lowgear report` wants run directories, for example runs/NAME")
    directory = RunDirectory(path)
    config = directory.read_config()
    notices: list[str] = []
    theirs = find(config.task).gears
    if theirs is not None and theirs != config.gears:
        ours, published = (", ".join(map(str, gears)) for gears in (config.gears, theirs))
        notices.append(f"The gears are {ours}, not the paper's {published}: its figures are left out.")
    metrics = _metrics(directory.metrics, notices)
    evaluation = aggregate(_evaluation(directory, config, notices))
    policies = _policies(directory, config, notices)
    if evaluation.left_out:
        notices.append(
            f"{len(evaluation.left_out)} of {evaluation.scores} scores are not finite numbers; they are left out of "
            "every mean and picture."
        )
    raw = json.loads(directory.config.read_text(encoding="utf-8"))
    return RunData(path, config, raw, tuple(metrics), evaluation, policies, tuple(notices))


def _metrics(path: Path, notices: list[str]) -> list[MetricsLine]:
    """The lines that can be read: a run that is being written, or was killed, ends in half a line."""
    if not path.is_file():
        notices.append("No metrics.jsonl, so there are no learning curves.")
        return []
    found, damaged = [], 0
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            if not all(isinstance(line[key], kind) for key, kind in METRICS_FIELDS.items()):
                raise ValueError(text)
            found.append(line)
        except (KeyError, TypeError, ValueError):
            damaged += bool(text.strip())
    if damaged:
        lines = "1 line" if damaged == 1 else f"{damaged} lines"
        notices.append(f"{lines} of metrics.jsonl cannot be read and {'is' if damaged == 1 else 'are'} left out.")
    return found


def _evaluation(directory: RunDirectory, config: RunConfig, notices: list[str]) -> dict[str, Any]:
    """What `lowgear evaluate` has written, as far as it is whole; without agents where it is not."""
    nothing = {"task": config.task, "recipe": config.recipe.name, "steps": config.steps, "episodes": 1, "agents": []}
    remedy = f"`lowgear evaluate {directory.path} --frontier 7` makes it"
    if not directory.evaluation.is_file():
        notices.append(f"Not evaluated: there is no evaluation.json, so no table and no frontier; {remedy}.")
        return nothing
    try:
        found: dict[str, Any] = json.loads(directory.evaluation.read_text(encoding="utf-8"))
        rows = [row for row in found["agents"] if _whole(row)]
        if len(rows) < len(found["agents"]):
            notices.append(f"{len(found['agents']) - len(rows)} rows of evaluation.json are damaged; {remedy} anew.")
        facts = {"task": str(found["task"]), "recipe": str(found["recipe"]), "steps": int(found["steps"])}
        return facts | {"episodes": max(1, int(found["episodes"])), "agents": rows}
    except (KeyError, TypeError, ValueError) as error:
        notices.append(f"evaluation.json is damaged ({error!r}), so no table and no frontier; {remedy} anew.")
        return nothing


def _whole(row: Any) -> bool:
    """Whether a row has every number; one that is not finite counts, and is left out later."""
    if not isinstance(row, dict) or not isinstance(row.get("variant"), str):
        return False
    rate = row.setdefault("success_rate", None)
    row.setdefault("return_ci95", math.nan)
    row.setdefault("period_mean", None)
    for key in NUMBERS:
        if row.get(key) is None and key not in ("agent", "seed"):
            row[key] = math.nan
    numbers = [row.get(key) for key in NUMBERS] + ([] if rate is None else [rate])
    return all(isinstance(number, int | float) for number in numbers)


def _policies(directory: RunDirectory, config: RunConfig, notices: list[str]) -> dict[int, Policy]:
    found, problems = {}, []
    for agent in range(len(config.agents)):
        try:
            found[agent] = load(directory.policy(agent))
        except LowgearError as error:
            problems.append(str(error))
    if not found:
        notices.append(
            f"No policy can be played ({problems[0] if problems else 'there are no agents'}), so there is no episode; "
            f"`lowgear train --resume {directory.path}` goes on with the run."
        )
    elif problems:
        notices.append(f"{len(problems)} of {len(config.agents)} policies cannot be read ({problems[0]}).")
    return found
