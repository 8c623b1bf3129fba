"""A run directory as the report reads it: whatever is there is shown, whatever is missing or damaged is said.

Comes in: a path. Goes out: a `RunData`, whose notices are sentences for the person who reads the page.
"""

import json
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.policy_file import open_run
from lowgear.config.run import MAX_SEED, MOST_AGENTS, MOST_STEPS, RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task, find
from lowgear.policy import fields
from lowgear.policy.fields import MOST_ITEMS, BadField, entry
from lowgear.policy.file import Policy
from lowgear.policy.files import read_json
from lowgear.policy.gears import gears_of
from lowgear.report.settings import Evaluation, Setting, aggregate, own_settings

MetricsLine = dict[str, Any]
METRICS_NUMBERS = (
    "return_mean",
    "success_rate",
    "return",
    "success",
    "cost_coefficient",
    "relative_coefficient",
)
NUMBERS = (
    "cost_coefficient",
    "return_mean",
    "return_ci95",
    "large_share",
    "flops_per_step",
    "flops_reduction",
    "flops_reduction_ci95",
)
LEAST, LARGEST = 1e-18, 1e15  # of what is drawn
LONGEST_LINE = 1 << 16  # bytes of a line of metrics.jsonl
MOST_LINES = 1_000_000
MOST_EVALUATION = 1 << 24  # bytes of evaluation.json


@dataclass(frozen=True)
class RunData:
    """What one directory holds."""

    path: Path
    config: RunConfig
    raw: dict[str, Any]  # the configuration and its provenance, as JSON has them
    metrics: tuple[MetricsLine, ...]
    scored: dict[str, Any]  # what `lowgear evaluate` has written, as far as it is whole
    evaluation: Evaluation  # the same, seeds together; without settings where there is none
    policies: dict[int, Policy]  # the last of each agent
    notices: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the directory."""
        return self.path.resolve().name

    @property
    def task(self) -> Task:
        """What it was trained on; with other widths than the paper's it has none of the paper's figures."""
        task = _task(self.config.task)
        return (
            task
            if task.gears is not None and gears_of(task.gears) == self.config.gears
            else replace(task, published=None)
        )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Of the evaluation."""
        return self.evaluation.settings


def read_run(path: Path, trust: bool = False) -> RunData:
    """Everything in `path`; what is no run at all is an error, and so is a task that imports a module, untrusted."""
    directory = open_run(path, trust)
    config = directory.read_config()
    notices: list[str] = []
    theirs = _task(config.task).gears
    if theirs is not None and gears_of(theirs) != config.gears:
        ours, published = (", ".join(map(str, gears)) for gears in (config.gears, theirs))
        notices.append(f"The gears are {ours}, not the paper's {published}: its figures are left out.")
    metrics = _metrics(directory.metrics, config, notices)
    scored = _evaluation(directory, config, notices)
    policies = _policies(directory, config, notices)
    evaluation = aggregate(scored, own_settings(policies))
    if evaluation.left_out:
        notices.append(
            f"{len(evaluation.left_out)} of {evaluation.scores} scores are not finite numbers; they are left out of "
            "every mean and picture."
        )
    is_run = directory.config.is_file()
    written = read_json(directory.config, "configuration", "start a new run") if is_run else {}
    raw = config.to_json() | {"provenance": _provenance(written.get("provenance"))}
    return RunData(path, config, raw, tuple(metrics), scored, evaluation, policies, tuple(notices))


def _task(name: str) -> Task:
    """The task of a run; an agent's own environment has no more than a name."""
    with suppress(LowgearError):
        return find(name)
    return Task(name=name, source="gym", env_id=name)


def _metrics(path: Path, config: RunConfig, notices: list[str]) -> list[MetricsLine]:
    """The lines that can be read: a run that is being written, or was killed, ends in half a line."""
    if not path.is_file():
        notices.append("No metrics.jsonl, so there are no learning curves.")
        return []
    found: list[MetricsLine] = []
    damaged = 0
    with path.open("rb") as file:
        while (data := file.readline(LONGEST_LINE)) and len(found) + damaged < MOST_LINES:
            try:
                found.append(_metrics_line(json.loads(data.decode("utf-8")), config))
            except (RecursionError, ValueError):
                damaged += bool(data.strip())
    if damaged:
        lines = "1 line" if damaged == 1 else f"{damaged} lines"
        notices.append(f"{lines} of metrics.jsonl cannot be read and {'is' if damaged == 1 else 'are'} left out.")
    if data:
        notices.append(f"metrics.jsonl has more than {MOST_LINES:,} lines; the rest is left out.")
    return found


def _metrics_line(raw: Any, config: RunConfig) -> MetricsLine:
    """What the report uses of a line; a line of no agent of the run is none."""
    line = fields.entries("a line", raw)
    agent = fields.whole("agent", entry(line, "agent"), 0, len(config.agents) - 1)
    return {
        "kind": fields.text("kind", entry(line, "kind")),
        "steps": fields.whole("steps", entry(line, "steps"), 0, MOST_STEPS),
        "agent": agent,
        "variant": fields.one_of("variant", entry(line, "variant"), (config.agents[agent].variant,)),
        "scored_by": _scored_by(line),
        **{name: _number(name, line[name]) for name in METRICS_NUMBERS if line.get(name) is not None},
    }


def _evaluation(directory: RunDirectory, config: RunConfig, notices: list[str]) -> dict[str, Any]:
    """What `lowgear evaluate` has written, as far as it is whole; without agents where it is not."""
    nothing = {"task": config.task, "recipe": config.recipe.name, "steps": config.steps, "episodes": 1, "agents": []}
    remedy = f"`lowgear evaluate {directory.path} --frontier 7` makes it"
    if not directory.evaluation.is_file():
        notices.append(f"Not evaluated: there is no evaluation.json, so no table and no frontier; {remedy}.")
        return nothing
    try:
        found = read_json(directory.evaluation, "evaluation", f"{remedy} anew", MOST_EVALUATION)
        agents = fields.items("agents", entry(found, "agents"), 0)
        facts = {
            "task": fields.text("task", entry(found, "task")),
            "recipe": fields.text("recipe", entry(found, "recipe")),
            "steps": fields.whole("steps", entry(found, "steps"), 0, MOST_STEPS),
            "episodes": fields.whole("episodes", entry(found, "episodes"), 1, MOST_STEPS),
        }
    except (BadField, LowgearError) as error:
        notices.append(f"evaluation.json is damaged ({error}), so no table and no frontier; {remedy} anew.")
        return nothing
    rows = []
    for row in agents:
        with suppress(BadField):
            rows.append(_row(row))
    if len(rows) < len(agents):
        notices.append(f"{len(agents) - len(rows)} rows of evaluation.json are damaged; {remedy} anew.")
    return facts | {"agents": rows}


def _row(raw: Any) -> dict[str, Any]:
    """A row with every number that the report uses; one that is not finite is NaN, and is left out later."""
    row = fields.entries("a row", raw)
    optional = {
        name: None if row.get(name) is None else _number(name, row[name])
        for name in ("success_rate", "period_mean", "relative_coefficient")
    }
    found: dict[str, Any] = {
        "agent": fields.whole("agent", entry(row, "agent"), 0, MOST_AGENTS),
        "seed": fields.whole("seed", entry(row, "seed"), 0, MAX_SEED),
        "variant": fields.word("variant", entry(row, "variant")),
        **{name: math.nan if row.get(name) is None else _number(name, row[name]) for name in NUMBERS},
        **optional,
        "scored_by": _scored_by(row),
    }
    if not math.isfinite(found["cost_coefficient"]):
        raise BadField("cost_coefficient is not a number")
    for name in ("large_share", "success_rate"):
        share = found[name]
        if share is not None and not math.isnan(share):
            fields.number(name, share, 0, 1)
    if found["flops_reduction"] > 1:
        raise BadField("flops_reduction is above 1")
    found["gear_share"] = _shares(row.get("gear_share"))
    found["return_interval"] = _interval(row.get("return_interval"), found["return_mean"])
    for name in ("flops_per_step", "return_ci95", "flops_reduction_ci95"):
        if found[name] < 0:
            raise BadField(f"{name} is below 0")
    return found


def _shares(raw: Any) -> tuple[float, ...] | None:
    """Of the gears; None where an evaluation does not tell, or tells what no share can be."""
    with suppress(BadField):
        return tuple(fields.number("gear_share", share, 0, 1) for share in fields.items("gear_share", raw))
    return None


def _interval(raw: Any, mean: float) -> tuple[float, float] | None:
    """Around the mean return; None where an evaluation has none, or one that is no interval."""
    with suppress(BadField):
        low, high = (_number("return_interval", end) for end in fields.items("return_interval", raw, 2, 2))
        return (low, high) if low <= mean <= high else None
    return None


def _scored_by(row: dict[str, Any]) -> str:
    """Which earlier files do not say: success counted wherever it was told."""
    return fields.one_of("scored_by", row.get("scored_by", "success"), ("success", "return"))


def _number(name: str, value: Any) -> float:
    """A number that can be drawn beside others: not beyond all measure, and 0 where it is next to nothing."""
    if type(value) is float and not math.isfinite(value):
        return math.nan
    found = fields.number(name, value, -LARGEST, LARGEST)
    return found if abs(found) >= LEAST else 0.0


def _provenance(raw: Any) -> dict[str, Any] | None:
    """Versions, machine and commit: texts, and objects of texts; the rest is left out."""
    if not isinstance(raw, dict):
        return None
    found: dict[str, Any] = {}
    for name, value in list(raw.items())[:MOST_ITEMS]:
        if isinstance(value, dict):
            found[name] = {key: text for key, text in list(value.items())[:MOST_ITEMS] if isinstance(text, str)}
        elif value is None or isinstance(value, str):
            found[name] = value
    return found


def _policies(directory: RunDirectory, config: RunConfig, notices: list[str]) -> dict[int, Policy]:
    found, problems = {}, []
    for agent in range(len(config.agents)):
        try:
            found[agent] = directory.load_policy(config, agent)
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
