"""The YAML at the top of a model card, by which the hub finds and compares models."""

from collections.abc import Mapping, Sequence
from typing import Any

FENCE = "---"


def front_matter(data: Mapping[str, Any]) -> str:
    """As YAML between its fences; texts are quoted, whatever they hold."""
    return "\n".join([FENCE, *_lines(data), FENCE, ""])


def _lines(value: Any, indent: str = "") -> list[str]:
    """A mapping or a list in block style, its scalars on their keys' lines."""
    found = []
    entries = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for key, item in entries:
        head = f"{indent}-" if key == "-" else f"{indent}{key}:"
        if isinstance(item, Mapping) and key == "-":
            first, *others = _lines(item, f"{indent}  ")
            found += [f"{head} {first.strip()}", *others]
        elif isinstance(item, Mapping) or (isinstance(item, Sequence) and not isinstance(item, str)):
            found += [head, *_lines(item, f"{indent}  ")]
        else:
            found.append(f"{head} {_scalar(item)}")
    return found


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        return mantissa + ".0" * (bool(exponent) and "." not in mantissa) + exponent + power
    return '"' + "".join(map(_letter, value)) + '"'


def _letter(letter: str) -> str:
    """Plain letters as they are, all others by their number."""
    if letter in '"\\':
        return f"\\{letter}"
    return letter if " " <= letter <= "~" else f"\\U{ord(letter):08x}"
