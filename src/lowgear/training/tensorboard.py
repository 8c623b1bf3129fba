"""What TensorBoard shows of a run: one of its runs for each agent, named for what the agent is, with hparams."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowgear.config.run import RunConfig
from lowgear.training.progress import Listener, LogLine

FLUSH_EVERY_S = 120.0  # what TensorBoard reads
SCORES = ("evaluation/return_mean", "evaluation/large_share", "evaluation/flops_reduction")  # beside the hparams


class TensorBoard(Listener):
    """Writes every number of the log lines as a scalar, as far as the disk lets it: metrics.jsonl has the same.

    tensorboardX's own writers are left alone: once the disk has refused their thread, whoever adds to them waits for
    ever.
    """

    def __init__(self, directory: Path, config: RunConfig) -> None:
        from tensorboardX.summary import hparams as summaries

        self._flushed = time.perf_counter()
        self._files = []
        for agent in range(len(config.agents)):
            file = _EventFile(directory / run_name(config, agent))
            self._files.append(file)
            # `SummaryWriter.add_hparams` would make another run beside the agent's.
            for summary in summaries(hparams(config, agent), dict.fromkeys(SCORES, 0.0)):
                file.add(summary)

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
        """Flush to disk."""
        for file in self._files:
            file.close()

    def _add(self, group: str, lines: list[LogLine]) -> None:
        from tensorboardX.summary import scalar

        for line in lines:
            for name, value in line.items():
                if isinstance(value, float):
                    self._files[line["agent"]].add(scalar(f"{group}/{name}", value), line["steps"])
        if time.perf_counter() - self._flushed >= FLUSH_EVERY_S:
            self._flushed = time.perf_counter()
            for file in self._files:
                file.flush()


class _EventFile:
    """Events of one agent; where the disk has refused some, the next ones begin another file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._writer: Any = None

    def add(self, summary: Any, steps: int | None = None) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event

        with self._refusable():
            if self._writer is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._writer = EventsWriter(str(self._folder / "events"), f".{self._number}")
                self._number += 1
            self._writer.write_event(Event(wall_time=time.time(), step=steps, summary=summary))

    def flush(self) -> None:
        if self._writer is not None:
            with self._refusable():
                self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            with self._refusable():
                self._writer.close()
            self._writer = None

    @contextlib.contextmanager
    def _refusable(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._writer = None


def run_name(config: RunConfig, agent: int) -> str:
    """For example agent0-asymmetric-seed0-relative2, or agent3-fixed-cost-seed1-cost0.01."""
    own = config.agents[agent]
    name = f"agent{agent}-{own.variant}-seed{own.seed}"
    if own.forced_gear(config.gears) is not None:
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
