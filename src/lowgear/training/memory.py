"""What a population's learners and buffers take, before any of it is asked for."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from lowgear import LowgearError
from lowgear.learning import replay
from lowgear.learning.method import Method
from lowgear.training import algorithm

SHARE = 0.95  # of the memory that there is
GIB = 2**30


def check(method: Method, agents: int, capacity: int) -> None:
    """Refuse a population that can't fit on the device that learns."""
    wanted, there = agents * bytes_of_agent(method, capacity), available()
    if there is not None and wanted > SHARE * there:
        raise LowgearError(
            f"{agents} agent{'s' * (agents > 1)} would need {wanted / GIB:,.1f} GiB for networks and replay, of "
            f"{there / GIB:,.1f} that there are: train fewer at once (--seeds, --variants), narrower gears (--gears), "
            "or keep fewer steps of each (--set replay=100000)"
        )


def bytes_of_agent(method: Method, capacity: int) -> int:
    """Of one agent's learners, with what Adam keeps, and of its buffer."""
    environments = method.replay.environments
    seed = jax.ShapeDtypeStruct((1,), jnp.uint32)
    learners = jax.eval_shape(partial(algorithm.init, method=method), seed)
    buffer = jax.eval_shape(partial(replay.init, environments, capacity // environments, method.replay))
    return _bytes(learners) + _bytes(buffer)


def available() -> int | None:
    """Bytes of the device that learns: the GPU's, or this machine's, or this container's; None where nobody tells."""
    if jax.default_backend() != "cpu":
        stats = jax.local_devices()[0].memory_stats() or {}
        return stats.get("bytes_limit")
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        text = limit.read_text(encoding="ascii").strip()
    except OSError:
        return found
    return min(found, int(text)) if text.isdecimal() else found


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
