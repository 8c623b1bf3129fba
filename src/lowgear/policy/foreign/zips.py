"""Members of zips from strangers: names, sizes and ratios are checked, and no more is unpacked than was declared."""

import io
import zipfile
import zlib

from lowgear.policy.fields import BadField, shown

MOST_BYTES = 1 << 28  # of a file, and of all that it unpacks to
MOST_MEMBERS = 10_000
MOST_RATIO = 100  # of unpacked bytes to packed ones
FREE_BYTES = 1 << 20  # which any member may unpack to
BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, KeyError)


class Archive:
    """A zip in memory whose list of members was found sound; the members are unpacked when they are asked for."""

    def __init__(self, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            raise BadField(f"it has more than {MOST_BYTES:,} bytes")
        if data.count(b"PK\x01\x02") > MOST_MEMBERS:  # before a list of them fills the memory
            raise BadField(f"it has more than {MOST_MEMBERS:,} members")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:
            raise BadField(f"it is no whole zip ({type(error).__name__})") from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            _check(info)
            if info.filename in self._members:
                raise BadField(f"it has two members {shown(info.filename)}")
            self._members[info.filename] = info
        if sum(info.file_size for info in self._members.values()) > MOST_BYTES:
            raise BadField(f"its members would unpack to more than {MOST_BYTES:,} bytes")

    @property
    def names(self) -> list[str]:
        """Of its members."""
        return list(self._members)

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """The bytes of a member, as many as were declared."""
        info = self._members.get(name)
        if info is None:
            raise BadField(f"it has no member {shown(name)}")
        if info.file_size > most:
            raise BadField(f"its member {shown(name)} has more than {most:,} bytes")
        try:
            with self._zip.open(info) as member:
                data = member.read(info.file_size + 1)
        except BROKEN as error:
            raise BadField(f"its member {shown(name)} is damaged ({type(error).__name__})") from None
        if len(data) != info.file_size:
            raise BadField(f"its member {shown(name)} does not have the {info.file_size:,} bytes that it declares")
        return data


def is_zip(data: bytes) -> bool:
    """Whether it begins as one."""
    return data.startswith(b"PK\x03\x04")


def _check(info: zipfile.ZipInfo) -> None:
    """Refuse a member that no file of weights has."""
    name = info.filename
    if info.flag_bits & 1:
        raise BadField(f"its member {shown(name)} is encrypted")
    if name.startswith(("/", "\\")) or ":" in name or ".." in name.replace("\\", "/").split("/"):
        raise BadField(f"its member {shown(name)} has a name that leads out of it")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadField(f"its member {shown(name)} is packed in a way that no file of weights is")
    if info.file_size > max(FREE_BYTES, MOST_RATIO * info.compress_size):
        raise BadField(f"its member {shown(name)} would unpack to {info.file_size:,} bytes from {info.compress_size:,}")
