"""Evaluates controllers once: the summaries are kept beside them, in scores.json."""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import evaluate
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.file import Policy
from lowgear.policy.files import read_json, write_whole

EVALUATION_SEED = 0
MOST_BYTES = 1 << 26  # of scores.json
NUMBERS = ("return_mean", "return_std", "large_share", "flops_per_step", "flops_reduction")
LARGEST = 1e300
Progress = Callable[[str, int, int], None]  # what, how much of it is done, of how much
Summary = dict[str, Any]  # as evaluate.summarise gives it


def evaluate_once(
    directory: Path,
    policies: Mapping[str, Callable[[], Policy]],
    make_env: Callable[[int], BatchEnv],
    master: str,
    episodes: int,
    progress: Progress,
    fail: Callable[[str, str], None] | None = None,
) -> dict[str, Summary]:
    """The summary of each named policy, of one shape all; loaded and played only where it is not known yet.

    What an earlier version evaluated, and knows no jerk of, is played again.

    One whose environment fails is left out, and `fail` is told its name and why; without that it is an error.
    """
    path = directory / "scores.json"
    known = _read(path)
    keys = {name: f"{name}, {episodes} episodes" for name in policies}
    missing = [name for name, key in keys.items() if key not in known]
    if missing:
        loaded = [policies[name]() for name in missing]
        done = itertools.count(1)  # episodes, which come one by one
        played = evaluate.play_policies(
            loaded,
            make_env,
            episodes,
            master,
            EVALUATION_SEED,
            lambda _: progress(f"evaluating {directory.name}", next(done), episodes * len(loaded)),
            may_miss=fail is not None,
        )
        for i, name in enumerate(missing):
            if i not in played.missing:
                known[keys[name]] = evaluate.summarise(played, i, loaded[i].header.cost)
            elif fail is not None:
                fail(name, played.missing[i])
        write_whole(path, json.dumps(known, indent=1).encode())
    return {name: known[key] for name, key in keys.items() if key in known}


def _read(path: Path) -> dict[str, Summary]:
    if not path.exists():
        return {}
    remedy = "delete it, and it is evaluated anew"
    raw = read_json(path, "file of scores", remedy, MOST_BYTES)
    try:
        for name, summary in raw.items():
            _check(fields.entries(fields.shown(name), summary))
    except BadField as error:
        raise LowgearError(f"{path} is damaged ({error}): {remedy}") from None
    return {name: summary for name, summary in raw.items() if "jerk" in summary}


def _check(summary: Summary) -> None:
    """Refuse a summary without the numbers that tables are made of."""
    for name in NUMBERS:
        value = entry(summary, name)
        if type(value) is not float or math.isfinite(value):  # a score that is not finite is what was found
            fields.number(name, value, -LARGEST, LARGEST)
    for name in ("decisions_mean", "repeated_share", "jerk"):
        if summary.get(name) is not None:
            fields.number(name, summary[name], 0, LARGEST)
    if entry(summary, "success_rate") is not None:
        fields.number("success_rate", summary["success_rate"], 0, 1)
