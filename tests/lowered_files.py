"""What tests ask of lowered files of any target."""

from collections.abc import Mapping
from typing import Any

SIZES_ONLY = ("goal", "chakra")
"""Targets for simulators, whose files have no content that could be right or wrong."""


def holds(found: Mapping[str, Any]) -> bool:
    """Whether a check has found that every byte arrives or, without bytes, that all ends meet."""
    known = {key: found[key] for key in ("correct", "matched") if key in found}
    assert len(known) == 1
    assert ("matched" in known) == (found["format"] in SIZES_ONLY)
    return known.popitem()[1] is True
