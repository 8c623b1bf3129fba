"""Hostile files of other libraries: nothing of them runs, and they are refused in one line."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.policy.fields import BadField
from lowgear.policy.foreign import read_foreign
from lowgear.policy.foreign.pickles import Made, Name, read_pickle
from lowgear.policy.foreign.torch_file import TorchFile
from lowgear.policy.foreign.zips import Archive
from tests.fixtures.foreign import FOLDER


class Code:
    """What runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def zipped(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name.replace("__", "/"), content)
    return data.getvalue()


def with_member(name: str, content: bytes) -> bytes:
    """A whole zip of Stable-Baselines3 with one member more, or another one."""
    source, data = zipfile.ZipFile(FOLDER / "sb3-sac.zip"), io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for member in source.namelist():
            if member != name:
                packed.writestr(member, source.read(member))
        packed.writestr(name, content)
    return data.getvalue()


def refused(tmp_path: Path, data: bytes, words: str, kind: str | None = None) -> None:
    path = tmp_path / "hostile.zip"
    path.write_bytes(data)
    with pytest.raises(LowgearError) as caught:
        read_foreign(path, kind)
    assert words in str(caught.value), caught.value
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_pickle_with_code_is_never_run(tmp_path: Path) -> None:
    victim = tmp_path / "ran"
    code = pickle.dumps(Code(f"touch {victim}"), protocol=2)
    made = read_pickle(code)
    assert isinstance(made, Made)
    assert made.maker == Name("posix", "system")
    torch = zipped(**{"archive__data.pkl": code})
    refused(tmp_path, torch, "posix.system", "cleanrl")
    refused(tmp_path, with_member("policy.pth", torch), "posix.system")
    assert not victim.exists()


def test_names_that_lead_out_of_the_zip(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "/etc/passwd", "..\\x", "a/../../b", "C:x"):
        refused(tmp_path, with_member(name, b"x"), "leads out of it")
    assert not (tmp_path.parent / "etc").exists()


def test_zip_bombs(tmp_path: Path) -> None:
    refused(tmp_path, with_member("data", bytes(1 << 24)), "would unpack to")
    refused(tmp_path, with_member("bomb", bytes(1 << 24)), "would unpack to")


def test_sizes_that_lie() -> None:
    """A member that unpacks to more than it declares, and one that declares more than it has."""
    whole = zipped(a=bytes(1000))
    place = whole.index(b"PK\x01\x02") + 24
    for size in (10, 900_000):
        lying = whole[:place] + struct.pack("<I", size) + whole[place + 4 :]
        with pytest.raises(BadField):
            Archive(lying).read("a")


def test_two_members_of_one_name(tmp_path: Path) -> None:
    data = with_member("x1", b"1")
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        assert "x1" in whole.namelist()
    refused(tmp_path, with_member("Xata", b"{}").replace(b"Xata", b"data"), "two members 'data'")


def test_an_encrypted_member(tmp_path: Path) -> None:
    data = bytearray(with_member("x", b"1"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    refused(tmp_path, bytes(data), "encrypted")


def tensor(key: str, size: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> bytes:
    """The pickle of a state dict with one tensor, as torch.save writes it."""

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def whole(value: int) -> bytes:
        return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)

    axes, steps = (b"(" + b"".join(map(whole, values)) + b"t" for values in (shape, strides))
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + whole(size) + b"tQ"
    rebuilt = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + whole(offset) + axes + steps + b"\x89}tR"
    return b"\x80\x02}(" + text("fc1.weight") + rebuilt + b"u."


@pytest.mark.parametrize(
    ("key", "size", "shape", "strides", "offset"),
    [
        ("0", 4, (2, 3), (3, 1), 0),
        ("0", 4, (2**31, 2**31), (0, 0), 0),
        ("0", 2**39, (2**39,), (1,), 0),
        ("0", 4, (4,), (2,), 0),
        ("0", 4, (4,), (1,), 1),
        ("0", 4, (4,), (1,), 2**60),
        ("1", 4, (4,), (1,), 0),
        ("../0", 4, (4,), (1,), 0),
        ("0", 4, (1,) * 40, (1,) * 40, 0),
        ("0", 4, (2, 2), (1,), 0),
    ],
)
def test_tensors_that_declare_too_much(
    key: str, size: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    numbers = np.arange(4, dtype=np.float32).tobytes()
    files = {"a__data__0": numbers, "a__data.pkl": tensor("0", 4, (2, 2), (1, 2))}
    assert TorchFile(zipped(**files)).dicts()[0]["fc1.weight"].tolist() == [[0, 2], [1, 3]]
    with pytest.raises(BadField):
        TorchFile(zipped(**files | {"a__data.pkl": tensor(key, size, shape, strides, offset)})).dicts()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"\x80\x02.",
        b"\x80\x02N",
        b"\x80\x02NN.",
        b"\x80\x02R.",
        b"\x80\x02tt.",
        b"\x80\x02h\x05.",
        b"\x80\x02((t.",
        b"\x80\x02)u.",
        b"\x80\x02)NNs.",
        b"\x80\x02NNb.",
        b"\x80\x02(NNNu.",
        b"\x80\x02\x93.",
        b"\x80\x02KK\x93.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"I1" + b"0" * 5000 + b"\n.",
        b"\x80\x04\x8d" + b"\xff" * 8 + b".",
        b"\x80\x02}" + b"K\x00K\x00s" * 60_000 + b".",
        b"\x80\x02" + b"K\x00K\x000" * 1 + b"2" * 10 + b".",
    ],
)
def test_pickles_that_cannot_be_followed(data: bytes) -> None:
    with pytest.raises(BadField):
        read_pickle(data)


def test_pickles_that_grow_by_reference() -> None:
    """Tuples of tuples of tuples take no more room than their steps, also as keys."""
    data = b"\x80\x02)q\x00" + b"0h\x00h\x00\x86q\x00" * 1000
    assert len(read_pickle(data + b".")) == 2
    keyed = b"\x80\x02})q\x00" + b"0h\x00h\x00\x86q\x00" * 300 + b"K\x01s."
    assert type(read_pickle(keyed)) is dict


def test_pickles_are_followed_as_python_follows_them() -> None:
    value = {"a": [1, 2.5, None, True, "y" * 300], "b": (1, (2, 3)), "c": {"d": -(2**40)}, "e": {}}
    assert read_pickle(pickle.dumps(b"x" * 300, 3)) == b"x" * 300
    for protocol in range(2, 6):
        assert read_pickle(pickle.dumps(value, protocol)) == value
        made = read_pickle(pickle.dumps(OrderedDict(a=1, b=[2]), protocol))
        assert (str(made.maker), made.items) == ("collections.OrderedDict", {"a": 1, "b": [2]})
