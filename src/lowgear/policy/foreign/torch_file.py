"""Tensors of files that `torch.save` writes, without running their pickle.

A file is a zip: `data.pkl` says which tensors there are, and refers to the bytes of each, which are members beside it.
The pickle may hold the few names of tensors and no other, so that a whole module, or code, is refused by its name.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.policy import fields
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.pickles import Made, Name, read_pickle
from lowgear.policy.foreign.records import is_made
from lowgear.policy.foreign.zips import Archive, is_zip

STORAGES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("<i1"),
    "ByteStorage": np.dtype("<u1"),
    "BoolStorage": np.dtype("<u1"),
}
TENSOR, PARAMETER = "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter"
ORDERED = "collections.OrderedDict"
NAMES = {TENSOR, PARAMETER, ORDERED, *(f"torch.{storage}" for storage in STORAGES)}
MOST_AXES = 8
DEEPEST = 4  # dicts and tuples within each other
MOST_PICKLE = 1 << 24  # bytes

Tensors = dict[str, npt.NDArray[Any]]


class Storage(NamedTuple):
    """The numbers of one or several tensors: a member of the zip."""

    kind: np.dtype[Any]
    key: str
    size: int


class TorchFile:
    """An open file whose pickle was followed; `saved` is what was saved, with records for tensors."""

    def __init__(self, data: bytes) -> None:
        if not is_zip(data):
            raise BadField("it is no zip, as torch.save writes since PyTorch 1.6: save it again with a later one")
        self._archive = Archive(data)
        self._folder = _folder(self._archive.names)
        if f"{self._folder}byteorder" in self._archive.names:
            order = self._archive.read(f"{self._folder}byteorder", 100)
            if order != b"little":
                raise BadField("its bytes are in big-endian order")
        self._numbers: dict[str, npt.NDArray[Any]] = {}
        pickle = self._archive.read(f"{self._folder}data.pkl", MOST_PICKLE)
        self.saved = read_pickle(pickle, lambda name: str(name) in NAMES, _storage)

    def dicts(self) -> list[Tensors]:
        """The state dicts that were saved: one, or those of a tuple, list or dict of them; their tensors as arrays."""
        found: list[Tensors] = []
        self._collect(self.saved, found, 0)
        return found

    def _collect(self, value: Any, found: list[Tensors], depth: int) -> None:
        if depth > DEEPEST:
            raise BadField("its dicts are nested too deeply")
        if type(value) in (tuple, list):
            for item in value[: fields.MOST_ITEMS]:
                self._collect(item, found, depth + 1)
            return
        entries = _entries(value)
        if entries is None:
            return
        if any(is_made(item, TENSOR, PARAMETER) for item in entries.values()):
            found.append(self._tensors(entries))
        else:
            for item in list(entries.values())[: fields.MOST_ITEMS]:
                self._collect(item, found, depth + 1)

    def _tensors(self, entries: dict[Any, Any]) -> Tensors:
        if len(entries) > fields.MOST_ITEMS:
            raise BadField(f"it has more than {fields.MOST_ITEMS:,} tensors")
        return {
            fields.text("a tensor's name", name): self._tensor(name, value)
            for name, value in entries.items()
            if isinstance(value, Made)
        }

    def _tensor(self, name: str, value: Any) -> npt.NDArray[Any]:
        if is_made(value, PARAMETER) and value.arguments:
            value = value.arguments[0]
        if not is_made(value, TENSOR) or len(value.arguments) < 4 or not isinstance(value.arguments[0], Storage):
            raise BadField(f"{shown(name)} is no tensor")
        storage, offset, shape, strides = value.arguments[:4]
        what = f"the shape of {shown(name)}"
        axes = [fields.whole(what, axis, 0, 2**32) for axis in fields.items(what, shape, 0, MOST_AXES)]
        steps = [
            fields.whole(f"a stride of {shown(name)}", step, 0, 2**32)
            for step in fields.items(f"the strides of {shown(name)}", strides, len(axes), len(axes))
        ]
        start = fields.whole(f"the offset of {shown(name)}", offset, 0, 2**40)
        count = math.prod(axes)
        last = start + sum((axis - 1) * step for axis, step in zip(axes, steps, strict=True)) if count else start
        if count > storage.size or last >= storage.size > 0:
            raise BadField(f"{shown(name)} declares more numbers than its file holds")
        numbers = self._read(storage)
        size = storage.kind.itemsize
        view = np.lib.stride_tricks.as_strided(numbers[start:], axes, [step * size for step in steps], writeable=False)
        return np.array(view)

    def _read(self, storage: Storage) -> npt.NDArray[Any]:
        """The numbers of a storage, which the zip must hold."""
        if storage.key not in self._numbers:
            data = self._archive.read(f"{self._folder}data/{storage.key}")
            if len(data) < storage.size * storage.kind.itemsize:
                raise BadField(f"its member data/{storage.key} ends within its numbers")
            self._numbers[storage.key] = np.frombuffer(data, np.uint8)
        return self._numbers[storage.key][: storage.size * storage.kind.itemsize].view(storage.kind)


def _folder(names: list[str]) -> str:
    """The folder of the zip that everything is in, with its slash."""
    found = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(found) != 1:
        raise BadField("it is no file of torch.save: it has no data.pkl")
    return found[0]


def _storage(identifier: Any) -> Storage:
    """What a reference of the pickle stands for."""
    if type(identifier) is not tuple or len(identifier) != 5 or identifier[0] != "storage":
        raise BadField("it refers to something that is no tensor")
    _, kind, key, _, size = identifier
    if not isinstance(kind, Name) or kind.module != "torch" or kind.name not in STORAGES:
        raise BadField(f"it holds {shown(str(kind))}, which are no numbers that can be read")
    if type(key) is not str or not key.isdecimal() or len(key) > 9:
        raise BadField(f"it refers to tensor {shown(key)}")
    return Storage(STORAGES[kind.name], key, fields.whole("the size of a tensor", size, 0, 2**40))


def _entries(value: Any) -> dict[Any, Any] | None:
    if type(value) is dict:
        return value
    return value.items if is_made(value, ORDERED) else None
