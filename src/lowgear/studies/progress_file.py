"""progress.json: what a program is at, for those who watch it from another process."""

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.files import read_json
from lowgear.training.progress import Listener, LogLine, Pace

NAME = "progress.json"
EVERY_S = 1.0
MOST_SCORES = 10_000
LARGEST = 1e300


class ProgramProgress(NamedTuple):
    """Of a program that runs."""

    attempt: str
    steps: int  # of each agent
    rate: float | None  # steps of each agent a second
    phase: str | None  # where it is not learning
    scores: tuple[tuple[int, float], ...]  # steps, and the agents' mean score then


class ProgressFile(Listener):
    """Writes it, every second at most; `sent` is told when it has."""

    def __init__(self, folder: Path, attempt: str, steps: int, sent: Callable[[], None] = lambda: None) -> None:
        self._path, self._sent, self._written = folder / NAME, sent, 0.0
        self._pace = Pace()
        self._state: dict[str, Any] = {"attempt": attempt, "steps": steps, "rate": None, "phase": None, "scores": []}

    def on_phase(self, phase: str | None) -> None:
        """What it is at."""
        self._state["phase"] = phase
        self._pace.restart()
        self._write()

    def on_steps(self, steps: int) -> None:
        """How far it is."""
        now = time.monotonic()
        self._pace.mark(steps, now)
        self._state |= {"steps": steps, "rate": self._pace.rate}
        if now - self._written >= EVERY_S:
            self._write()

    def on_evaluation(self, lines: list[LogLine]) -> None:
        """How its agents score."""
        score = score_of(lines)
        if score is not None:
            self._state["scores"].append([lines[0]["steps"], score])
            self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        partial = self._path.with_name(NAME + ".partial")
        with contextlib.suppress(OSError):  # whoever watches sees less; the program goes on
            partial.write_text(json.dumps(self._state))
            os.replace(partial, self._path)
            self._sent()


def score_of(lines: list[LogLine]) -> float | None:
    """The agents' mean: success rate where a task is judged by it, or return."""
    by_success = all(line.get("success_rate") is not None and line.get("scored_by") != "return" for line in lines)
    found = [float(line["success_rate"] if by_success else line["return_mean"]) for line in lines]
    return sum(found) / len(found) if found else None


def read(folder: Path, attempt: str) -> ProgramProgress | None:
    """What this attempt at a program is at; None where nothing is known of it."""
    path = folder / NAME
    try:
        raw = read_json(path, "file of progress", "delete it")
        found = ProgramProgress(
            attempt=fields.word("attempt", entry(raw, "attempt")),
            steps=fields.whole("steps", entry(raw, "steps"), 0, fields.MAX_COUNT),
            rate=None if raw.get("rate") is None else fields.number("rate", raw["rate"], 0, LARGEST),
            phase=None if raw.get("phase") is None else str(raw["phase"])[:200],
            scores=tuple(map(_score, fields.items("scores", entry(raw, "scores"), 0, MOST_SCORES))),
        )
    except (BadField, LowgearError):
        return None
    return found if found.attempt == attempt else None


def _score(raw: Any) -> tuple[int, float]:
    steps, score = fields.items("a score", raw, 2, 2)
    return fields.whole("steps", steps, 0, fields.MAX_COUNT), fields.number("a score", score, -LARGEST, LARGEST)
