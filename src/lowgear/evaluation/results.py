"""What `lowgear evaluate` and training have written about a run, read with care: the files may be a stranger's.

Comes in: evaluation.json and metrics.jsonl. Goes out: rows whose every number has a type and a range, and notices of
what is missing or damaged.
"""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.ranges import MAX_SEED, MOST_AGENTS, MOST_STEPS
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.files import read_json

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


def read_metrics(path: Path, config: RunConfig, notices: list[str]) -> list[MetricsLine]:
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


def read_evaluation(directory: RunDirectory, config: RunConfig, notices: list[str]) -> dict[str, Any]:
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
