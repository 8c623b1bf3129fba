"""The line of an environment's own code at which it raised, or hangs."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any


def file_of(env: Any) -> str | None:
    """Where the class of an environment is written."""
    return getattr(sys.modules.get(type(env).__module__), "__file__", None)


def of_traceback(trace: TracebackType | None, own: str | None) -> str:
    """Where an exception came from: the innermost line of the file `own`, or else of all."""
    return _innermost([(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)], own)


def of_frame(frame: FrameType | None, own: str | None) -> str:
    """Where a thread is."""
    stack = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(frame)] if frame else []
    return _innermost(stack[::-1], own)


def _innermost(places: Sequence[tuple[str, int]], own: str | None) -> str:
    if not places:
        return "an unknown line"
    path, line = next((place for place in reversed(places) if place[0] == own), places[-1])
    with contextlib.suppress(OSError):  # a working directory that was deleted
        path = path.removeprefix(os.getcwd() + os.sep)
    return f"{path}:{line}"
