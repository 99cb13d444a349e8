"""Sizes of shards as people write them: `1000`, `64K`, or `1K:16M` by doubling."""

import re

from a2aflow.errors import UsageError

MAX_BYTES = 1 << 40
"""The largest shard that may be asked for."""

_SIZE = re.compile(r"\s*([0-9]+)\s*([KMG]?)(?:i?B)?\s*", re.IGNORECASE)
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}


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
    match = _SIZE.fullmatch(size)
    value = int(match[1]) << _SHIFT[match[2].upper()] if match else 0
    if not 0 < value <= MAX_BYTES:
        raise UsageError(f"sizes {text!r}; expected such as 1000, 64K or 1K:16M")
    return value
