"""What a population's learners and buffers take, before any of it is asked for."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import LowgearError
from lowgear.learning import replay
from lowgear.learning.method import Method
from lowgear.training import algorithm

SHARE = 0.95  # of the memory that there is
GIB = 2**30


def check(method: Method, agents: int, capacity: int, updates: int) -> None:
    """Refuse a population that can't fit on the device that learns, with so many updates in a round."""
    wanted, there = agents * bytes_of_agent(method, capacity, updates), available()
    if there is not None and wanted > SHARE * there:
        raise LowgearError(
            f"{agents} agent{'s' * (agents > 1)} would need {wanted / GIB:,.1f} GiB for networks, replay and "
            f"batches, of {there / GIB:,.1f} that there are: train fewer at once (--seeds, --variants), narrower gears "
            "(--gears), keep fewer steps of each (--set replay=100000), or sample less at once (--set batch=256, "
            "chunk=64, updates_per_step=1)"
        )


def bytes_of_agent(method: Method, capacity: int, updates: int) -> int:
    """Of one agent's learners, with what Adam keeps, of its buffer, and of the batches of so many updates."""
    environments = method.replay.environments
    seed = jax.ShapeDtypeStruct((1,), jnp.uint32)
    learners = jax.eval_shape(partial(algorithm.init, method=method), seed)
    buffer = jax.eval_shape(partial(replay.init, environments, capacity // environments, method.replay))
    # A round has learners before and after it, and all its batches are sampled at once.
    return 2 * _bytes(learners) + _bytes(buffer) + updates * bytes_of_batches(method)


def bytes_of_batches(method: Method) -> int:
    """Of what all learners of an agent sample for one update: rows, and a gear's noise."""
    width = method.replay.columns.width
    numbers = method.master.batch * width
    numbers += sum(learner.batch * (width + learner.noise_dim) for learner in method.gear_learners)
    return numbers * np.dtype(np.float32).itemsize


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
