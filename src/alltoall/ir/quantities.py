"""Bandwidths and times as people write them: `100GbE`, `12.5GB/s`, `2us`, `0.5ms`."""

import re
import reprlib

from alltoall.errors import UsageError

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNIT = {"bps": 0.125, "b/s": 0.125, "bit/s": 0.125, "bit": 0.125, "Bps": 1.0, "B/s": 1.0}
_ETHERNET = ("", "b", "bE", "E")
"""Words for bits per second that need a prefix: `100G`, `100Gb`, `100GbE`, `100GE`."""

_FACTOR = {
    **{
        prefix + unit: size * each
        for prefix, size in _PREFIX.items()
        for unit, each in _UNIT.items()
    },
    **{prefix + unit: _PREFIX[prefix] / 8 for prefix in "kKMGT" for unit in _ETHERNET},
    # `tc` has small prefixes with `bit` only: its `mbps` is megabytes.
    **{f"{prefix}bit": _PREFIX[prefix.upper()] / 8 for prefix in "mgt"},
}
"""Bytes per second of one of each unit."""

_BANDWIDTH = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]+)\s*")


def bytes_per_second(text: str) -> float:
    """Parse a bandwidth such as `100G`, `100GbE`, `100 Gbit/s`, `12.5GB/s` or `20mbit`."""
    match = _BANDWIDTH.fullmatch(text)
    try:
        value = float(match[1]) * _FACTOR[match[2]] if match else 0.0
    except (KeyError, ValueError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"bandwidth {reprlib.repr(text)}; expected a positive number with a unit, "
            "such as 100G, 25Gbps or 3.125GB/s"
        )
    return value


def is_unit(word: str) -> bool:
    """Return whether a word is a unit such as `Gbps`: one of three letters or more."""
    return len(word) >= 3 and word in _FACTOR


def exact_rate(rate: float) -> str:
    """Write a rate so that `bytes_per_second` reads the same number back."""
    words = rate_in_words(rate)
    return words if bytes_per_second(words) == rate else f"{rate!r}B/s"


def rate_in_words(bytes_per_second: float) -> str:
    """Return a rate as text, such as 25Gbps; `bytes_per_second` is the inverse."""
    bits = 8.0 * bytes_per_second
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits >= size:
            return f"{bits / size:.6g}{prefix}bps"
    return f"{bits:.6g}bps"


_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0}
"""Seconds of each unit; the micro sign and the Greek letter look alike."""

_TIME = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-z\u00b5\u03bc]+)\s*")


def parse_seconds(given: str | float) -> float:
    """Return the seconds of `2us`, `0.5ms` or `1e-6`; a number is seconds already."""
    match = _TIME.fullmatch(str(given))
    try:
        return float(match[1]) * _SECONDS[match[2]] if match else float(given)
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"time {reprlib.repr(str(given))}; expected a number with a unit, such as 2us, 0.5ms "
            "or 30s; without one it is seconds"
        ) from None


def plain_number(given: str | float) -> float | None:
    """Return a number that has no unit; None for a text that may have one."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


MAX_SIZE = 1 << 40
"""The largest shard."""

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
    if not 0 < value <= MAX_SIZE:
        raise UsageError(
            f"sizes {reprlib.repr(text)}; expected such as 1000, 64K, 1MB or 1K:16M, and at most 1T"
        )
    return value
