"""What a sweep searches, as people write it: `learning_rate=1e-4:1e-2:log`, `batch=64:512`, `batch=64|512`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.config import settings
from lowgear.policy import fields

MOST_CHOICES = 100
EXAMPLE = "write NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A|B, for example --set learning_rate=1e-4:1e-2:log"


class Range(NamedTuple):
    """Numbers between two, whole ones where both are."""

    low: float
    high: float
    log: bool

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers alone."""
        return isinstance(self.low, int) and isinstance(self.high, int)


class Choices(NamedTuple):
    """Some values."""

    values: tuple[Any, ...]


Space = dict[str, Range | Choices]


def parse(assignments: Sequence[str]) -> tuple[Space, dict[str, Any]]:
    """What is searched, and settings that are given one value; each value is checked as a recipe's is."""
    space: Space = {}
    fixed: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise LowgearError(f"--set {assignment!r}: {EXAMPLE}")
        if name in space or name in fixed:
            raise LowgearError(f"--set {name} is there twice: leave one of them out")
        if "|" in text:
            space[name] = _choices(name, text)
        elif ":" in text:
            space[name] = _range(name, text)
        else:
            fixed |= settings.from_assignments([assignment])
    if not space:
        raise LowgearError(f"nothing to search: {EXAMPLE}")
    return space, fixed


def _choices(name: str, text: str) -> Choices:
    values = tuple(_value(name, part) for part in text.split("|"))
    if len(set(values)) < len(values) or len(values) > MOST_CHOICES:
        raise LowgearError(f"--set {name}={text}: write each choice once, {MOST_CHOICES} at most")
    return Choices(values)


def _range(name: str, text: str) -> Range:
    low, high, *more = text.split(":")
    if more not in ([], ["log"]):
        raise LowgearError(f"--set {name}={text}: {EXAMPLE}")
    ends = _value(name, low), _value(name, high)
    if not all(type(end) in (int, float) and math.isfinite(end) for end in ends):
        raise LowgearError(f"--set {name}={text}: its ends are numbers; write choices as A|B")
    found = Range(ends[0], ends[1], more == ["log"])
    if not found.low < found.high or (found.log and found.low <= 0):
        least = ", above 0 for log" if found.log else ""
        raise LowgearError(f"--set {name}={text}: write the lower end first{least}")
    return found


def _value(name: str, text: str) -> Any:
    return settings.from_assignments([f"{name}={text}"])[name]


def shown(value: Any) -> str:
    """A value as --set takes it."""
    if isinstance(value, tuple | list):
        return ",".join(map(shown, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def to_json(space: Space) -> dict[str, Any]:
    """To be held against the one that a sweep began with."""
    return {name: [*map(fields.shown, part)] for name, part in sorted(space.items())}
