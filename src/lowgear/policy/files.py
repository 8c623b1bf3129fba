"""Files that are whole: written in one move, and refused in one line where they are damaged."""

import contextlib
import os
import socket
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError, safe_open

from lowgear import LowgearError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


def read_tensors(path: Path, what: str, remedy: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Metadata and arrays of a safetensors file; one that is missing or damaged is an error that says what to do."""
    if not path.is_file():
        raise LowgearError(f"{path}: no such {what}")
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise LowgearError(f"{path} is not a whole safetensors file ({error}); {remedy}") from None


def hold(path: Path) -> IO[str]:
    """Lock a directory by a file in it until what is returned is closed, or this process ends, however it does.

    One that another process holds is an error that names the process.
    """
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise LowgearError(f"could not write {path}: {error.strerror}; choose another place") from None
    if fcntl is None:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read(200).strip() or "another process"
        file.close()
        raise LowgearError(f"{path.parent} is in use by {holder}: wait until it is done, or stop it") from None
    except OSError:
        return file  # a file system without locks
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content in one move, so that a reader or a crash never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a directory that may not be written to
            partial.unlink(missing_ok=True)
        raise LowgearError(
            f"could not write {path}: {error.strerror}; free some space or choose another place"
        ) from None
