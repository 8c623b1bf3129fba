"""Policies of other libraries, read from their files without running anything that is in them."""

from dataclasses import replace
from pathlib import Path

from lowgear import LowgearError
from lowgear.policy.fields import BadField, reason
from lowgear.policy.foreign.cleanrl import read_cleanrl
from lowgear.policy.foreign.network import ForeignPolicy, Statistics, normalised
from lowgear.policy.foreign.onnx import read_onnx
from lowgear.policy.foreign.sb3 import read_sb3
from lowgear.policy.foreign.sbx import is_sbx, read_sbx
from lowgear.policy.foreign.statistics import read_statistics
from lowgear.policy.foreign.zips import MOST_BYTES, Archive, is_zip

__all__ = ["KINDS", "ForeignPolicy", "load_statistics", "read_foreign"]
KINDS = ("sb3", "sbx", "cleanrl", "onnx")


def read_foreign(path: Path, kind: str | None = None, normalise: Path | None = None) -> ForeignPolicy:
    """The policy in another library's file; `kind` says which where the file does not.

    `normalise` names the statistics that its observations were normalised by. Whatever cannot be imported is an error
    of one line.
    """
    data = _read(path)
    try:
        policy = _policy(data, kind)
    except BadField as error:
        raise LowgearError(f"{path} cannot be imported: {reason(error)}") from None
    statistics = None if normalise is None else load_statistics(normalise)
    if statistics is None:
        return policy
    try:
        return normalised(policy, statistics)
    except BadField as error:
        raise LowgearError(f"{normalise} cannot be used for {path}: {reason(error)}") from None


def load_statistics(path: Path) -> Statistics | None:
    """How observations are normalised; None where the file says that they are not."""
    data = _read(path)
    try:
        return read_statistics(data)
    except BadField as error:
        raise LowgearError(f"{path} cannot be used to normalise: {reason(error)}") from None


def _policy(data: bytes, kind: str | None) -> ForeignPolicy:
    """By the reader of its kind."""
    kind = kind or _kind(data)
    if kind == "onnx":
        policy = read_onnx(data)
    elif kind == "cleanrl":
        policy = read_cleanrl(data)
    else:
        policy = read_sbx(Archive(data)) if kind == "sbx" else read_sb3(Archive(data))
    return replace(policy, kind=kind)


def _kind(data: bytes) -> str:
    """The library that wrote a file, by what is in it."""
    if not is_zip(data):
        return "onnx"
    archive = Archive(data)
    if "data" not in archive.names:
        return "cleanrl"
    return "sbx" if is_sbx(archive) else "sb3"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LowgearError(f"{path} cannot be read ({error.strerror}): give another library's file") from None
    if len(data) > MOST_BYTES:
        raise LowgearError(f"{path} has more than the {MOST_BYTES:,} bytes that a policy to import may have")
    return data
