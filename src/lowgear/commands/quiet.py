"""Keeps what other libraries warn of out of what a person reads: errors of theirs still come through."""

import logging
import os
import sys
import warnings

LOUD = ("gymnasium", "gym", "absl", "jax", "jax._src.xla_bridge", "matplotlib", "matplotlib.font_manager", "OpenGL")


def keep_out_warnings() -> None:
    """Warnings and notes of libraries are silenced, here and in processes started from here.

    `python -W default -m lowgear`, or PYTHONWARNINGS, shows them.
    """
    if sys.warnoptions:
        return
    # Not a filter: libraries add filters of their own, which would stand before it.
    warnings.showwarning = lambda *_, **__: None
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # of XLA's own log: errors alone
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.ERROR)
