"""The wire format of Protocol Buffers: fields by number, nothing else. Messages are bytes until someone reads them."""

from collections.abc import Iterator

from lowgear.policy.fields import BadField

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how a field is written
MOST_FIELDS = 1_000_000


def fields_of(message: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of every field: a whole number, or the bytes of anything else."""
    view, place = memoryview(message), 0
    for _ in range(MOST_FIELDS):
        if place >= len(view):
            return
        key, place = _varint(view, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            whole, place = _varint(view, place)
            yield number, whole
            continue
        if kind == BYTES:
            length, place = _varint(view, place)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise BadField("it is no whole message of Protocol Buffers")
        if length > len(view) - place:
            raise BadField("it ends within a field")
        yield number, view[place : place + length]
        place += length
    raise BadField(f"it has more than {MOST_FIELDS:,} fields")


def varints(packed: memoryview) -> list[int]:
    """Whole numbers one after the other."""
    place, found = 0, []
    while place < len(packed):
        value, place = _varint(packed, place)
        found.append(value)
    return found


def signed(value: int) -> int:
    """A 64-bit number, which may be negative."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(view):
            raise BadField("it ends within a number")
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, place
    raise BadField("it has a number of more than 64 bits")
