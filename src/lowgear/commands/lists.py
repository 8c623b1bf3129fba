"""Lists as people type them: `0-4`, `0,2,7`, `0.001,0.01`."""

from lowgear import LowgearError

MOST = 100_000  # numbers in a list
DIGITS = 18  # of a whole number


def integers(option: str, text: str) -> list[int]:
    """Whole numbers and ranges, for example "0-4" or "0,2,7"."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_whole(first) or (dash and not _is_whole(last)):
            raise LowgearError(f"{option} {text!r} is not a list of whole numbers; write for example 0-4 or 0,2,7")
        if dash and int(last) < int(first):
            raise LowgearError(f"{option} {text!r}: the range {part.strip()} is empty; write {last}-{first}")
        found += range(int(first), int(last if dash else first) + 1)
        if len(found) > MOST:
            raise LowgearError(f"{option} {text!r} is a list of more than {MOST:,} numbers; write fewer")
    return found


def _is_whole(text: str) -> bool:
    """Whether it is a whole number as keyboards write it: "²" is a digit too."""
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS


def numbers(option: str, text: str) -> list[float]:
    """Numbers, for example "0.001,0.01"."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise LowgearError(f"{option} {text!r} is not a list of numbers; write for example 0.001,0.01") from None


def words(text: str) -> list[str]:
    """Names, for example "asymmetric,large-only"."""
    return [part.strip() for part in text.split(",")]
