"""What a run writes to metrics.jsonl, followed by another process: each line once, whatever is killed.

A program that was lost goes on from its checkpoint and writes some lines again, so lines are known by kind, agent and
steps. What was passed on is kept in followed.json, for the process that follows next.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField, entry
from lowgear.policy.files import WriteError, read_json, write_whole
from lowgear.training.progress import LogLine

NAME = "followed.json"
KINDS = ("train", "evaluation")
MOST_BYTES = 1 << 22  # that are read at once


class Passed:
    """Up to which steps each agent's lines were passed on, by this process or one before it."""

    def __init__(self, path: Path, steps: int = -1) -> None:
        self._path, self._least = path, steps  # steps: lines up to there were passed on in another way
        self._steps: dict[str, int] = {}
        self.ended = False  # whether whoever they are passed on to was told of the run's end
        if path.exists():
            with contextlib.suppress(LowgearError, BadField):  # then all is passed on again
                raw = read_json(path, "list of steps", "delete it")
                steps_of = fields.entries("steps", entry(raw, "steps"))
                self._steps = {key: fields.whole(key, value, 0, fields.MAX_COUNT) for key, value in steps_of.items()}
                self.ended = fields.flag("ended", entry(raw, "ended"))

    def take(self, line: LogLine) -> bool:
        """Whether a line is new; from now on it is not."""
        key = f"{line['kind']} {line['agent']}"
        if line["steps"] <= self._steps.get(key, self._least):
            return False
        self._steps[key] = line["steps"]
        return True

    def keep(self) -> None:
        """For the next process; where it cannot be written, that one passes some lines on again."""
        with contextlib.suppress(WriteError):
            write_whole(self._path, json.dumps({"ended": self.ended, "steps": self._steps}).encode())


class Followed:
    """The lines of a file of metrics as they come; its agents are numbered from `first` on."""

    def __init__(self, path: Path, passed: Passed, agents: int, first: int = 0) -> None:
        self._path, self._passed, self._agents, self._first = path, passed, agents, first
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
                    if self._passed.take(line):
                        found.append(line)
        if found:
            self._passed.keep()
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
