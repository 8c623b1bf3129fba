"""MLflow: a parent run for the population, and a run below it for each agent.

They go where MLFLOW_TRACKING_URI says, or into an SQLite store beside the run's directory, mlflow.db, with artifacts in
mlartifacts/; into the experiment MLFLOW_EXPERIMENT_NAME, or `lowgear`.
"""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowgear.training.progress import LogLine
from lowgear.training.trackers.described import hparams, run_name
from lowgear.training.trackers.protocol import POPULATION, TABLE_COLUMNS, Ids, Rows, TrackedRun, cells, numbers

EXPERIMENT = "lowgear"
STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
MOST_PARAMS = 100  # that MLflow takes at once
MOST_LETTERS = 6000  # of a parameter


class Mlflow:
    """Speaks to the store through a client of its own, so that it is in no one's way who uses MLflow too."""

    def begin(self, run: TrackedRun, ids: Ids) -> str:
        """The population's run with the whole configuration, then one for each agent with its hparams."""
        from mlflow import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.ERROR)
        self._run, self._ids = run, ids
        folder, uri = run.path.resolve().parent, os.environ.get("MLFLOW_TRACKING_URI")
        local = f"sqlite:///{folder / 'mlflow.db'}"
        self._client = MlflowClient(tracking_uri=uri or local)
        self._experiment = self._find_experiment(None if uri else (folder / "mlartifacts").as_uri())
        parent, commit = self._open(POPULATION, run.name, {}), run.provenance.get("commit")
        if run.trains:
            self._client.log_dict(parent, run.config.to_json() | {"provenance": run.provenance}, "config.json")
            if commit:
                self._client.set_tag(parent, "mlflow.source.git.commit", commit)
            for agent in range(len(run.config.agents)):
                self._open(str(agent), run_name(run.config, agent), hparams(run.config, agent), parent)
        return "" if uri else f"mlflow writes to {local}; `mlflow ui --backend-store-uri {local}` shows it"

    def log(self, group: str, lines: Sequence[LogLine]) -> None:
        """One batch for each agent."""
        from mlflow.entities import Metric

        now = _milliseconds()
        for line in lines:
            metrics = [Metric(f"{group}/{name}", value, now, line["steps"]) for name, value in numbers(line).items()]
            self._client.log_batch(self._ids[str(line["agent"])], metrics=metrics)

    def table(self, name: str, rows: Rows) -> None:
        """As MLflow's own tables are kept."""
        columns = dict(zip(TABLE_COLUMNS, map(list, zip(*cells(rows), strict=True)), strict=True))
        self._client.log_table(self._ids[POPULATION], columns, f"{name}.json")

    def figure(self, path: Path) -> None:
        """An artifact of the population's run."""
        self._client.log_artifact(self._ids[POPULATION], str(path), "figures")

    def policy(self, agent: int, path: Path) -> None:
        """An artifact of the agent's run."""
        self._client.log_artifact(self._ids[str(agent)], str(path), "policies")

    def end(self, status: str) -> None:
        """As it went; a run that was only added to is left as it was."""
        if self._run.trains:
            for run in self._ids.values():
                self._client.set_terminated(run, STATUS[status])

    def _find_experiment(self, artifacts: str | None) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self._client.create_experiment(name, artifacts))

    def _open(self, key: str, name: str, params: dict[str, Any], parent: str | None = None) -> str:
        """Go on with a run that the store has, or begin one."""
        from mlflow.entities import Param
        from mlflow.exceptions import MlflowException

        if key in self._ids:
            try:
                self._client.get_run(self._ids[key])
                if self._run.trains:
                    self._client.update_run(self._ids[key], status="RUNNING")
                    self._client.set_tag(self._ids[key], "lowgear.steps", self._run.config.steps)
                return self._ids[key]
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
        tags = {"lowgear.steps": str(self._run.config.steps)} | ({"mlflow.parentRunId": parent} if parent else {})
        self._ids[key] = run = str(self._client.create_run(self._experiment, run_name=name, tags=tags).info.run_id)
        every = [Param(key, str(value)[:MOST_LETTERS]) for key, value in params.items()]
        for first in range(0, len(every), MOST_PARAMS):
            self._client.log_batch(run, params=every[first : first + MOST_PARAMS])
        return run


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
