"""Take fields out of untrusted objects and elements, with a message that names the fault.

A JSON object has values, an XML element and a line have words. Messages are the same for both: what
was found, and what was expected.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from alltoall.errors import FormatError, InputError, UsageError

MAX_INT = 2**31 - 1
Json = dict[str, Any]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Add the file name to errors of its content."""
    try:
        yield
    except FormatError:
        raise
    except (InputError, UsageError) as error:
        raise FormatError(f"{where}: {error}") from None


def take_object(value: object, here: str) -> Json:
    """Return `value` if it is an object."""
    if not isinstance(value, dict):
        raise FormatError(f"{here} is {short(value)}; expected an object")
    return value


def take_list(obj: Json, key: str, here: str, most: int | None = None) -> list[Any]:
    """Return the array at `key`, of at most `most` entries."""
    value = obj.get(key)
    if not isinstance(value, list):
        raise FormatError(f"{here}: {key} is {short(value)}; expected an array")
    if most is not None and len(value) > most:
        raise FormatError(f"{here}: {key} has {len(value)} entries; expected at most {most}")
    return value


def take_ints(obj: Json, key: str, here: str, most: int) -> list[int]:
    """Return the array at `key` of non-negative integers, at most `most` of them."""
    values = take_list(obj, key, here, most)
    if not all(type(value) is int and value >= 0 for value in values):
        raise FormatError(f"{here}: {key} is {short(values)}; expected non-negative integers")
    return values


def take_int(obj: Json, key: str, here: str, most: int = MAX_INT, least: int = 0) -> int:
    """Return the integer at `key`, from `least` to `most`."""
    value = obj.get(key)
    if type(value) is not int or not least <= value <= most:
        raise _not_integer(value, key, here, most, least)
    return value


def take_text(obj: Mapping[str, Any], key: str, here: str, known: tuple[str, ...] = ()) -> str:
    """Return the string at `key`, one of `known` if any are given."""
    value = obj.get(key)
    if not isinstance(value, str) or (known and value not in known):
        expected = " or ".join(known) if known else "a string"
        raise FormatError(f"{here}: {key} is {short(value)}; expected {expected}")
    return value


def take_number(
    words: Mapping[str, str], key: str, here: str, most: int = MAX_INT, least: int = 0
) -> int:
    """Return the integer in the word at `key`, from `least` to `most`."""
    return parse_int(words.get(key), key, here, most, least)


def parse_int(word: str | None, what: str, here: str, most: int = MAX_INT, least: int = 0) -> int:
    """Return the integer in a word, written as Python writes it, from `least` to `most`."""
    if word is None or not _INTEGER.fullmatch(word) or not least <= int(word) <= most:
        raise _not_integer(word, what, here, most, least)
    return int(word)


def _not_integer(value: object, what: str, here: str, most: int, least: int) -> FormatError:
    expected = f"an integer {least}..{most}" if least < most else str(least)
    return FormatError(f"{here}: {what} is {short(value)}; expected {expected}")


def short(value: object) -> str:
    """Shorten a value for a message; None is a missing key."""
    text = "missing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
