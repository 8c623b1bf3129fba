"""How a run looks while it goes: a live bar on a terminal, plain lines elsewhere."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from lowgear.evaluation.numbers import duration, score

LogLine = dict[str, Any]  # of metrics.jsonl
NO_EPISODE = "no episode has ended yet"
PLAIN_EVERY_S = 10.0
RECENT_S = 30.0  # over which the rate is taken
BAR_WIDTH = 24
STARTING = "starting: making environments and networks"  # the phase before a run


class Listener:
    """Hears how a run goes: a progress display, a TensorBoard writer, a person's callback. This one does nothing."""

    def on_log(self, lines: list[LogLine]) -> None:
        """One line for each agent: its training so far."""

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """One line for each agent: how its controller scored."""

    def on_notice(self, text: str) -> None:
        """Something that a person should know now."""

    def on_phase(self, phase: str | None) -> None:
        """What the run is at, where it is not at learning."""

    def on_checkpoint(self) -> None:
        """A checkpoint is on disk, and nothing is written while this is heard."""

    def on_steps(self, steps: int) -> bool | None:  # noqa: ARG002
        """After each chunk; False ends the run early."""
        return None


class Listeners(Listener):
    """All who hear of a run, as one."""

    def __init__(self) -> None:
        self.all: list[Listener] = []

    def on_log(self, lines: list[LogLine]) -> None:
        """Each agent's training so far."""
        for listener in self.all:
            listener.on_log(lines)

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """How each controller scored."""
        for listener in self.all:
            listener.on_evaluation(lines)

    def on_notice(self, text: str) -> None:
        """What a person should know now."""
        for listener in self.all:
            listener.on_notice(text)

    def on_phase(self, phase: str | None) -> None:
        """What the run is at, or that it learns."""
        for listener in self.all:
            listener.on_phase(phase)

    def on_checkpoint(self) -> None:
        """A checkpoint is on disk."""
        for listener in self.all:
            listener.on_checkpoint()

    def on_steps(self, steps: int) -> bool:
        """Whether the run goes on; whoever ends it is the last to hear."""
        return not any(listener.on_steps(steps) is False for listener in self.all)


class Pace:
    """Steps a second of late."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def mark(self, steps: int, now: float) -> None:
        """So many steps were done by now."""
        self._marks.append((now, steps))
        while len(self._marks) > 2 and now - self._marks[1][0] >= RECENT_S:
            self._marks.popleft()

    def restart(self) -> None:
        """Forget what was: it says nothing of what comes."""
        self._marks.clear()

    @property
    def rate(self) -> float | None:
        """None until there is something to measure."""
        if len(self._marks) < 2 or self._marks[-1][0] <= self._marks[0][0]:
            return None
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began)


class Display(Listener):
    """Shows steps, the recent rate, the time left, and for each kind of agent its return and share of the large gear.

    What comes before learning is named: starting, random steps, compiling. Its rate is not shown.
    """

    def __init__(self, total: int, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._total, self._done, self._agents = total, done, 1
        self._phase: str | None = "starting"
        self._phase_began = time.perf_counter()
        self._shown = -PLAIN_EVERY_S  # when the last plain line was printed
        self._scores = ""
        self._pace = Pace()
        self._bar: _Bar | None = None
        if self.console.is_terminal:
            self._bar = _Bar(self, self.console)
            self._task = self._bar.add_task("", total=total, completed=done)
            self._bar.start()

    def on_log(self, lines: list[LogLine]) -> None:
        """Take up the agents' latest figures."""
        self._agents, self._done = len(lines), lines[0]["steps"]
        scores = describe(lines)
        self._scores = self._scores or scores if scores == NO_EPISODE else scores
        now = time.perf_counter()
        if self._bar is None and self._phase is None and now - self._shown >= PLAIN_EVERY_S:
            self._shown = now
            self._print(f"{self._done:,}/{self._total:,} steps, {self.status}")

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """Say how the controllers scored."""
        self._print(f"evaluated at {lines[0]['steps']:,} steps: {describe(lines)}")

    def on_notice(self, text: str) -> None:
        """Say it, on one line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def on_phase(self, phase: str | None) -> None:
        """Say what it is at, until it learns."""
        self._phase, self._phase_began = phase, time.perf_counter()
        self._pace.restart()
        self._pace.mark(self._done, self._phase_began)
        if self._bar is None and phase is not None:
            self._print(phase)

    def on_steps(self, steps: int) -> None:
        """Move the bar."""
        self._done = steps
        self._pace.mark(steps, time.perf_counter())
        if self._bar is not None:
            self._bar.update(self._task, completed=steps)

    @property
    def status(self) -> str:
        """What the run is at, in a line."""
        if self._phase is not None:
            return f"{self._phase}, {duration(time.perf_counter() - self._phase_began)} so far"
        parts = [self._scores] if self._scores else []
        rate = self._pace.rate
        if rate:
            parts += [
                f"{rate * self._agents:,.0f} agent-steps/s",
                f"{duration((self._total - self._done) / rate)} left",
            ]
        return ", ".join(parts) or "learning"

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=self._bar is None)


class _Bar(Progress):
    """A bar, and under it a line that is put together anew each time it is drawn."""

    def __init__(self, display: Display, console: Console) -> None:
        self._display = display
        width = max(8, min(BAR_WIDTH, console.width - 30))
        super().__init__(BarColumn(bar_width=width), MofNCompleteColumn(), TextColumn("steps"), console=console)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar and the line."""
        yield self.make_tasks_table(self.tasks)
        yield Text(self._display.status)


def describe(lines: list[LogLine]) -> str:
    """Each kind of agent in a few words: mean score, and the share of the large gear where a master picks."""
    kinds: dict[str, list[LogLine]] = {}
    for line in lines:
        if _score(line) is not None and "stopped" not in line:
            kinds.setdefault(_kind(line, lines), []).append(line)
    if not kinds:
        return NO_EPISODE
    return "; ".join(f"{kind} {_scores(own)}" for kind, own in kinds.items())


def _kind(line: LogLine, lines: list[LogLine]) -> str:
    """The variant, with its coefficient where the variant has several."""
    several = {_coefficient(other) for other in lines if other["variant"] == line["variant"]}
    if len(several) == 1 and None not in several:
        return str(line["variant"])
    return f"{line['variant']} λ {_coefficient(line):.3g}"


def _coefficient(line: LogLine) -> float:
    """As it was asked for: in rewards each seed has found its own."""
    relative: float | None = line["relative_coefficient"]
    return float(line["cost_coefficient"]) if relative is None else relative


def _scores(lines: list[LogLine]) -> str:
    """Of agents of one kind: what they are judged by first, and the success rate where it is told besides."""
    rates = [rate for line in lines if (rate := _success(line)) is not None]
    shown = [f"success {_mean(rates):.0%}"] if rates else []
    if not rates or lines[0].get("scored_by") == "return":
        shown = [f"return {score(_mean([_score(line) for line in lines]))}", *shown]
    if lines[0]["variant"] in ("small-only", "large-only"):
        return " and ".join(shown)
    return f"{' and '.join(shown)} with {_mean([line['large_share'] for line in lines]):.0%} large"


def _score(line: LogLine) -> float | None:
    found: float | None = line["return_mean"] if line["kind"] == "evaluation" else line["return"]
    return found


def _success(line: LogLine) -> float | None:
    found: float | None = line["success_rate"] if line["kind"] == "evaluation" else line["success"]
    return found


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
