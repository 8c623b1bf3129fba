"""Evaluates controllers once: the summaries are kept beside them, in scores.json."""

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import evaluate
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole

EVALUATION_SEED = 0
Progress = Callable[[str, int, int], None]  # what, how much of it is done, of how much
Summary = dict[str, Any]  # as evaluate.summarise gives it


def evaluate_once(
    directory: Path,
    policies: Mapping[str, Callable[[], Policy]],
    make_env: Callable[[int], BatchEnv],
    master: str,
    episodes: int,
    progress: Progress,
) -> dict[str, Summary]:
    """The summary of each named policy, of one shape all; loaded and played only where it is not known yet."""
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
        )
        for i, name in enumerate(missing):
            known[keys[name]] = evaluate.summarise(played, i, loaded[i].header.cost)
        write_whole(path, json.dumps(known, indent=1).encode())
    return {name: known[key] for name, key in keys.items()}


def _read(path: Path) -> dict[str, Summary]:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise LowgearError(f"{path} is damaged ({error!r}): delete it, and it is evaluated anew") from None
