"""What a run writes to metrics.jsonl, followed by another process.

A program that was lost goes on from its checkpoint and writes some lines again, so lines are known by kind, agent and
steps.
"""

import json
from pathlib import Path
from typing import Any

from lowgear.policy import fields
from lowgear.policy.fields import entry
from lowgear.training.progress import LogLine
from lowgear.training.trackers.passed import key_of

KINDS = ("train", "evaluation")
MOST_BYTES = 1 << 22  # that are read at once


class Followed:
    """The lines of a file of metrics as they come, each once; its agents are numbered from `first` on."""

    def __init__(self, path: Path, agents: int, first: int = 0) -> None:
        self._path, self._agents, self._first = path, agents, first
        self._steps: dict[str, int] = {}  # up to which lines were passed on, by kind and agent
        self._read = 0  # bytes
        self._last = b""  # of the lines that were read
        self._evaluation: dict[int, LogLine] = {}  # the last one, by agent

    @property
    def evaluation(self) -> list[LogLine]:
        """The last one's lines, of those that were read."""
        return list(self._evaluation.values())

    def lines(self) -> list[LogLine]:
        """Those that are new, as far as the file has whole lines; there may be more, until there are none."""
        found: list[LogLine] = []
        while not found and (data := self._next()):
            for text in data.splitlines():
                line = self._checked(text)
                if line is not None:
                    if line["kind"] == "evaluation":
                        self._note(line)
                    if line["steps"] > self._steps.get(key_of(line), -1):
                        self._steps[key_of(line)] = line["steps"]
                        found.append(line)
        return found

    def _next(self) -> bytes:
        """Whole lines after those that were read; all of them again where the file was cut meanwhile."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read - len(self._last))
                if file.read(len(self._last)) != self._last:
                    self._read, self._last = 0, b""
                    file.seek(0)
                data = file.read(MOST_BYTES)
        except OSError:  # not there yet
            return b""
        data = data[: data.rfind(b"\n") + 1]
        if data:
            self._read += len(data)
            self._last = data.splitlines(keepends=True)[-1]
        return data

    def _note(self, line: LogLine) -> None:
        self._evaluation = {
            agent: other for agent, other in self._evaluation.items() if other["steps"] == line["steps"]
        } | {line["agent"]: line}

    def _checked(self, text: bytes) -> LogLine | None:
        """A line as trackers take it; None where it is none."""
        try:
            line: dict[str, Any] = fields.entries("it", json.loads(text))
            fields.one_of("kind", entry(line, "kind"), KINDS)
            fields.whole("steps", entry(line, "steps"), 0, fields.MAX_COUNT)
            agent = fields.whole("agent", entry(line, "agent"), 0, self._agents - 1)
        except (RecursionError, ValueError):
            return None
        return line | {"agent": agent + self._first}
