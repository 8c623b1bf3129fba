"""How a run looks while it goes: a live bar on a terminal, plain lines elsewhere, TensorBoard where it is installed."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LogLine = dict[str, Any]  # of metrics.jsonl
PLAIN_EVERY_S = 10.0
FLUSH_EVERY_S = 120.0  # what TensorBoard reads


class Listener:
    """Hears how a run goes: a progress display, a TensorBoard writer, a person's callback. This one does nothing."""

    def on_log(self, lines: list[LogLine]) -> None:
        """One line for each agent: its training so far."""

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """One line for each agent: how its controller scored."""

    def on_notice(self, text: str) -> None:
        """Something that a person should know now."""

    def on_steps(self, steps: int) -> bool | None:  # noqa: ARG002
        """After each chunk; False ends the run early."""
        return None


class Display(Listener):
    """Shows steps, speed, return, share of the large gear and the time left; means over the population."""

    def __init__(self, total: int, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._total, self._first = total, done
        self._began = self._shown = time.perf_counter()
        self._status = "starting"
        self._bar: Progress | None = None
        if self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=self.console,
            )
            self._task = self._bar.add_task(self._status, total=total, completed=done)
            self._bar.start()

    def on_log(self, lines: list[LogLine]) -> None:
        """Take up the agents' latest figures."""
        self._status = describe(lines)
        if self._bar is None and time.perf_counter() - self._shown >= PLAIN_EVERY_S:
            self._shown = time.perf_counter()
            steps = lines[0]["steps"]
            pace = (steps - self._first) / (time.perf_counter() - self._began)
            left = (self._total - steps) / max(pace, 1e-9)
            self.console.print(f"{steps}/{self._total} steps, {self._status}, {left:.0f} s left", highlight=False)

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Say how the controllers scored."""
        returns = sum(line["return_mean"] for line in lines) / len(lines)
        shares = sum(line["large_share"] for line in lines) / len(lines)
        rates = [line["success_rate"] for line in lines if line["success_rate"] is not None]
        success = f", success {sum(rates) / len(rates):.0%}" if rates else ""
        self.console.print(
            f"evaluated at {lines[0]['steps']} steps: return {returns:.1f}{success}, large {shares:.0%}",
            highlight=False,
        )

    def on_notice(self, text: str) -> None:
        """Say it, on one line."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def on_steps(self, steps: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=steps, description=self._status)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()


def describe(lines: list[LogLine]) -> str:
    """The population in a few words."""
    returns = [line["return"] for line in lines if line["return"] is not None]
    shares = [line["large_share"] for line in lines if line["large_share"] is not None]
    shown = (
        f"return {sum(returns) / len(returns):.1f}, large {sum(shares) / len(shares):.0%}" if returns else "return -"
    )
    rate = lines[0]["steps_per_second"] * len(lines)
    return f"{rate:.0f} agent-steps/s, {shown}"


class TensorBoard(Listener):
    """Writes every number of the log lines as a scalar, one run for each agent, as far as the disk lets it.

    metrics.jsonl has the same numbers. tensorboardX's own writers are left alone: once the disk has refused their
    thread, whoever adds to them waits for ever.
    """

    def __init__(self, directory: Path, agents: int) -> None:
        self._files = [_EventFile(directory / f"agent{agent}") for agent in range(agents)]
        self._flushed = time.perf_counter()

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
        for line in lines:
            for name, value in line.items():
                if isinstance(value, float):
                    self._files[line["agent"]].add(f"{group}/{name}", value, line["steps"])
        if time.perf_counter() - self._flushed >= FLUSH_EVERY_S:
            self._flushed = time.perf_counter()
            for file in self._files:
                file.flush()


class _EventFile:
    """Events of one agent; where the disk has refused some, the next ones begin another file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._writer: Any = None

    def add(self, name: str, value: float, steps: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import scalar

        with self._refusable():
            if self._writer is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._writer, self._number = (
                    EventsWriter(str(self._folder / "events"), f".{self._number}"),
                    self._number + 1,
                )
            self._writer.write_event(Event(wall_time=time.time(), step=steps, summary=scalar(name, value)))

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
