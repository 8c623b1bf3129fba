"""A study's status on a terminal: a bar for each program, and a line on the whole."""

import time
from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lowgear.evaluation.numbers import duration
from lowgear.studies.overview import STATES, ProgramStatus, StudyStatus

BAR_WIDTH = 12


def table(status: StudyStatus) -> RenderableType:
    """Everything that is known of it."""
    shown = Table("program", "gears", "agents", "", "steps", "state", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names = labels(status.programs)
    for program in status.programs:
        done = program.steps if program.state == "done" else program.done
        shown.add_row(
            names[program.name],
            program.gears,
            str(program.agents),
            ProgressBar(total=max(1, program.steps), completed=done, width=BAR_WIDTH),
            f"{done:,}/{program.steps:,}",
            describe(program),
        )
    lines = [Text(line) for line in summary(status)]
    return Group(shown, *lines) if status.programs else Group(*lines)


def labels(programs: Sequence[ProgramStatus]) -> dict[str, str]:
    """What each is called, by the name of its directory: its task, where that tells it from the others."""
    alike = Counter((program.task, program.gears) for program in programs)
    return {
        program.name: program.task if alike[program.task, program.gears] == 1 else program.name for program in programs
    }


def describe(program: ProgramStatus) -> str:
    """Its state in a few words."""
    words = program.state
    if program.state == "running" and program.phase:
        words = program.phase
    elif program.state == "running" and program.rate:
        words = f"{program.rate * program.agents:,.0f} agent-steps/s"
        if program.left_s is not None:
            words += f", {duration(program.left_s)} left"
    if program.losses:
        words += f", started again {program.losses}×"
    return f"{words}: {program.why}" if program.state == "failed" else words


def summary(status: StudyStatus) -> list[str]:
    """The whole: how many programs are where, the time left, whether anyone works on it."""
    counts = Counter(program.state for program in status.programs)
    parts = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    first = f"{status.study}: {parts or 'no programs yet'}"
    if status.state != "going":
        return [f"{first}; {status.state} {_ago(status.updated)}"]
    if status.dead:
        return [
            first,
            f"process {status.pid} on {status.host} is gone, last heard of {_ago(status.updated)}: the same command "
            "goes on from the last checkpoints",
        ]
    left = status.left_s
    if left:
        first += f", about {duration(left)} of training left"
    return [first, *([status.doing] if status.doing else [])]


def _ago(then: float) -> str:
    return f"{duration(max(0.0, time.time() - then))} ago"
