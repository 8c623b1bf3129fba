"""A run directory from an agent in memory."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole

if TYPE_CHECKING:
    from lowgear.training.open_ended import Snapshot


def save_run(
    path: Path,
    policy: Policy,
    config: RunConfig,
    snapshot: "Snapshot | None",
    history: list[dict[str, Any]],
    evaluation: dict[str, Any] | None = None,
) -> RunDirectory:
    """Write a run of one agent, whole or not at all; without a snapshot it has no checkpoint."""
    from lowgear.training.open_ended import write_run
    from lowgear.training.provenance import provenance

    if path.exists():
        raise LowgearError(f"{path} exists: name a new directory")
    made = RunDirectory(path.with_name(path.name + ".partial"))
    shutil.rmtree(made.path, ignore_errors=True)
    try:
        made.make(config, provenance())
        policy.save(made.policy(0))
        write_whole(made.metrics, "".join(json.dumps(line, default=float) + "\n" for line in history).encode())
        if evaluation is not None:
            write_whole(made.evaluation, json.dumps(evaluation, indent=2).encode())
        if snapshot is not None:
            write_run(made, config, snapshot)
        made.path.rename(path)
    except OSError as error:
        raise LowgearError(f"could not write {path}: {error.strerror}; choose another place") from None
    finally:
        shutil.rmtree(made.path, ignore_errors=True)
    return RunDirectory(path)
