"""Provenance as JSON: a block of its own in any artefact, which says nothing about the answer."""

from collections.abc import Callable
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import short, take_object
from alltoall.ir.files.json.values import is_integer, is_number
from alltoall.ir.noun import Provenance

KEY = "provenance"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "version": (_is_text, "a string"),
    "command": (_is_text, "a string"),
    "method": (_is_text, "a string"),
    "seed": (is_integer, "an integer"),
    "solver": (_is_text, "a string"),
    "gap": (is_number, "a number"),
    "seconds": (is_number, "a number"),
    "date": (_is_text, "a string"),
}
"""What each field must be; others are for those who know them."""


def provenance_from_json(obj: dict[str, Any], where: str) -> Provenance | None:
    """Return the provenance in an artefact, if it has any."""
    if KEY not in obj:
        return None
    block = take_object(obj[KEY], f"{where}: {KEY}")
    known = {key: value for key, value in block.items() if key in KINDS}
    for key, value in known.items():
        fits, expected = KINDS[key]
        if not fits(value):
            raise FormatError(f"{where}: {KEY}.{key} is {short(value)}; expected {expected}")
    return Provenance(**known)
