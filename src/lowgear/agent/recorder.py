"""Where callbacks of Stable-Baselines3 leave their numbers."""

from typing import Any


class Recorder:
    """Keeps them until the next log line, which they join."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def record(self, key: str, value: Any, exclude: Any = None) -> None:  # noqa: ARG002
        """Keep a number."""
        self._found[key] = value

    def dump(self, step: int = 0) -> None:
        """Nothing: a log line is written when it is due."""

    def take(self) -> dict[str, Any]:
        """What was kept since."""
        found, self._found = self._found, {}
        return found
