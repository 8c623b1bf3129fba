"""Watches over calls into environments: one that does not return is told with the line at which it hangs, and ended.

A thread looks at every call under way. One that takes too long is interrupted by an exception within it: Python code,
and in the main thread what waits in the system too. What can't be interrupted, native code that never returns, is
`stuck`: whoever called it is told from the watching thread. The time that a process was suspended does not count.
"""

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

DEFAULT_S = 300.0
LOOKS = 4  # at a call before it has taken too long, at the least
LOOK_EVERY_S = 1.0  # at the most
GRACE_S = 5.0  # that an interrupted call is given to end, at the most
SIGNAL: Any = getattr(signal, "SIGURG", None)  # which means nothing to a program that does not listen for it
Describe = Callable[[FrameType | None], str]  # what hangs, given the innermost frame of its thread
OnStuck = Callable[[str], None]
Result = TypeVar("Result")

limit_s = DEFAULT_S  # of environments that are made by their name; 0: none


class Hung(BaseException):
    """Raised within a call that takes too long; no `except Exception` of an environment holds it up."""


class HangError(Exception):
    """A call that was interrupted; says what hung."""


def call(limit: float, describe: Describe, function: Callable[..., Result], *arguments: Any) -> Result:
    """What the function returns; raises HangError where it was interrupted after `limit` seconds. 0: no limit."""
    if not limit:
        return function(*arguments)
    watched = _mine()
    try:
        return watched.run(limit, describe, function, *arguments)
    except Hung:
        watched.running = None
        raise HangError(watched.why) from None


@contextmanager
def stuck(tell: OnStuck) -> Iterator[None]:
    """Calls of this thread that can't be interrupted are told to `tell`, in the watching thread, once each."""
    watched = _mine()
    before, watched.on_stuck = watched.on_stuck, tell
    try:
        yield
    finally:
        watched.on_stuck = before


def on_stuck() -> OnStuck:
    """Who is told of calls of this thread now."""
    return _mine().on_stuck


class _Watched:
    """One thread's calls into environments, one at a time."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.running: Describe | None = None
        self.number, self.limit = 0, 0.0  # of the call under way
        self.why = ""  # of the last one that was interrupted
        self.on_stuck: OnStuck = _say
        self._by_signal = _listens()
        self._expired = self._sent = False
        self._lock = threading.Lock()
        # What the watching thread knows.
        self._seen, self._elapsed, self._told = -1, 0.0, False

    def run(self, limit: float, describe: Describe, function: Callable[..., Result], *arguments: Any) -> Result:
        self._expired = self._sent = came = False
        self.number += 1
        self.limit, self.running = limit, describe
        try:
            return function(*arguments)
        except Hung:
            came = True
            raise
        finally:
            self.running = None
            if self._expired and not came:
                self._settle()

    def look(self, passed: float) -> None:
        """From the watching thread: `passed` seconds after the last look."""
        describe, number = self.running, self.number
        if describe is None or number != self._seen:
            self._seen, self._elapsed, self._told = number, 0.0, False
            return
        self._elapsed += passed
        if self._elapsed >= self.limit and not self._expired:
            self._interrupt(describe, number)
        elif self._expired and not self._told and self._elapsed >= self.limit + min(GRACE_S, self.limit):
            self._told = True
            self.on_stuck(self.why)

    def _interrupt(self, describe: Describe, number: int) -> None:
        ident = self.thread.ident
        assert ident is not None
        self.why = describe(sys._current_frames().get(ident))
        with self._lock:
            self._expired = True  # before the call is looked at once more: see `_settle`
            if self.running is None or self.number != number:
                self._expired = False
            elif self._by_signal:
                signal.pthread_kill(ident, SIGNAL)
            else:
                self._sent = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Hung))

    def _settle(self) -> None:
        """A call that returned while it was interrupted: what was raised in this thread may not come later."""
        try:
            with self._lock:
                sent = self._sent
            while sent:
                time.sleep(0.001)
        except Hung:
            pass

    def hear(self) -> None:
        """The signal came, in this thread: it is for the call under way or for nobody."""
        if self._expired and self.running is not None:
            raise Hung


_own = threading.local()
_all: list[_Watched] = []
_watching: list[threading.Thread] = []  # none, or one
_start = threading.Lock()


def _mine() -> _Watched:
    """The calling thread's; the first one starts the thread that watches."""
    watched: _Watched | None = getattr(_own, "watched", None)
    if watched is None:
        watched = _own.watched = _Watched()
        with _start:
            _all.append(watched)
            if not _watching:
                _watching.append(threading.Thread(target=_watch, name="watchdog", daemon=True))
                _watching[0].start()
    return watched


def _watch() -> None:
    last = time.monotonic()
    while True:
        limits = [watched.limit for watched in _all if watched.limit]
        pause = min([LOOK_EVERY_S, *(limit / LOOKS for limit in limits)])
        time.sleep(pause)
        now = time.monotonic()
        passed, last = min(now - last, 2 * pause), now
        for watched in list(_all):
            if not watched.thread.is_alive():
                _all.remove(watched)
                continue
            try:
                watched.look(passed)
            except Exception:  # of whoever is told: the others are watched on
                sys.excepthook(*sys.exc_info())


def _listens() -> bool:
    """Whether this thread can be interrupted by a signal: the main one, unless the signal is somebody else's."""
    if SIGNAL is None or threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(SIGNAL, lambda *_: _mine().hear())
        return True
    return False


def _say(why: str) -> None:
    print(f"lowgear: {why}; it can't be interrupted, so this waits on", file=sys.stderr, flush=True)
