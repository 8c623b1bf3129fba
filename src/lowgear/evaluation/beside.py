"""Evaluation in a thread of its own, beside whatever the caller does meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import evaluate
from lowgear.evaluation.evaluate import Played
from lowgear.policy.file import Policy


class _UnderWay(NamedTuple):
    policies: list[Policy]
    note: Any
    playing: "Future[Played]"


class Beside:
    """At most one evaluation at a time; the caller's own thread hears of each, in the order they began."""

    def __init__(self, make_env: Callable[[int], BatchEnv], hear: Callable[[list[Policy], Played, Any], None]) -> None:
        self._make_env, self._hear = make_env, hear
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._given_up = threading.Event()
        self._under_way: _UnderWay | None = None

    @property
    def under_way(self) -> bool:
        """Whether one has begun that was not heard of yet."""
        return self._under_way is not None

    def begin(self, policies: list[Policy], episodes: int, master: str, seed: int, note: Any) -> None:
        """Play the policies, after those before; the caller is told the `note` with what they did."""
        self.finish()
        playing = self._thread.submit(
            evaluate.play_policies, policies, self._make_env, episodes, master, seed, given_up=self._given_up.is_set
        )
        self._under_way = _UnderWay(policies, note, playing)

    def poll(self) -> None:
        """Tell of the evaluation under way if it is done."""
        if self._under_way is not None and self._under_way.playing.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the evaluation under way, and tell of it."""
        if self._under_way is not None:
            (policies, note, playing), self._under_way = self._under_way, None
            self._hear(policies, playing.result(), note)

    def close(self) -> None:
        """Give up what is under way, and end the thread."""
        self._given_up.set()
        self._thread.shutdown(cancel_futures=True)
