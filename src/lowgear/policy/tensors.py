"""Reads safetensors files of strangers: the header first, bounded and checked, the numbers when they are asked for.

A file is 8 bytes with the header's length, the header as JSON, then the numbers without gaps. Everything that the
header declares is held against the file's real size before a number is read, so that a small or a sparse file can't
make us fill the memory.
"""

import json
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.policy import fields
from lowgear.policy.fields import BadField

MOST_HEADER = 1 << 20  # bytes
MOST_AXES = 8
KINDS = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}


class Declared(NamedTuple):
    """What a header says of one tensor."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # byte of the file
    size: int  # how many numbers it has

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.start + self.size * self.kind.itemsize

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"


class TensorFile:
    """An open file whose header was found sound; its numbers were not looked at yet."""

    def __init__(
        self, path: Path, file: IO[bytes], remedy: str, metadata: dict[str, str], declared: dict[str, Declared]
    ) -> None:
        self.path, self.remedy, self.metadata, self.declared = path, remedy, metadata, declared
        self._file = file

    def require(self, name: str, kind: Any, shape: tuple[int, ...]) -> None:
        """An error unless the file declares a tensor of this type and shape."""
        found, wanted = self.declared.get(name), np.dtype(kind)
        if found is None or found.kind != wanted or found.shape != shape:
            got = "missing" if found is None else str(found)
            raise LowgearError(f"{self.path}: {name} should be {wanted} {shape} but is {got}; {self.remedy}")

    def read(self, name: str, kind: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """A tensor of the type and shape that it should have."""
        self.require(name, kind, shape)
        found = self.declared[name]
        bits = np.dtype(np.uint8) if found.kind == np.bool_ else found.kind  # a bool of 2 would count as both
        self._file.seek(found.start)
        values = np.fromfile(self._file, bits, found.size)
        if values.size != found.size:
            raise LowgearError(f"{self.path} ends within {name}; {self.remedy}")
        if found.kind == np.bool_:
            if values.size and values.max() > 1:
                raise LowgearError(f"{self.path}: {name} holds values that are neither true nor false; {self.remedy}")
            values = values.astype(np.bool_)
        return values.reshape(shape)

    def read_finite(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """A tensor of finite float32."""
        values: npt.NDArray[np.float32] = self.read(name, np.float32, shape)
        if not np.isfinite(values).all():
            raise LowgearError(f"{self.path}: {name} holds values that are not finite; {self.remedy}")
        return values


@contextmanager
def open_tensors(path: Path, what: str, remedy: str, most_bytes: int) -> Iterator[TensorFile]:
    """A safetensors file whose header is sound; a missing, damaged or oversized one is an error with the remedy."""
    if not path.is_file():
        raise LowgearError(f"{path}: no such {what}")
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size > most_bytes:
                raise LowgearError(
                    f"{path} has {size:,} bytes, more than the {most_bytes:,} that a {what} may have; {remedy}"
                )
            file.seek(0)
            try:
                metadata, declared = _read_header(file, size)
            except (BadField, RecursionError, UnicodeDecodeError, json.JSONDecodeError, ValueError) as error:
                raise LowgearError(
                    f"{path} is not a whole safetensors file ({fields.reason(error)}); {remedy}"
                ) from None
            yield TensorFile(path, file, remedy, metadata, declared)
    except OSError as error:
        raise LowgearError(f"{path} cannot be read ({error.strerror}); {remedy}") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON's pairs; one that says a thing twice may mean either and is refused."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadField("an entry is there twice")
    return found


def _read_header(file: IO[bytes], size: int) -> tuple[dict[str, str], dict[str, Declared]]:
    """Metadata and tensors that the header declares, which fill the rest of the file without a gap."""
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= min(MOST_HEADER, size - 8):
        raise BadField(f"its header would have {length} bytes of {size}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise BadField("its header is no object")
    raw = fields.entries("its header", json.loads(text.decode("utf-8"), object_pairs_hook=unique))
    metadata = fields.entries("__metadata__", raw.pop("__metadata__", {}))
    for key, value in metadata.items():
        if type(value) is not str:
            raise BadField(f"entry {fields.shown(key)} of its header is no text")
    declared = {fields.word("a tensor's name", name): _declared(value, 8 + length) for name, value in raw.items()}
    place = 8 + length
    for found in sorted(declared.values(), key=lambda one: (one.start, one.end)):
        if found.start != place:
            raise BadField("its tensors overlap or leave gaps")
        place = found.end
    if place != size:
        raise BadField(f"its header declares {place} bytes but it has {size}")
    return metadata, declared


def _declared(raw: Any, data: int) -> Declared:
    """One tensor, whose bytes are counted from `data` on."""
    raw = fields.entries("a tensor", raw)
    if len(raw) > 3:
        raise BadField("a tensor has more entries than dtype, shape and data_offsets")
    code = fields.text("a tensor's dtype", fields.entry(raw, "dtype"))
    if code not in KINDS:
        raise BadField(f"a tensor's dtype is {fields.shown(code)}, which is not one of {', '.join(KINDS)}")
    axes = fields.items("a tensor's shape", fields.entry(raw, "shape"), 0, MOST_AXES)
    shape = tuple(fields.whole("an axis of a tensor", axis, 0, 2**40) for axis in axes)
    offsets = fields.items("data_offsets", fields.entry(raw, "data_offsets"), 2, 2)
    start, end = (fields.whole("an offset", offset, 0, 2**62) for offset in offsets)
    found = Declared(KINDS[code], shape, data + start, math.prod(shape))
    if found.end != data + end:
        raise BadField(f"a tensor of {found} does not have {end - start} bytes")
    return found
