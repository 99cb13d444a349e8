"""Bandwidths as people write them."""

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

_PATTERN = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]+)\s*")


def bytes_per_second(text: str) -> float:
    """Parse a bandwidth such as `100G`, `100GbE`, `100 Gbit/s`, `12.5GB/s` or `20mbit`."""
    match = _PATTERN.fullmatch(text)
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
    """Write a rate as people do, such as 25Gbps: `bytes_per_second` reads it back."""
    bits = 8.0 * bytes_per_second
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits >= size:
            return f"{bits / size:.6g}{prefix}bps"
    return f"{bits:.6g}bps"
