"""Ctrl-C while a simulator is imported, or a process is started: who hears it, and who does not."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Where Ctrl-C would raise, it is heard once what is within is done, whatever became of that.

    Extension modules that are being imported lose what is raised in them, or call it an import that failed.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or not usual:
        with not_for_children():
            yield
        return
    heard = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with not_for_children():
            yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if heard:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def not_for_children() -> Iterator[None]:
    """A process that this thread starts within never hears Ctrl-C, from its first moment on.

    A terminal sends it to the whole group, and a Python that has just begun would show its traceback there; glfw, which
    dm_control imports, starts one.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
