"""Brings learners, environments and lines to where a run's last checkpoint left them."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.arrays import FloatArray
from lowgear.training import checkpoint
from lowgear.training.algorithm import Unrepeatable
from lowgear.training.checkpoint import Checkpoint
from lowgear.training.lines import Lines
from lowgear.training.parallel import ParallelLearner, Published
from lowgear.training.parallel_collector import ParallelCollector


class Parts(NamedTuple):
    """Of a training that goes on."""

    config: RunConfig
    learner: ParallelLearner
    collector: ParallelCollector
    lines: Lines
    act_with: Callable[[Published], None]


class Resumed(NamedTuple):
    """What they leave to the training."""

    pending: FloatArray | None  # the last chunk, which is not learned from yet
    begins_anew: bool  # where environments did not repeat themselves: episodes that were open are cut short


def resume(parts: Parts, directory: RunDirectory, latest: Checkpoint) -> Resumed:
    """Learners, buffers and episodes as they were."""
    config, learner, collector, lines, act_with = parts
    population, chunk = len(config.agents), config.recipe.chunk
    learner.restore(checkpoint.read_state(directory, latest, learner.states()), latest.updates)
    if latest.updates:  # until then agents act as they began, whatever was met
        act_with(learner.published())
    pending: FloatArray | None = None
    for rows in checkpoint.read_rows(directory, latest, population, chunk, collector.columns.width):
        if pending is not None:
            learner.insert(pending, known=True)
        pending = rows
    collector.steps = latest.steps - latest.open_steps
    collector.restart(latest.number)
    lines.begin_anew()
    if not latest.open_steps:
        return Resumed(pending, begins_anew=False)
    assert pending is not None
    try:
        _collect_again(parts, directory, latest)
    except Unrepeatable:
        columns, ends = collector.columns, chunk // config.recipe.environments
        pending[:, ends - 1 :: ends, [columns.closed, columns.ended]] = 1
        checkpoint.rewrite_last(directory, latest, pending)
        collector.steps = latest.steps
        collector.restart(latest.number)
        lines.begin_anew()
        return Resumed(pending, begins_anew=True)
    return Resumed(pending, begins_anew=False)


def _collect_again(parts: Parts, directory: RunDirectory, latest: Checkpoint) -> None:
    """Bring the episodes that were open to where they stood, by the actions that were taken in them."""
    config, _, collector, lines, _ = parts
    population, environments = len(config.agents), config.recipe.environments
    opened = replace(latest, segments=latest.segments[-1:])
    chunk, width = config.recipe.chunk, collector.columns.width
    for rows in checkpoint.read_rows(directory, opened, population, chunk, width):
        lines.add(collector.collect_again(rows.reshape(population, environments, -1, width)))
        if collector.steps % config.log_every == 0:
            lines.next_interval()
