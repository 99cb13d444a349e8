"""One array of an archive: its narrowest type, its header, and its numbers back from bytes."""

import math
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError

Array: TypeAlias = NDArray[Any]

MAX_NUMBERS = 1 << 26
"""Most numbers in one file. In memory they take eight bytes each, however few they take in it; with
what the checkers need besides, 2 GiB are enough for any file."""

MAX_TEXT = 1 << 23
"""Most characters of a text: a name, a method, notes, and the names of hundreds of thousands of
nodes."""

MAGIC = b"\x93NUMPY\x01\x00"
MAX_HEADER = 1024
WIDTHS = {
    "integers": ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8"),
    "numbers": ("<f4", "<f8"),
}
"""The types that arrays of each kind may have in a file: little-endian on every machine."""

_HEADER = re.compile(
    rb"\{'descr': '([<|][iuf][1248]|<U[0-9]{1,9})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,12},(?: [0-9]{1,12})?)?)\), \} *\n"
)


@dataclass(frozen=True)
class Header:
    """What an array says of itself, and where its numbers begin in its file."""

    descr: str
    shape: tuple[int, ...]
    offset: int

    @property
    def is_text(self) -> bool:
        """Whether this is text, in UTF-32."""
        return self.descr[1] == "U"

    @property
    def numbers(self) -> int:
        """The number of entries; of a text, of characters."""
        return math.prod(self.shape) * (int(self.descr[2:]) if self.is_text else 1)

    @property
    def end(self) -> int:
        """The size of the file that holds exactly this array."""
        return self.offset + self.numbers * (4 if self.is_text else int(self.descr[2:]))


def parse_header(start: bytes, where: str) -> Header:
    """Return the header at the start of a .npy file, if it is such as numpy writes for our types.

    Objects, records, dates and anything that only `pickle` could read have no place here.
    """
    begin = len(MAGIC) + 2
    length = int.from_bytes(start[len(MAGIC) : begin], "little")
    match = _HEADER.fullmatch(start[begin : begin + length])
    if not start.startswith(MAGIC) or match is None:
        raise FormatError(f"{where} is no .npy file of integers, floats or text")
    shape = tuple(int(size) for size in re.findall(rb"[0-9]+", match[2]))
    header = Header(match[1].decode(), shape, begin + length)
    limit, words = (MAX_TEXT, "characters") if header.is_text else (MAX_NUMBERS, "numbers")
    if header.numbers > limit:
        raise FormatError(f"{where} has {header.numbers:,} {words}; expected at most {limit:,}")
    return header


def narrow(array: Array) -> Array:
    """Return the same values in the smallest type that keeps every one of them."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError("a number that is not finite; an artefact has none")
        with np.errstate(over="ignore", under="ignore"):
            single = array.astype("<f4")
        exact = np.array_equal(single, array)
        return np.ascontiguousarray(array, "<f4" if exact else "<f8")
    least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
    descr = next(
        each
        for each in WIDTHS["integers"]
        if np.iinfo(each).min <= least and most <= np.iinfo(each).max
    )
    return np.ascontiguousarray(array, descr)


def widen(data: bytes, header: Header, key: str) -> Array:
    """Return the numbers of a .npy file, read-only, as int64 or float64, all of them finite."""
    array = np.frombuffer(data, header.descr, offset=header.offset).reshape(header.shape)
    if header.descr[1] == "f" and not np.isfinite(array).all():
        raise ValueError(f"{key} has a number that is not finite")
    wide = array.astype(np.float64 if header.descr[1] == "f" else np.int64, copy=False)
    wide.setflags(write=False)
    return wide
