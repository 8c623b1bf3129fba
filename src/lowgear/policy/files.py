"""Files that are whole: written in one move, and refused in one line where they are damaged."""

import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from lowgear import LowgearError


def read_tensors(path: Path, what: str, remedy: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Metadata and arrays of a safetensors file; one that is missing or damaged is an error that says what to do."""
    if not path.is_file():
        raise LowgearError(f"{path}: no such {what}")
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise LowgearError(f"{path} is not a whole safetensors file ({error}); {remedy}") from None


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
        partial.unlink(missing_ok=True)
        raise LowgearError(
            f"could not write {path}: {error.strerror}; free some space or choose another place"
        ) from None
