"""What TensorBoard shows of a run: one of its runs for each agent, named for what the agent is, with hparams."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowgear.config.run import RunConfig
from lowgear.training.progress import Listener, LogLine

SCORES = ("evaluation/return_mean", "evaluation/large_share", "evaluation/flops_reduction")  # beside the hparams


class TensorBoard(Listener):
    """Writes every number of the log lines as a scalar."""

    def __init__(self, directory: Path, config: RunConfig) -> None:
        from tensorboardX import SummaryWriter

        self._writers = []
        for agent in range(len(config.agents)):
            writer = SummaryWriter(str(directory / run_name(config, agent)))
            self._writers.append(writer)
            with contextlib.suppress(OSError):
                _add_hparams(writer, hparams(config, agent))

    @staticmethod
    def available() -> bool:
        """Whether the `tensorboard` extra is installed."""
        from importlib.util import find_spec

        return find_spec("tensorboardX") is not None

    def on_log(self, lines: list[LogLine]) -> None:
        """Training figures."""
        self._add("train", lines)

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Evaluation figures."""
        self._add("evaluation", lines)

    def close(self) -> None:
        """Flush to disk, as far as it lets us: metrics.jsonl has the same numbers."""
        for writer in self._writers:
            with contextlib.suppress(OSError):
                writer.close()

    def _add(self, group: str, lines: list[LogLine]) -> None:
        for line in lines:
            for name, value in line.items():
                if isinstance(value, float):
                    with contextlib.suppress(OSError):
                        self._writers[line["agent"]].add_scalar(f"{group}/{name}", value, line["steps"])


def run_name(config: RunConfig, agent: int) -> str:
    """For example agent0-asymmetric-seed0-relative2, or agent3-fixed-cost-seed1-cost0.01."""
    own = config.agents[agent]
    name = f"agent{agent}-{own.variant}-seed{own.seed}"
    if own.forced_gear(len(config.gears)) is not None:
        return name
    return f"{name}-{'relative' if own.relative else 'cost'}{own.cost_coefficient:g}"


def hparams(config: RunConfig, agent: int) -> dict[str, Any]:
    """What the agent is, and every setting of its recipe."""
    own = config.agents[agent]
    return {
        "task": config.task,
        "variant": own.variant,
        "seed": own.seed,
        "cost_coefficient": own.cost_coefficient,
        "relative": own.relative,
        "gears": ",".join(map(str, config.gears)),
        "steps": config.steps,
        "gear_discount": own.discount,
        "gear_learning_rate": own.learning_rate,
        **{f"recipe/{name}": value for name, value in _plain(config.to_json()["recipe"])},
    }


def _plain(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings as TensorBoard takes them: numbers, flags and texts."""
    for name, value in settings.items():
        if isinstance(value, list | tuple):
            yield name, ",".join(map(str, value))
        elif value is not None:
            yield name, value if isinstance(value, bool | int | float) else str(value)


def _add_hparams(writer: Any, values: dict[str, Any]) -> None:
    """Into the agent's own run: `SummaryWriter.add_hparams` would make another beside it."""
    from tensorboardX.summary import hparams as summaries

    for summary in summaries(values, dict.fromkeys(SCORES, 0.0)):
        writer.file_writer.add_summary(summary)
