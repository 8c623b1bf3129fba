"""Weights & Biases: a run for each agent, in one group, and one for the population; online or offline.

It writes beside the run's directory, in `wandb/`, or where WANDB_DIR says: its folders hold links that lead to its own
logs, which a run's directory may not. Project, entity and mode are wandb's own to choose (WANDB_PROJECT, WANDB_ENTITY,
WANDB_MODE); without a login it writes offline.
"""

import os
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowgear.training.progress import LogLine
from lowgear.training.trackers.described import hparams, run_name
from lowgear.training.trackers.protocol import POPULATION, TABLE_COLUMNS, Ids, Rows, TrackedRun, cells, numbers

PROJECT = "lowgear"
GROUPS = ("train", "evaluation")


class Wandb:
    """Opens a run of wandb's when something is first told of it."""

    def begin(self, run: TrackedRun, ids: Ids) -> str:
        """The population's, with the whole configuration."""
        import wandb

        self._run, self._ids = run, ids
        self._open: dict[str, Any] = {}
        self._rows: dict[str, int] = {}  # the last of each
        self._folder = os.environ.get("WANDB_DIR") or str(run.path.resolve().parent)
        self._offline = os.environ.get("WANDB_MODE") == "offline"
        if not self._offline and "WANDB_MODE" not in os.environ:
            self._offline = not wandb.login(prompt=False, verify=False)
        if run.trains:
            self._of(POPULATION)
        where = f"{self._folder}/wandb"
        return f"wandb writes offline; `wandb sync {where}/offline-run-*` uploads it" if self._offline else ""

    def log(self, group: str, lines: Sequence[LogLine]) -> None:
        """A row of history for each."""
        for line in lines:
            values = {f"{group}/{name}": value for name, value in numbers(line).items()}
            self._log(str(line["agent"]), values | {f"{group}/steps": line["steps"]}, line["steps"])

    def table(self, name: str, rows: Rows) -> None:
        """Of the population."""
        import wandb

        self._log(POPULATION, {name: wandb.Table(columns=list(TABLE_COLUMNS), data=cells(rows))})

    def figure(self, path: Path) -> None:
        """Of the population."""
        import wandb

        self._log(POPULATION, {path.stem: wandb.Image(str(path))})

    def policy(self, agent: int, path: Path) -> None:
        """An artifact of the agent's run, of type `model`; its versions are wandb's to count."""
        import wandb

        name = re.sub(r"[^\w.-]+", "-", f"{self._run.name}-{path.stem}", flags=re.ASCII)[-128:]
        artifact = wandb.Artifact(name, type="model", metadata=hparams(self._run.config, agent))
        artifact.add_file(str(path))
        self._of(str(agent)).log_artifact(artifact)

    def end(self, status: str) -> None:
        """Finish every run that is open."""
        for run in self._open.values():
            run.finish(exit_code=0 if status == "finished" else 1)

    def _log(self, key: str, values: dict[str, Any], steps: int | None = None) -> None:
        """Rows are numbered upwards, also by a process that goes on: by steps, or what is later than any of them."""
        run = self._of(key)
        least = self._run.config.steps if steps is None else steps
        self._rows[key] = max(self._rows.get(key, -1) + 1, least)
        run.log(values, step=self._rows[key])

    def _of(self, key: str) -> Any:
        """The run of an agent or of the population, begun or gone on with."""
        import wandb

        if key in self._open:
            return self._open[key]
        agent, config = None if key == POPULATION else int(key), self._run.config
        whole = config.to_json() | {"provenance": self._run.provenance}
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=self._ids.setdefault(key, uuid.uuid4().hex[:12]),
            resume="allow",
            reinit="create_new",
            mode="offline" if self._offline else None,
            dir=self._folder,
            name=self._run.name if agent is None else run_name(config, agent),
            group=self._run.name,
            job_type=POPULATION if agent is None else config.agents[agent].variant,
            config=whole if agent is None else hparams(config, agent),
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=agent is not None),
        )
        for group in GROUPS if agent is not None else ():
            run.define_metric(f"{group}/steps", hidden=True)
            run.define_metric(f"{group}/*", step_metric=f"{group}/steps")
        self._open[key] = run
        return run
