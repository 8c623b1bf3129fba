"""Brings learners, environments and lines to where a run's last checkpoint left them."""

from dataclasses import replace

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import load
from lowgear.policy.networks import leaves_of
from lowgear.training import checkpoint
from lowgear.training.algorithm import Unrepeatable
from lowgear.training.checkpoint import Checkpoint
from lowgear.training.lines import Lines
from lowgear.training.pipeline import Pipeline
from lowgear.training.stopped import Stopped


def resume(config: RunConfig, directory: RunDirectory, latest: Checkpoint, pipeline: Pipeline, lines: Lines) -> bool:
    """Learners, buffers and episodes as they were, the last chunk pending.

    False where environments did not repeat themselves: episodes that were open are cut short, and begin anew.
    """
    checkpoint.check_updates(directory, latest, config.recipe.updates_per_step)
    _retire_stopped(config, directory, latest, pipeline)
    learner, collector = pipeline.learner, pipeline.collector
    population, chunk = len(config.agents), config.recipe.chunk
    learner.restore(checkpoint.read_state(directory, latest, learner.states()), latest.updates)
    if latest.updates:  # until then agents act as they began, whatever was met
        pipeline.act_with(learner.published())
        _restore_cost_units(directory, pipeline)
    for rows in checkpoint.read_rows(directory, latest, population, chunk, collector.columns.width):
        if pipeline.pending is not None:
            learner.insert(pipeline.pending, known=True)
        pipeline.pending = rows
    collector.steps = latest.steps - latest.open_steps
    collector.restart(latest.number)
    lines.begin_anew()
    if not latest.open_steps:
        return True
    try:
        _collect_again(config, directory, latest, pipeline, lines)
    except Unrepeatable:
        checkpoint.rewrite_last(directory, latest, cut_episodes(config, pipeline, lines, latest.steps, latest.number))
        return False
    return True


def cut_episodes(config: RunConfig, pipeline: Pipeline, lines: Lines, steps: int, number: int) -> FloatArray:
    """Let the open episodes end with the pending chunk, after so many steps, and new ones begin; that chunk."""
    assert pipeline.pending is not None
    each = config.recipe.chunk // config.recipe.environments  # rows of an environment
    pipeline.collector.columns.end(pipeline.pending[:, each - 1 :: each])
    pipeline.collector.steps = steps
    pipeline.collector.restart(number)
    lines.begin_anew()
    return pipeline.pending


def _retire_stopped(config: RunConfig, directory: RunDirectory, latest: Checkpoint, pipeline: Pipeline) -> None:
    """Agents that had stopped by then act as they last did."""
    stopped, collector = pipeline.stopped, pipeline.collector
    for agent, (steps, why) in directory.read_stopped().items():
        if steps <= latest.steps:
            stopped[agent] = Stopped(steps, why)
            kept = leaves_of(load(directory.policy(agent)).weights)
            for mine, last in zip(leaves_of(collector.weights), kept, strict=True):
                mine[agent] = last[0]
    if len(stopped) == len(config.agents):
        raise LowgearError(f"{directory.path} has no agent left: {stopped[0].why}; start a new run")
    collector.retire(stopped)


def _restore_cost_units(directory: RunDirectory, pipeline: Pipeline) -> None:
    """Agents that had stopped keep theirs."""
    for agent in pipeline.stopped:
        unit = load(directory.policy(agent)).header.cost_unit
        if unit is not None and pipeline.cost_units is not None:
            pipeline.cost_units[agent] = unit


def _collect_again(
    config: RunConfig, directory: RunDirectory, latest: Checkpoint, pipeline: Pipeline, lines: Lines
) -> None:
    """Bring the episodes that were open to where they stood, by the actions that were taken in them."""
    collector, population, environments = pipeline.collector, len(config.agents), config.recipe.environments
    opened = replace(latest, segments=latest.segments[-1:])
    chunk, width = config.recipe.chunk, collector.columns.width
    for rows in checkpoint.read_rows(directory, opened, population, chunk, width):
        lines.add(collector.collect_again(rows.reshape(population, environments, -1, width)))
        if collector.steps % config.log_every == 0:
            lines.next_interval()
