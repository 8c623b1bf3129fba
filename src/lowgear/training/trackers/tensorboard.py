"""TensorBoard: a run for each agent, named for what the agent is, with hparams, and one for the population."""

import contextlib
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lowgear.training.progress import LogLine
from lowgear.training.trackers.described import hparams, run_name
from lowgear.training.trackers.protocol import POPULATION, TABLE_COLUMNS, Ids, Rows, TrackedRun, cells, numbers

FOLDER = "tensorboard"  # of the run's directory
SCORES = ("evaluation/return_mean", "evaluation/large_share", "evaluation/flops_reduction")  # beside the hparams
RGBA = 4  # as TensorBoard numbers what a picture's colours are


class TensorBoard:
    """Writes every number of the log lines as a scalar, as far as the disk lets it: metrics.jsonl has the same.

    tensorboardX's own writers are left alone: once the disk has refused their thread, whoever adds to them waits for
    ever.
    """

    def begin(self, run: TrackedRun, ids: Ids) -> str:  # noqa: ARG002
        """One file of events for each agent."""
        from tensorboardX.summary import hparams as summaries

        self._run = run
        self._population = _EventFile(run.path / FOLDER / POPULATION)
        self._agents = [
            _EventFile(run.path / FOLDER / run_name(run.config, agent)) for agent in range(len(run.config.agents))
        ]
        for agent, file in enumerate(self._agents if run.trains else ()):
            # `SummaryWriter.add_hparams` would make another run beside the agent's.
            for summary in summaries(hparams(run.config, agent), dict.fromkeys(SCORES, 0.0)):
                file.add(summary)
        return ""

    def log(self, group: str, lines: Sequence[LogLine]) -> None:
        """Scalars."""
        from tensorboardX.summary import scalar

        for line in lines:
            for name, value in numbers(line).items():
                self._agents[line["agent"]].add(scalar(f"{group}/{name}", value), line["steps"])
        for agent in {line["agent"] for line in lines}:
            self._agents[agent].flush()  # what was told is there, also after a kill

    def table(self, name: str, rows: Rows) -> None:
        """As text, which TensorBoard reads as Markdown."""
        lines = [TABLE_COLUMNS, ("---",) * len(TABLE_COLUMNS), *(map(_cell, row) for row in cells(rows))]
        self._write(self._population, name, "\n".join(f"| {' | '.join(line)} |" for line in lines))

    def figure(self, path: Path) -> None:
        """As an image."""
        from tensorboardX.proto.summary_pb2 import Summary

        data = path.read_bytes()
        width, height = struct.unpack(">II", data[16:24])  # where PNG keeps them
        image = Summary.Image(width=width, height=height, colorspace=RGBA, encoded_image_string=data)
        self._population.add(Summary(value=[Summary.Value(tag=path.stem, image=image)]), self._run.config.steps)

    def policy(self, agent: int, path: Path) -> None:
        """TensorBoard keeps no files: where it is."""
        self._write(self._agents[agent], f"policy/{path.stem}", f"`{path.resolve()}`")

    def end(self, status: str) -> None:  # noqa: ARG002
        """Flush to disk."""
        for file in (self._population, *self._agents):
            file.close()

    def _write(self, file: "_EventFile", tag: str, content: str) -> None:
        from tensorboardX.summary import text

        file.add(text(tag, content), self._run.config.steps)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


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
        """A file that the disk has refused is begun anew; the worker tells of it."""
        try:
            yield
        except OSError:
            self._writer = None
            raise
