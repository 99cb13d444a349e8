"""Bandwidths as people write them."""

import re

from a2aflow.errors import UsageError

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNIT = {"bps": 0.125, "b/s": 0.125, "bit/s": 0.125, "Bps": 1.0, "B/s": 1.0}
_TC = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([kmgt]?)bit\s*")
"""As `tc` writes rates, where only `bit` has small prefixes: its `mbps` is megabytes."""

_PATTERN = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([kKMGT]?)(bps|b/s|bit/s|Bps|B/s)\s*")


def bytes_per_second(text: str) -> float:
    """Parse a bandwidth such as `25Gbps`, `3.125GB/s` or `20mbit`."""
    match, tc = _PATTERN.fullmatch(text), _TC.fullmatch(text)
    try:
        number, prefix, unit = match.groups() if match else ("", "", "")
        if tc:
            number, prefix, unit = tc[1], tc[2].upper(), "bps"
        value = float(number) * _PREFIX[prefix] * _UNIT[unit]
    except (KeyError, ValueError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"bandwidth {text!r}; expected a positive number with a unit, "
            "such as 25Gbps or 3.125GB/s"
        )
    return value


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
