"""Lowgear: reinforcement-learning controllers that spend less compute at deployment."""

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from lowgear.agent import Agent
    from lowgear.agent.callbacks import Callback, Checkpoint, Evaluation, StopOnReturn, Tracking
    from lowgear.agent.functions import evaluate, export, import_policy, report, tune

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "Callback",
    "Checkpoint",
    "Evaluation",
    "LowgearError",
    "StopOnReturn",
    "Tracking",
    "__version__",
    "evaluate",
    "export",
    "import_policy",
    "load",
    "report",
    "tune",
]
CALLBACKS = ("Callback", "Checkpoint", "Evaluation", "StopOnReturn", "Tracking")


class LowgearError(Exception):
    """A bad value, with what was wrong and what to do, in one line.

    The command line prints it without a traceback and exits with code 2.
    """


def load(path: "str | Path", env: Any = None, *, agent: int = 0, trust: bool = False) -> "Agent":
    """A trained controller from its file, or from a run directory an agent that can learn on."""
    from lowgear.agent import Agent

    return Agent.load(path, env, agent=agent, trust=trust)


def __getattr__(name: str) -> Any:
    # The learner's libraries take seconds to import; `lowgear.policy` and `lowgear --help` do without them.
    if name == "Agent":
        from lowgear.agent import Agent

        return Agent
    if name in CALLBACKS:
        from lowgear.agent import callbacks

        return getattr(callbacks, name)
    if name in ("evaluate", "export", "import_policy", "report", "tune"):
        from lowgear.agent import functions

        return getattr(functions, name)
    raise AttributeError(f"module 'lowgear' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class CallableRoom(ModuleType):
    """A package of the name of a function: `lowgear.export(...)` calls that function, whichever was imported first."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it."""
        from lowgear.agent import functions

        return getattr(functions, self.__name__.rpartition(".")[2])(*arguments, **keywords)
