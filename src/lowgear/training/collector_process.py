"""A group's collector, in this process or in one of its own, whose Python waits for no other's.

Parent and child share memory for weights and rows, and speak over a socket twice in a chunk.
"""

import contextlib
import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from lowgear import LowgearError
from lowgear.envs import process
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.networks import Weights, leaves_of, with_leaves
from lowgear.training import algorithm
from lowgear.training.collect import Behaviour, Collector, FinishedEpisode


class Collected(NamedTuple):
    """What a group's chunk has come to, besides its rows."""

    episodes: list[FinishedEpisode]  # that ended
    bad: dict[int, str]  # as a collector's
    env_seconds: float


class CollectorHere:
    """A group's collector in this process: what is begun is done when its result is asked for."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour, weights: Weights, rows_shape: tuple[int, ...]) -> None:
        self.rows: FloatArray = np.empty(rows_shape, np.float32)
        self._collector, self._begun = Collector(env, behaviour, weights), ("", ())

    def use(self, weights: Weights) -> None:
        """Act with these from the next chunk on."""
        self._collector.weights = weights

    def begin(self, what: str, *arguments: Any) -> None:
        """As `CollectorProcess.begin`."""
        self._begun = what, arguments

    def result(self) -> Collected:
        """Do what was begun."""
        return _do(self._collector, self.rows, *self._begun)

    def close(self) -> None:
        """Free what the environments hold."""
        self._collector.env.close()


class _Setup(NamedTuple):
    """What a child begins with."""

    env: BatchEnv
    behaviour: Behaviour
    weights: Weights
    rows_shape: tuple[int, ...]


class CollectorProcess:
    """A group's collector in a process of its own: `begin` what is to be done, then ask for the `result`."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour, weights: Weights, rows_shape: tuple[int, ...]) -> None:
        with _shared_file(weights, rows_shape) as file:
            self.weights, self.rows = _shared(file, weights, rows_shape)
            self._process = process.Process(__name__, file.fileno())
        self.use(weights)
        self._process.tell(_Setup(env, behaviour, weights, rows_shape))

    def use(self, weights: Weights) -> None:
        """Act with these from the next chunk on; not while it collects."""
        for shared, new in zip(leaves_of(self.weights), leaves_of(weights), strict=True):
            shared[:] = new

    def begin(self, what: str, *arguments: Any) -> None:
        """What every group can do.

        `collect` a chunk into `rows`, the last or not; `collect_again` what is in `rows`; `restart` with a number,
        after so many steps; `retire` some of its agents.
        """
        self._process.tell((what, arguments))

    def result(self) -> Collected:
        """What was begun has come to; raises what went wrong there."""
        try:
            found: Collected = self._process.answer()
        except process.EndedError as error:
            raise LowgearError(
                f"a process that collects {error}: too little memory is the likeliest cause; train fewer agents at once"
            ) from None
        return found

    def close(self) -> None:
        """End the process."""
        self._process.close()


def _shared_file(weights: Weights, rows_shape: Sequence[int]) -> IO[bytes]:
    """Memory that has no name, as a file: room for the weights and the rows."""
    size = 4 * (sum(leaf.size for leaf in leaves_of(weights)) + math.prod(rows_shape))
    in_memory = hasattr(os, "memfd_create")  # Linux
    file: IO[bytes] = os.fdopen(os.memfd_create("lowgear"), "w+b") if in_memory else tempfile.TemporaryFile()  # noqa: SIM115
    file.truncate(size)
    return file


def _shared(file: IO[bytes], weights: Weights, rows_shape: Sequence[int]) -> tuple[Weights, FloatArray]:
    """The weights and the rows in that memory."""
    memory = np.frombuffer(mmap.mmap(file.fileno(), 0), np.float32)
    sizes = [leaf.size for leaf in leaves_of(weights)]
    *parts, rows = np.split(memory, np.cumsum(sizes))
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves_of(weights), strict=True)]
    return with_leaves(weights, shaped), rows.reshape(rows_shape)


def _do(collector: Collector, rows: FloatArray, what: str, arguments: tuple[Any, ...]) -> Collected:
    """What `begin` said."""
    episodes: list[FinishedEpisode] = []
    if what == "collect":
        (last,) = arguments
        episodes = algorithm.collect(collector, rows, last)
    elif what == "collect_again":
        episodes = algorithm.collect_again(collector, rows)
    elif what == "retire":
        collector.retire(*arguments)
    else:
        number, collector.steps = arguments
        collector.restart(number)
    return Collected(episodes, collector.bad, collector.env_seconds)


def main() -> None:
    """The child."""
    connection, (handle,) = process.parent()
    with contextlib.suppress(EOFError), os.fdopen(handle, "r+b") as file:
        setup: _Setup = connection.recv()
        weights, rows = _shared(file, setup.weights, setup.rows_shape)
        collector: Collector | None = None

        def do(message: tuple[str, tuple[Any, ...]]) -> Collected:
            nonlocal collector
            if collector is None:
                collector = Collector(setup.env, setup.behaviour, setup.weights)
            collector.weights = weights
            return _do(collector, rows, *message)

        process.serve(connection, do, LowgearError, own=(LowgearError, algorithm.Unrepeatable))
