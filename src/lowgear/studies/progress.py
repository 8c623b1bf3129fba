"""How a study looks while it goes: one display at a time, of a run or of an evaluation."""

from rich.console import Console
from rich.progress import Progress

from lowgear.config.run import RunConfig
from lowgear.training.progress import Display, Listener


class StudyDisplay:
    """Shows what a `RunStore` is at."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._run: Display | None = None
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
        self._run = self._bar = None
