"""One tracker in a thread of its own: a run hands over what it tells and goes on, however slow the tracker is.

A tracker that fails is told of once. What comes later is tried all the same: a disk may have room again, a server may
be back.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lowgear.policy.fields import reason
from lowgear.training.progress import LogLine
from lowgear.training.trackers.passed import Passed
from lowgear.training.trackers.protocol import Ids, TrackedRun, Tracker

MOST_WAITING = 2_000  # calls that a tracker may be behind
END_S = 120.0  # that a run waits at its end for a tracker that gets no further
POLL_S = 0.5
GIVE_UP_S = 5.0  # where it was told to stop at once


class Worker:
    """Calls a tracker's methods one after another."""

    def __init__(
        self,
        name: str,
        tracker: Tracker,
        run: TrackedRun,
        ids: Ids,
        keep: Callable[[Ids], None],
        passed: Passed | None = None,  # None: whatever is told is new
    ) -> None:
        self._name, self._tracker, self._run, self._ids, self._keep = name, tracker, run, ids, keep
        self._passed = passed
        self._kept, self._begun, self._warned = dict(ids), False, False
        self._done = 0  # calls so far
        self._ending: str | None = None  # the status that the run ends with
        self._calls: queue.Queue[tuple[str, tuple[Any, ...]] | None] = queue.Queue(MOST_WAITING)
        self._notices: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name=f"tracker {name}", daemon=True)
        self._thread.start()

    def call(self, method: str, *arguments: Any) -> None:
        """Hand it over."""
        try:
            self._calls.put_nowait((method, arguments))
        except queue.Full:
            self._warn("it is too slow for what the run tells")

    def notices(self) -> list[str]:
        """What a person should hear, since the last time."""
        found = []
        while not self._notices.empty():
            found.append(self._notices.get())
        return found

    def end(self, status: str, at_once: bool = False) -> None:
        """Let it finish what it was handed; it is left behind where it gets no further, or all is to end at once."""
        self._ending, wait_s = status, GIVE_UP_S if at_once else END_S
        with contextlib.suppress(queue.Full):
            self._calls.put_nowait(None)  # wakes it, if it waits
        done, until = self._done, time.monotonic() + wait_s
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(min(wait_s, POLL_S))
            if self._done != done and not at_once:
                done, until = self._done, time.monotonic() + wait_s
        if self._thread.is_alive():
            self._warn(f"it got no further for {wait_s:g} s at the end, and is left behind")

    def _work(self) -> None:
        self._try("begin", ())
        while self._ending is None or not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                self._try(*call)
        self._try("end", (self._ending,))

    def _try(self, method: str, arguments: tuple[Any, ...]) -> None:
        try:
            if not self._begun:
                where = self._tracker.begin(self._run, self._ids)
                self._begun = True
                if where and self._run.trains:
                    self._notices.put(where)
            if method == "log":
                self._log(*arguments)
            elif method != "begin":
                getattr(self._tracker, method)(*arguments)
            if self._ids != self._kept:
                self._keep(self._ids)
                self._kept = dict(self._ids)
        except Exception as error:  # of any library, for any reason: none is worth a run
            self._warn(reason(error))
        self._done += 1

    def _log(self, group: str, lines: Sequence[LogLine]) -> None:
        """What is new of it."""
        if self._passed is None:
            self._tracker.log(group, lines)
        elif lines := self._passed.new(self._name, lines):
            self._tracker.log(group, lines)
            self._passed.note(self._name, lines)

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._notices.put(f"{self._name} misses some of this run ({why}); metrics.jsonl has all, and it goes on")
