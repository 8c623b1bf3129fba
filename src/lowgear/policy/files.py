"""Files that are whole: written in one move, and refused in one line where they are damaged."""

import contextlib
import errno
import json
import os
import socket
from pathlib import Path
from typing import IO, Any

from lowgear import LowgearError
from lowgear.policy import fields

MOST_JSON = 1 << 22  # bytes of a file that describes a run or a checkpoint

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


class WriteError(LowgearError):
    """The disk is full, or may not be written to: what a run can wait for."""


class InUseError(LowgearError):
    """Another process holds the directory."""


def read_json(path: Path, what: str, remedy: str, most_bytes: int = MOST_JSON) -> dict[str, Any]:
    """The object in a JSON file, whose values are still to be checked; anything else is an error with the remedy."""
    try:
        return fields.entries("it", json.loads(read_text(path, what, remedy, most_bytes)))
    except (RecursionError, ValueError) as error:
        raise LowgearError(f"{path} is damaged, it is no {what} ({fields.reason(error)}): {remedy}") from None


def read_text(path: Path, what: str, remedy: str, most_bytes: int = MOST_JSON) -> str:
    """The text of a file that is not too large."""
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise LowgearError(f"{path} has more than the {most_bytes:,} bytes that a {what} may have: {remedy}")
        return data.decode("utf-8")
    except OSError as error:
        raise LowgearError(f"{path} cannot be read ({error.strerror}): {remedy}") from None
    except UnicodeDecodeError as error:
        raise LowgearError(f"{path} is damaged, it is no {what} ({fields.reason(error)}): {remedy}") from None


def hold(path: Path) -> IO[str]:
    """Lock a directory by a file in it until what is returned is closed, or this process ends, however it does.

    One that another process holds is an error that names the process.
    """
    try:
        file = open_own(path, "a+", encoding="utf-8")
    except OSError as error:
        raise LowgearError(f"could not write {path}: {error.strerror}; choose another place") from None
    if fcntl is None:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # some systems say EACCES of a lock that another holds
        file.seek(0)
        holder = file.read(200).strip() or "another process"
        file.close()
        raise InUseError(f"{path.parent} is in use by {holder}: wait until it is done, or stop it") from None
    except OSError:
        return file  # a file system without locks
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file


def open_own(path: Path, mode: str, encoding: str | None = None) -> IO[Any]:
    """Open a file to write to it, not what a link of its name leads to."""
    try:
        return open(path, mode, encoding=encoding, opener=_no_link)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LowgearError(f"{path} is a link: put a copy of what it leads to in its place") from None
        raise


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def sync_folder(path: Path) -> None:
    """Let the names in a directory outlive the machine, where its file system can do that."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content in one move, so that a reader or a crash never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # what another process left, or a link to somewhere else
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a directory that may not be written to
            partial.unlink(missing_ok=True)
        raise WriteError(f"could not write {path}: {error.strerror}; free some space or choose another place") from None
