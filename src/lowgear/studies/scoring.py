"""Evaluates controllers once: what was found is kept beside them, in scores.json."""

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
Found = dict[str, Any]  # as evaluate.summarise gives it


def scores(
    directory: Path,
    policies: Mapping[str, Callable[[], Policy]],
    make_env: Callable[[int], BatchEnv],
    master: str,
    episodes: int,
    progress: Progress | None = None,
) -> dict[str, Found]:
    """Figures of each named policy, of one shape all; loaded and played only where they are not known yet."""
    path = directory / "scores.json"
    known = _read(path)
    keys = {name: f"{name}, {episodes} episodes" for name in policies}
    missing = [name for name, key in keys.items() if key not in known]
    if missing:
        loaded = [policies[name]() for name in missing]
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            if progress:
                progress(f"evaluating {directory.name}", done, episodes * len(loaded))

        played = evaluate.play_policies(loaded, make_env, episodes, master, EVALUATION_SEED, count)
        for i, name in enumerate(missing):
            known[keys[name]] = evaluate.summarise(played, i, loaded[i].header.prices)
        write_whole(path, json.dumps(known, indent=1).encode())
    return {name: known[key] for name, key in keys.items()}


def _read(path: Path) -> dict[str, Found]:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise LowgearError(f"{path} is damaged ({error!r}): delete it, and it is evaluated anew") from None
