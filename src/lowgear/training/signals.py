"""What Ctrl-C, `kill` and a terminal that goes away mean to a run: it stops at a checkpoint."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Heard:
    """The first signal that came, if one did."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def exit_code(self) -> int:
        """As shells count: 128 and the signal's number."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def stops(
    stop: Callable[[], None], tell: Callable[[], None] = lambda: None, numbers: Sequence[signal.Signals] = SIGNALS
) -> Iterator[Heard]:
    """The first signal calls `stop`, and `tell`, which may print; the next one ends the program as it always did."""
    heard, before = Heard(), dict[signal.Signals, Any]()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        before.clear()

    def hear(number: int, frame: FrameType | None) -> None:
        if heard.number is None:
            heard.number = number
            stop()
            tell()
            return
        usual = before[signal.Signals(number)]
        restore()
        if callable(usual):
            usual(number, frame)
        else:
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            before[number] = signal.signal(number, hear)
    try:
        yield heard
    finally:
        restore()
