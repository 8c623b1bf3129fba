"""A Python process that does what it is told, one thing after another: its Python waits for no other's.

Parent and child speak over a socket. The child ends when its parent does: nobody holds the other end any more.
"""

import contextlib
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from lowgear import LowgearError
from lowgear.envs import watchdog
from lowgear.envs.interrupts import not_for_children

# Its products are too small to share among threads, and the accelerator is its parent's.
VARIABLES = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CLOSE_S = 10.0  # that a child is given to end
Do = Callable[[Any], Any]


class EndedError(LowgearError):
    """A child that is no more."""


class Process:
    """A child that runs `main` of `module`, which begins with `parent`; it inherits the `handles`."""

    def __init__(self, module: str, *handles: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, not_for_children():  # Ctrl-C is for the parent
            inherited = theirs.fileno(), *handles
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"from {module} import main; main()", *map(str, inherited)],
                pass_fds=inherited,
                stdin=subprocess.DEVNULL,
                env=os.environ | VARIABLES | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._connection = Connection(ours.detach())

    def tell(self, message: Any) -> None:
        """What is to be done next."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `answer` tells why
            self._connection.send(message)

    def answer(self) -> Any:
        """What it has come to; raises what went wrong there."""
        try:
            found = self._connection.recv()
        except (EOFError, OSError):
            raise EndedError(f"ended with exit code {self.process.wait()}") from None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self, patience: float = CLOSE_S) -> None:
        """Let it end, and see to it after so many seconds."""
        self._connection.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def parent() -> tuple[Connection, list[int]]:
    """In the child: the connection to its parent, and the handles."""
    connection, *handles = map(int, sys.argv[1:])
    return Connection(connection), handles


def serve(connection: Connection, do: Do, stuck: type[Exception], own: tuple[type[Exception], ...]) -> None:
    """In the child: do what the parent says until it is gone. Errors that are its `own` travel as they are.

    An environment that never returns ends the child, with an error that is `stuck`.
    """

    def end(why: str) -> None:
        with contextlib.suppress(OSError):  # a parent that is gone
            connection.send(stuck(why))
        os._exit(2)

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError), watchdog.stuck(end):
        while True:
            message = connection.recv()
            try:
                found = do(message)
            except own as error:
                connection.send(error)
            except Exception:
                connection.send(RuntimeError(f"in a process of its own:\n{traceback.format_exc()}"))
            else:
                connection.send(found)
