"""Policies of other libraries, read from their files without running anything that is in them."""

from pathlib import Path

from lowgear import LowgearError
from lowgear.policy.fields import BadField, reason
from lowgear.policy.foreign.cleanrl import read_cleanrl
from lowgear.policy.foreign.network import ForeignPolicy, normalised
from lowgear.policy.foreign.onnx import read_onnx
from lowgear.policy.foreign.sb3 import read_sb3
from lowgear.policy.foreign.sbx import is_sbx, read_sbx
from lowgear.policy.foreign.statistics import read_statistics
from lowgear.policy.foreign.zips import MOST_BYTES, Archive, is_zip

__all__ = ["KINDS", "ForeignPolicy", "read_foreign"]
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
    if normalise is None:
        return policy
    raw = _read(normalise)
    try:
        statistics = read_statistics(raw)
        return policy if statistics is None else normalised(policy, statistics)
    except BadField as error:
        raise LowgearError(f"{normalise} cannot be used: {reason(error)}") from None


def _policy(data: bytes, kind: str | None) -> ForeignPolicy:
    if kind == "onnx" or (kind is None and not is_zip(data)):
        return read_onnx(data)
    if kind == "cleanrl":
        return read_cleanrl(data)
    archive = Archive(data)
    if kind is None and "data" not in archive.names:
        return read_cleanrl(data)
    if kind is None:
        kind = "sbx" if is_sbx(archive) else "sb3"
    return read_sbx(archive) if kind == "sbx" else read_sb3(archive)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LowgearError(f"{path} cannot be read ({error.strerror}): give another library's file") from None
    if len(data) > MOST_BYTES:
        raise LowgearError(f"{path} has more than the {MOST_BYTES:,} bytes that a policy to import may have")
    return data
