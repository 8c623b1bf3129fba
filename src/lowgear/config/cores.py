"""How many cores this process may keep busy: those it was given, or as many as it was told by `LOWGEAR_CORES`."""

import os

VARIABLE = "LOWGEAR_CORES"


def cores() -> int:
    """One at least."""
    told = os.environ.get(VARIABLE, "")
    if told.isascii() and told.isdecimal() and int(told):
        return int(told)
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
