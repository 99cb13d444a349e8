"""Take fields out of untrusted JSON objects, with a message that names what is wrong."""

import json
from typing import Any

from a2aflow.errors import FormatError

MAX_INT = 2**31 - 1
Json = dict[str, Any]


def take_object(value: object, here: str) -> Json:
    """Return `value` if it is an object."""
    if not isinstance(value, dict):
        raise FormatError(f"{here}: is {short(value)}; expected an object")
    return value


def take_list(obj: Json, key: str, here: str, most: int) -> list[Any]:
    """Return the array at `key`, of at most `most` entries."""
    value = obj.get(key)
    if not isinstance(value, list):
        raise FormatError(f"{here}: {key} is {short(value)}; expected an array")
    if len(value) > most:
        raise FormatError(f"{here}: {key} has {len(value)} entries; expected at most {most}")
    return value


def take_ints(obj: Json, key: str, here: str, most: int) -> list[int]:
    """Return the array at `key` of non-negative integers, at most `most` of them."""
    values = take_list(obj, key, here, most)
    if not all(type(value) is int and value >= 0 for value in values):
        raise FormatError(f"{here}: {key} is {short(values)}; expected non-negative integers")
    return values


def take_int(obj: Json, key: str, here: str, most: int = MAX_INT) -> int:
    """Return the integer at `key`, from 0 to `most`."""
    value = obj.get(key)
    if type(value) is not int or not 0 <= value <= most:
        raise FormatError(f"{here}: {key} is {short(value)}; expected an integer 0..{most}")
    return value


def take_text(obj: Json, key: str, here: str, known: tuple[str, ...] = ()) -> str:
    """Return the string at `key`, one of `known` if any are given."""
    value = obj.get(key)
    if not isinstance(value, str) or (known and value not in known):
        expected = " or ".join(known) if known else "a string"
        raise FormatError(f"{here}: {key} is {short(value)}; expected {expected}")
    return value


def short(value: object) -> str:
    """Show a value in a message without flooding it; missing keys come here as None."""
    text = "missing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
