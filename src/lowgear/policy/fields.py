"""Values from files, each with a type and a range before anything else reads it.

A value that does not fit raises `BadField`, whose text says which it is, what it is and what it should be, in one line
of bounded length. Whoever reads the file turns that into an error that names the file too.
"""

import math
from collections.abc import Mapping
from typing import Any

LONGEST_TEXT = 200  # letters of a name
MOST_ITEMS = 4096  # of a list
SHOWN = 60  # letters of a bad value that an error repeats
MAX_SEED = 2**31 - 1
MAX_COUNT = 2**63 - 1  # of steps


class BadField(ValueError):  # noqa: N818
    """A value that no file of ours holds."""


def shown(value: Any) -> str:
    """A value as an error repeats it: one line, plain ASCII, cut short; of lists and objects the kind alone."""
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and abs(value) >= 10**SHOWN:
        return "a number of more than 60 digits"
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def reason(error: Exception) -> str:
    """What another library says of a file, as part of an error: one line, plain, cut short."""
    text = " ".join(f"{error}".encode("ascii", "backslashreplace").decode().split())
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return (text if len(text) <= 4 * SHOWN else f"{text[: 4 * SHOWN]}...") or type(error).__name__


def text(name: str, value: Any, longest: int = LONGEST_TEXT) -> str:
    """A name: printable, of one line, not too long; it may be empty."""
    if type(value) is not str or len(value) > longest or not value.isprintable():
        raise BadField(f"{name} is {shown(value)}, not one line of at most {longest} printable letters")
    return value


def word(name: str, value: Any) -> str:
    """A text that says something."""
    if not text(name, value).strip():
        raise BadField(f"{name} is empty")
    return str(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """A text out of a few."""
    if type(value) is not str or value not in choices:
        raise BadField(f"{name} is {shown(value)}, not {' or '.join(choices)}")
    return value


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`; true and 1.0 are none."""
    if type(value) is not int or not low <= value <= high:
        raise BadField(f"{name} is {shown(value)}, not a whole number from {low} to {high}")
    return value


def number(name: str, value: Any, low: float, high: float) -> float:
    """A finite number from `low` to `high`, as a float; a whole one counts, true does not."""
    if type(value) not in (int, float) or not low <= value <= high or not math.isfinite(value):
        raise BadField(f"{name} is {shown(value)}, not a number from {low:g} to {high:g}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """True or false, and nothing that counts as either."""
    if type(value) is not bool:
        raise BadField(f"{name} is {shown(value)}, not true or false")
    return value


def items(name: str, value: Any, least: int = 1, most: int = MOST_ITEMS) -> list[Any]:
    """A list of so many values, which are still to be checked."""
    if not isinstance(value, list | tuple) or not least <= len(value) <= most:
        raise BadField(f"{name} is {shown(value)}, not a list of {least if least == most else f'{least} to {most}'}")
    return list(value)


def entries(name: str, value: Any) -> dict[str, Any]:
    """An object with names, whose values are still to be checked."""
    if type(value) is not dict:
        raise BadField(f"{name} is {shown(value)}, not an object")
    return value


def entry(raw: Mapping[str, Any], key: str) -> Any:
    """What an object has under a name."""
    if key not in raw:
        raise BadField(f"it has no {key}")
    return raw[key]
