"""Sizes of shards as people write them: `1000`, `64K`, `1MB`, or `1K:16M` by doubling."""

import re
import reprlib

from alltoall.errors import UsageError

MAX_BYTES = 1 << 40
"""The largest shard that may be asked for."""

_SIZE = re.compile(r"\s*([0-9]{1,15})\s*([KMGT]?)(iB|i|B|)\s*", re.IGNORECASE)
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the sizes of `64K`, or of `1K:1M` by doubling; the end is included if it is met."""
    first, colon, last = text.partition(":")
    begin = _bytes(first, text)
    end = _bytes(last, text) if colon else begin
    if end < begin:
        raise UsageError(f"sizes {text!r}; expected the smaller one first, such as 1K:16M")
    found: list[int] = []
    while begin <= end:
        found.append(begin)
        begin *= 2
    return tuple(found)


def parse_size(size: str | int) -> int:
    """Return one size: a number, or a text such as `64K`."""
    if isinstance(size, int):
        return size
    found = parse_sizes(size)
    if ":" in size:
        raise UsageError(f"sizes {size!r}; expected one size, such as 1M")
    return found[0]


def _bytes(size: str, text: str) -> int:
    """Return the bytes of a size: K and KiB are powers of 1024, KB is one of 1000."""
    match = _SIZE.fullmatch(size)
    if match and match[3].endswith("b"):
        raise UsageError(
            f"sizes {text!r}; a lower-case b stands for bits; expected bytes: "
            f"{match[1]}{match[2].upper()} or {match[1]}{match[2].upper()}iB by 1024, "
            f"{match[1]}{match[2].upper()}B by 1000"
        )
    base = 1000 if match and match[3] == "B" else 1024
    value = int(match[1]) * base ** _POWER[match[2].upper()] if match else 0
    if not 0 < value <= MAX_BYTES:
        raise UsageError(
            f"sizes {reprlib.repr(text)}; expected such as 1000, 64K, 1MB or 1K:16M, and at most 1T"
        )
    return value
