"""A group's collector, in this process or in one of its own, whose Python waits for no other's.

Parent and child share memory for weights and rows, and speak over a socket twice in a chunk. The child ends when its
parent does: nobody holds the other end of the socket any more.
"""

import contextlib
import math
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import IO, Any, NamedTuple

import numpy as np

from lowgear import LowgearError
from lowgear.envs import watchdog
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Weights, leaves_of, with_leaves
from lowgear.training import algorithm
from lowgear.training.collect import Behaviour, Collector, FinishedEpisode

CHILD = f"from {__name__} import main; main()"
# Its products are too small to share among threads, and the accelerator is its parent's.
CHILD_VARIABLES = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CLOSE_S = 10.0  # that a child is given to end


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
        ours, theirs = socket.socketpair()
        file = _shared_file(weights, rows_shape)
        self.weights, self.rows = _shared(file, weights, rows_shape)
        with theirs, file:
            handles = theirs.fileno(), file.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", CHILD, *map(str, handles)],
                pass_fds=handles,
                stdin=subprocess.DEVNULL,
                env=os.environ | CHILD_VARIABLES | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.use(weights)
        self._connection = Connection(ours.detach())
        self._send(_Setup(env, behaviour, weights, rows_shape))

    def use(self, weights: Weights) -> None:
        """Act with these from the next chunk on; not while it collects."""
        for shared, new in zip(leaves_of(self.weights), leaves_of(weights), strict=True):
            shared[:] = new

    def begin(self, what: str, *arguments: Any) -> None:
        """What every group can do.

        `collect` a chunk into `rows`, the last or not; `collect_again` what is in `rows`; `restart` with a number,
        after so many steps; `retire` some of its agents.
        """
        self._send((what, arguments))

    def result(self) -> Collected:
        """What was begun has come to; raises what went wrong there."""
        try:
            found: Collected | Exception = self._connection.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            raise LowgearError(
                f"a process that collects ended with exit code {code}: too little memory is the likeliest cause; "
                "train fewer agents at once"
            ) from None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `result` tells why
            self._connection.send(message)


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


def serve(connection: Connection, file: IO[bytes]) -> None:
    """Do what the parent says until it is gone."""
    setup: _Setup = connection.recv()

    def end(why: str) -> None:
        with contextlib.suppress(OSError):  # a parent that is gone
            connection.send(LowgearError(why))
        os._exit(2)

    with watchdog.stuck(end):
        _serve(connection, file, setup)


def _serve(connection: Connection, file: IO[bytes], setup: _Setup) -> None:
    weights, rows = _shared(file, setup.weights, setup.rows_shape)
    collector: Collector | None = None
    while True:
        what, arguments = connection.recv()
        try:
            if collector is None:
                collector = Collector(setup.env, setup.behaviour, setup.weights)
            collector.weights = weights
            found = _do(collector, rows, what, arguments)
        except (LowgearError, algorithm.Unrepeatable) as error:
            connection.send(error)
        except Exception:
            connection.send(RuntimeError(f"in a process that collects:\n{traceback.format_exc()}"))
        else:
            connection.send(found)


def main() -> None:
    """The child: Ctrl-C is its parent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handle, memory = map(int, sys.argv[1:])
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError), os.fdopen(memory, "r+b") as file:
        serve(Connection(handle), file)
