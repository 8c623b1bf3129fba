"""What `lowgear evaluate` found of the policy that a card is about, and of the run's others beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.tasks import trust_flag
from lowgear.export.source import Source
from lowgear.policy.setting import own_setting, same_setting
from lowgear.report.runs import RunData, read_run

Row = dict[str, Any]


@dataclass(frozen=True)
class Scores:
    """Rows of evaluation.json that say something of the policy."""

    rows: tuple[Row, ...] = ()  # of the agent itself, along its dial
    others: tuple[Row, ...] = ()  # of the run's other agents
    own: Row | None = None  # at the setting that is shipped
    episodes: int = 0
    run: RunData | None = None
    notes: tuple[str, ...] = ()


def read_scores(source: Source, trust: bool) -> Scores:
    """What there is; the notes say what is missing, with the command that makes it."""
    path, header = _run_of(source), source.policy.header
    remedy = f"`lowgear evaluate {path} --frontier 7{trust_flag(header.task)}`"
    if not path.exists():
        return Scores(notes=("The card has no scores: evaluate a policy file or a run.",))
    try:
        run = read_run(path, trust)
    except LowgearError as error:
        return Scores(notes=(f"The card has no scores: {error}",))
    rows = [row for row in run.scored["agents"] if _is_whole(row)]
    if not rows or run.scored["steps"] != header.steps:
        why = "it is not evaluated" if not rows else f"its evaluation is of {run.scored['steps']:,} steps"
        return Scores(run=run, notes=(f"The card has no scores, {why}: {remedy} first.",))
    agent = source.agent or 0
    own = [row for row in rows if row["agent"] == agent]
    at = [row for row in own if same_setting(row["cost_coefficient"], own_setting(source.policy))]
    notes = () if at else (f"Its own setting was not evaluated, so the hub shows no result: {remedy} first.",)
    others = [row for row in rows if row["agent"] != agent]
    return Scores(_sorted(own), _sorted(others), at[0] if at else None, run.scored["episodes"], run, notes)


def _run_of(source: Source) -> Path:
    return source.path if source.agent is None else source.path.parent.parent


def _is_whole(row: Row) -> bool:
    return all(math.isfinite(row[name]) for name in ("return_mean", "flops_per_step", "flops_reduction", "large_share"))


def _sorted(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: (row["agent"], row["cost_coefficient"])))
