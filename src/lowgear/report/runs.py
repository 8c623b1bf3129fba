"""A run directory as the report reads it: whatever is there is shown, whatever is missing or damaged is said.

Comes in: a path. Goes out: a `RunData`, whose notices are sentences for the person who reads the page.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.policy_file import open_run
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task, find
from lowgear.evaluation.main_agent import choose
from lowgear.evaluation.results import MetricsLine, read_evaluation, read_metrics
from lowgear.policy.fields import MOST_ITEMS
from lowgear.policy.file import Policy
from lowgear.policy.files import read_json
from lowgear.policy.gears import gears_of
from lowgear.report.settings import Evaluation, Setting, aggregate, own_settings


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
    main: int = 0  # the agent that the page plays and `lowgear export` takes

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
    metrics = read_metrics(directory.metrics, config, notices)
    scored = read_evaluation(directory, config, notices)
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
    main = choose({agent: config.agents[agent].variant for agent in policies}, scored["agents"], metrics).agent
    return RunData(path, config, raw, tuple(metrics), scored, evaluation, policies, tuple(notices), main)


def _task(name: str) -> Task:
    """The task of a run; an agent's own environment has no more than a name."""
    with suppress(LowgearError):
        return find(name)
    return Task(name=name, source="gym", env_id=name)


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
