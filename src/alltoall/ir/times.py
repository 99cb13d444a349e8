"""Times as people write them: `2us`, `0.5ms`, or a plain number of seconds."""

import re
import reprlib

from alltoall.errors import UsageError

_UNIT = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0}
"""Seconds of each unit; the micro sign and the Greek letter look alike."""

_PATTERN = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-z\u00b5\u03bc]+)\s*")


def parse_seconds(given: str | float) -> float:
    """Return the seconds of `2us`, `0.5ms` or `1e-6`; a number is seconds already."""
    plain = plain_number(given)
    return _with_unit(str(given)) if plain is None else plain


def plain_number(given: str | float) -> float | None:
    """Return a number that has no unit; None for a text that may have one."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _with_unit(text: str) -> float:
    match = _PATTERN.fullmatch(text)
    try:
        return float(match[1]) * _UNIT[match[2]] if match else float(text)
    except (KeyError, ValueError):
        raise UsageError(
            f"time {reprlib.repr(text)}; expected a number with a unit, such as 2us, 0.5ms or 30s; "
            "without one it is seconds"
        ) from None
