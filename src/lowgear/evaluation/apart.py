"""Evaluation in a process of its own."""

import contextlib
import pickle
from typing import Any

from lowgear import LowgearError
from lowgear.envs import process, watchdog
from lowgear.evaluation import evaluate
from lowgear.evaluation.evaluate import Played


class StuckError(Exception):
    """An environment will never return, and neither will what plays in it."""


class Player:
    """Plays policies in its process, which begins with the first of them."""

    def __init__(self) -> None:
        self._process: process.Process | None = None

    def play(self, *arguments: Any) -> Played:
        """As `evaluate.play_policies`, of which policies may miss."""
        if self._process is None:
            self._process = process.Process(__name__)
        self._process.tell((watchdog.limit_s, arguments))
        found: Played = self._process.answer()
        return found

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.close(patience=0)


def can_travel(*arguments: Any) -> bool:
    """Whether another process can be told these."""
    with contextlib.suppress(Exception):  # what pickle raises depends on what it is given
        pickle.dumps(arguments)
        return True
    return False


def main() -> None:
    """The child."""

    def play(message: Any) -> Played:
        watchdog.limit_s, arguments = message
        policies, make_env, episodes, master, seed = arguments
        return evaluate.play_policies(policies, make_env, episodes, master, seed, may_miss=True)

    connection, _ = process.parent()
    process.serve(connection, play, StuckError, own=(LowgearError,))
