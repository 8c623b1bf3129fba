"""Evaluation in a thread of its own, or a process, beside whatever the caller does meanwhile."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, NamedTuple

from lowgear.envs import watchdog
from lowgear.envs.process import EndedError
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation import evaluate
from lowgear.evaluation.apart import Player, StuckError, can_travel
from lowgear.evaluation.evaluate import Played
from lowgear.policy.file import Policy


class _UnderWay(NamedTuple):
    policies: list[Policy]
    note: Any
    playing: "Future[Played]"
    thread: threading.Thread


class Beside:
    """At most one evaluation at a time; the caller's own thread hears of each, in the order they began.

    One that is stuck in an environment, or whose process is killed, is lost, which the caller hears too, and no other
    begins; the thread of a stuck one is left behind. With `apart` it plays in a process, where it takes no time of this
    one's Python, if `make_env` can travel there.
    """

    def __init__(
        self,
        make_env: Callable[[int], BatchEnv],
        hear: Callable[[list[Policy], Played, Any], None],
        lose: Callable[[Any, str], None],
        apart: bool = False,
    ) -> None:
        self._make_env, self._hear, self._lose = make_env, hear, lose
        self._player = Player() if apart and can_travel(make_env) else None
        self._given_up = threading.Event()
        self._under_way: _UnderWay | None = None

    @property
    def under_way(self) -> bool:
        """Whether one has begun that was not heard of yet."""
        return self._under_way is not None

    def begin(self, policies: list[Policy], episodes: int, master: str, seed: int, note: Any) -> None:
        """Play the policies, after those before; the caller is told the `note` with what they did."""
        self.finish()
        if self._given_up.is_set():
            return
        playing: Future[Played] = Future()
        thread = threading.Thread(
            target=self._play, args=(playing, policies, episodes, master, seed), name="evaluation", daemon=True
        )
        thread.start()
        self._under_way = _UnderWay(policies, note, playing, thread)

    def poll(self) -> None:
        """Tell of the evaluation under way if it is done."""
        if self._under_way is not None and self._under_way.playing.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the evaluation under way, and tell of it."""
        if self._under_way is not None:
            (policies, note, playing, _), self._under_way = self._under_way, None
            try:
                played = playing.result()
            except StuckError as error:
                self._given_up.set()
                self._lose(note, str(error))
            except EndedError as error:
                self._given_up.set()
                self._lose(note, f"the process that plays it {error}; too little memory is the likeliest cause")
            else:
                self._hear(policies, played, note)

    def close(self) -> None:
        """Give up what is under way, and end the thread unless it is stuck."""
        self._given_up.set()
        if self._player is not None:
            self._player.close()
        if self._under_way is not None and not isinstance(self._under_way.playing.exception(), StuckError):
            self._under_way.thread.join()

    def _play(self, playing: "Future[Played]", policies: list[Policy], episodes: int, master: str, seed: int) -> None:
        def lose(why: str) -> None:
            with contextlib.suppress(InvalidStateError):  # it has just returned
                playing.set_exception(StuckError(why))

        with contextlib.suppress(InvalidStateError), watchdog.stuck(lose):  # it was stuck, and returned long after
            try:
                arguments = policies, self._make_env, episodes, master, seed
                if self._player is not None:
                    found = self._player.play(*arguments)
                else:
                    found = evaluate.play_policies(*arguments, given_up=self._given_up.is_set, may_miss=True)
            except BaseException as error:
                playing.set_exception(error)
            else:
                playing.set_result(found)
