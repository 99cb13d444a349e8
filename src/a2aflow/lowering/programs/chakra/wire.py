"""Take protobuf messages apart without a schema: fields by number, with limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from a2aflow.errors import FormatError

Value = TypeVar("Value", int, bytes)

LONGEST = 10
"""Bytes of a number of 64 bits."""

FIXED = {1: 8, 5: 4}
"""Bytes of a value by wire type, where that says it; other types but 0 and 2 are long gone."""


@dataclass
class Fields:
    """The values of a message by field number, in the order of the file."""

    numbers: dict[int, list[int]] = field(default_factory=dict)
    texts: dict[int, list[bytes]] = field(default_factory=dict)

    def number(self, key: int, here: str) -> int | None:
        """Return the one number of a field, if it has one."""
        return _one(self.numbers.get(key, []), key, here)

    def text(self, key: int, here: str) -> bytes | None:
        """Return the one run of bytes of a field, if it has one."""
        return _one(self.texts.get(key, []), key, here)

    def repeated(self, key: int, here: str) -> list[int]:
        """Return all numbers of a field, one by one or packed."""
        packed = [each for data in self.texts.get(key, []) for each in _numbers(data, here)]
        return [*self.numbers.get(key, []), *packed]


def _one(values: list[Value], key: int, here: str) -> Value | None:
    if len(values) > 1:
        raise FormatError(f"{here}: field {key} is there {len(values)} times; expected it once")
    return values[0] if values else None


def messages_of(data: bytes, here: str) -> Iterator[bytes]:
    """Yield the messages of a file, each of which stands after its length."""
    at = 0
    while at < len(data):
        length, at = _varint(data, at, here)
        if length > len(data) - at:
            raise FormatError(
                f"{here}: a message of {length} bytes at byte {at}, and {len(data) - at} are left; "
                "the file may be truncated"
            )
        yield data[at : at + length]
        at += length


def fields_of(data: bytes, here: str) -> Fields:
    """Return the fields of a message; those of fixed width are skipped, as no field of ours is."""
    found, at = Fields(), 0
    while at < len(data):
        head, at = _varint(data, at, here)
        key, kind = head >> 3, head & 7
        if kind == 0:
            number, at = _varint(data, at, here)
            found.numbers.setdefault(key, []).append(number)
            continue
        if kind == 2:
            length, at = _varint(data, at, here)
        else:
            length = FIXED.get(kind, -1)
        if key == 0 or not 0 <= length <= len(data) - at:
            raise FormatError(
                f"{here}: field {key} of wire type {kind} does not fit into its message of "
                f"{len(data)} bytes; expected protobuf"
            )
        if kind == 2:
            found.texts.setdefault(key, []).append(data[at : at + length])
        at += length
    return found


def _numbers(data: bytes, here: str) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = _varint(data, at, here)
        yield number


def _varint(data: bytes, at: int, here: str) -> tuple[int, int]:
    """Return the number that begins at a byte, and where it ends."""
    number = 0
    for index, byte in enumerate(data[at : at + LONGEST]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if number >= 1 << 64:
                break
            return number, at + index + 1
    raise FormatError(f"{here}: byte {at} begins no number of 64 bits; the file may be truncated")
