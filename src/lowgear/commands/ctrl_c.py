"""Ctrl-C on the command line: whatever is at work, the command ends within seconds, with one line and exit code 130.

Python hears a signal between two of its own instructions, in the main thread. Native code that takes its time, as XLA's
compiler does, keeps it waiting; what it then raises aborts the process where it comes up in an extension module that is
being imported, and is lost in a callback of the garbage collector. So nothing is raised within an import: the command
ends there, and also where Python says that KeyboardInterrupt was lost. Elsewhere it unwinds as usual, and a thread that
the system wakes at once ends the process if that takes too long.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

EXIT_CODE = 130  # 128 and the signal's number, as shells count
PATIENCE_S = 3.0  # that unwinding is given
IMPORTING = "<frozen importlib."  # how the files of Python's own code that imports are named
SHOW_CURSOR = "\x1b[?25h"  # which a progress bar hides

_line = "stopped"
_ending = threading.Lock()


def will_say(line: str) -> None:
    """What is said where a signal ends the command from now on."""
    global _line
    _line = line


def begin() -> None:
    """Listen, unless somebody else does, or nobody should, as in a shell's background."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    sys.unraisablehook = _lost
    signal.signal(signal.SIGINT, _hear)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), name="ctrl-c", daemon=True).start()


def say(line: str) -> None:
    """One line on standard error, also from within a handler, whoever holds Python's own stream just now."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(encoding, "replace"))


def end(code: int = EXIT_CODE) -> NoReturn:
    """Say what was to be said and end the process: no thread is waited for, least of all one that compiles."""
    _ending.acquire()  # for good: whoever comes second waits until the process is gone
    say(f"{SHOW_CURSOR}\n{_line}" if os.isatty(2) else _line)
    os._exit(code)


def _hear(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTING):
            end()
        frame = frame.f_back
    raise KeyboardInterrupt


def _lost(what: "sys.UnraisableHookArgs") -> None:
    """Something was raised where nobody could be told."""
    if what.exc_type is KeyboardInterrupt:
        end()
    sys.__unraisablehook__(what)


def _watch(pipe: int) -> None:
    """In a thread: the bytes in the pipe are the numbers of signals that came."""
    for_others = 0
    while True:
        if os.read(pipe, 1)[0] != signal.SIGINT:
            continue
        if signal.getsignal(signal.SIGINT) is not _hear:
            for_others += 1
            if for_others == 1:  # a run stops at a checkpoint, which may take longer
                continue
        break
    until = time.monotonic() + PATIENCE_S
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if os.read(pipe, 1)[0] == signal.SIGINT:  # once more
            break
    end()
