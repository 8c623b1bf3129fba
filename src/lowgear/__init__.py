"""Lowgear: reinforcement-learning controllers that spend less compute at deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowgear.agent import Agent

__version__ = "0.1.0"
__all__ = ["Agent", "LowgearError", "__version__", "load"]


class LowgearError(Exception):
    """A bad value, with what was wrong and what to do, in one line.

    The command line prints it without a traceback and exits with code 2.
    """


def load(path: str | Path) -> "Agent":
    """A trained controller from its file."""
    from lowgear.agent import Agent

    return Agent.load(path)


def __getattr__(name: str) -> Any:
    # The learner's libraries take seconds to import; `lowgear.policy` and `lowgear --help` do without them.
    if name == "Agent":
        from lowgear.agent import Agent

        return Agent
    raise AttributeError(f"module 'lowgear' has no attribute {name!r}")
