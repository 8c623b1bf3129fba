"""Lowgear: reinforcement-learning controllers that spend less compute at deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowgear.errors import LowgearError

if TYPE_CHECKING:
    from lowgear.agent import Agent

__version__ = "0.1.0"
__all__ = ["Agent", "LowgearError", "__version__", "load"]


def load(path: str | Path) -> "Agent":
    """A trained controller from its file."""
    from lowgear.agent import Agent

    return Agent.load(path)


def __getattr__(name: str) -> Any:
    # The learner's libraries take seconds to import; `lowgear.runtime` and `lowgear --help` do without them.
    if name == "Agent":
        from lowgear.agent import Agent

        return Agent
    raise AttributeError(f"module 'lowgear' has no attribute {name!r}")
