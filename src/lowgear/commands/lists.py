"""Lists as people type them: `0-4`, `0,2,7`, `0.001,0.01`."""

from lowgear import LowgearError


def integers(option: str, text: str) -> list[int]:
    """Whole numbers and ranges, for example "0-4" or "0,2,7"."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise LowgearError(f"{option} {text!r} is not a list of whole numbers; write for example 0-4 or 0,2,7")
        if dash and int(last) < int(first):
            raise LowgearError(f"{option} {text!r}: the range {part.strip()} is empty; write {last}-{first}")
        found += range(int(first), int(last if dash else first) + 1)
    return found


def numbers(option: str, text: str) -> list[float]:
    """Numbers, for example "0.001,0.01"."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise LowgearError(f"{option} {text!r} is not a list of numbers; write for example 0.001,0.01") from None


def words(text: str) -> list[str]:
    """Names, for example "asymmetric,large-only"."""
    return [part.strip() for part in text.split(",")]
