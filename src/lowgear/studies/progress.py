"""How a study looks while it goes: one display at a time, of a run or of an evaluation."""

import contextlib
import threading

from rich.console import Console
from rich.live import Live
from rich.progress import Progress

from lowgear.config.run import RunConfig
from lowgear.studies.overview import Overview
from lowgear.studies.overview_table import labels, table
from lowgear.training.progress import Display, Listener

SHOW_EVERY_S = 0.5


class StudyDisplay:
    """Shows what a `RunStore` is at."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._run: Display | None = None
        self._programs: _Programs | None = None
        self._bar: Progress | None = None

    def listeners(self, config: RunConfig, done: int) -> list[Listener]:
        """Shows a run that begins, or goes on."""
        self.close()
        gears = ",".join(map(str, config.gears))
        going = f", going on from {done:,}" if done else ""
        self._console.print(
            f"training {len(config.agents)} agents on {config.task}, gears {gears}{going}", highlight=False
        )
        self._run = Display(config.steps, done, self._console)
        return [self._run]

    def watch(self, overview: Overview) -> None:
        """Shows programs that run elsewhere: a bar for each on a terminal, a line when one begins or ends elsewhere."""
        self._programs = _Programs(overview, self._console)

    def notice(self, text: str) -> None:
        """Something that a person should know now."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """Shows how far an evaluation is, or a student."""
        if self._bar is None:
            self.close()
            self._bar = Progress(console=self._console, transient=True, disable=not self._console.is_terminal)
            self._bar.start()
            self._bar.add_task(what, total=total)
        self._bar.update(self._bar.task_ids[0], description=what, completed=done, total=total)
        if done >= total:
            self.close()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._run is not None:
            self._run.close()
        if self._bar is not None:
            self._bar.stop()
        if self._programs is not None:
            self._programs.close()
        self._run = self._bar = self._programs = None


class _Programs:
    """Follows an overview, in a thread of its own."""

    def __init__(self, overview: Overview, console: Console) -> None:
        self._overview, self._console, self._over = overview, console, threading.Event()
        self._told: dict[str, tuple[str, int]] = {}  # state and losses of each program
        self._live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self._thread = threading.Thread(target=self._follow, name="display", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say what is left to say."""
        self._over.set()
        self._thread.join()
        self._say()

    def _follow(self) -> None:
        with self._live or contextlib.nullcontext():
            while not self._over.wait(SHOW_EVERY_S):
                self._say()
                if self._live is not None:
                    self._live.update(table(self._overview.status), refresh=True)

    def _say(self) -> None:
        programs = list(self._overview.status.programs)
        names = labels(programs)
        for program in programs:
            now = (program.state, program.losses)
            before = self._told.get(program.name, ("planned", 0))
            self._told[program.name] = now
            if now != before and (program.state != "running" or before[0] != "running"):
                what = f"{names[program.name]}, gears {program.gears}, {program.agents} agents"
                begun = f" from {program.done:,} steps" if program.state == "running" and program.done else ""
                why = f": {program.why}" if program.state == "failed" or now[1] > before[1] else ""
                self._console.print(f"{what}: {program.state}{begun}{why}", highlight=False, markup=False)
