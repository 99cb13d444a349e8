"""Reading and writing JSON, and the checks that all artefacts share."""

import gc
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

from alltoall.errors import FormatError, UsageError
from alltoall.ir.files.fields import MAX_INT, Json, short, take_list, take_object
from alltoall.ir.files.text import MAX_FILE_BYTES, read_text, write_text

MAX_INTEGER = 2**53
"""Integers beyond this are not exact in every JSON reader, and larger than any index here."""

MAX_PARSED = 768 << 20
"""Most bytes that the values of a JSON text may take in memory: over a million routes."""

VALUE_BYTES = {"{": 240, "[": 64, ",": 40}
"""Bytes of an object, an array and a further value, by the sign of each in a text."""


def parse_json(text: str, where: str) -> object:
    """Parse JSON; NaN, Infinity, bad syntax, absurd nesting and size are `FormatError`s."""
    if parsed_bytes(text) > MAX_PARSED:
        raise FormatError(
            f"{where}: parsing it would take some {parsed_bytes(text):,} bytes of memory; expected "
            f"at most {MAX_PARSED:,}, use the compact form (.npz) or split the file"
        )
    try:
        with many_objects():
            return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}; "
            "the file may be truncated"
        ) from None
    except RecursionError:
        raise FormatError(f"{where}: nested too deeply to be an alltoall artefact") from None
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from None


def parsed_bytes(text: str) -> int:
    """Estimate the memory of the values of a JSON text: up to twenty times the text."""
    return sum(size * text.count(sign) for sign, size in VALUE_BYTES.items())


@contextmanager
def many_objects() -> Iterator[None]:
    """Pause the cyclic collector, which finds nothing in plain data and doubles its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"the value {constant} is not JSON; expected a finite number")


def read_json(path: Path) -> object:
    """Read and parse one JSON file."""
    return parse_json(read_text(path), str(path))


def json_text(value: dict[str, Any]) -> str:
    """Return an artefact as compact JSON; refuse one beyond the readers' limits."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n"
    if parsed_bytes(text) > MAX_PARSED or len(text) > MAX_FILE_BYTES:
        raise UsageError("the answer is too large for JSON; save it in the compact form, as .npz")
    return text


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write one artefact, compactly, in one step."""
    write_text(path, json_text(value))


def format_of(value: object, where: str) -> str:
    """Return the `format` of an artefact."""
    found = value.get("format") if isinstance(value, dict) else None
    if isinstance(found, str):
        return found
    what = 'no "format" key' if found is None else f"format is {short(found)}"
    example = '{"format": "alltoall.topology/1", ...}'
    raise FormatError(f"{where}: {what}; expected an alltoall artefact such as {example}")


def artefact(value: object, expected: str, where: str) -> dict[str, Any]:
    """Return the object of an artefact, which must be of the expected format."""
    found = format_of(value, where)
    if found != expected:
        raise FormatError(f"{where}: format is {short(found)}; expected {expected!r}")
    return cast(dict[str, Any], value)


def positive(obj: dict[str, Any], key: str, where: str) -> float:
    """Return the value of a key, which must be a positive finite number."""
    found: Any = obj.get(key)
    if not is_number(found) or not 0 < found < math.inf:
        raise FormatError(f"{where}: {key} is {short(found)}; expected a positive number")
    return float(found)


def is_integer(value: object) -> bool:
    """Whether a value is an integer (a bool is not) that fits the arrays."""
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def are_integers(values: list[Any]) -> bool:
    """Return whether `is_integer` holds for all values, faster than one by one."""
    if not set(map(type, values)) <= {int}:
        return False
    return not values or -MAX_INTEGER <= min(values) <= max(values) <= MAX_INTEGER


def is_number(value: object) -> bool:
    """Whether a value is a float or an integer (a bool is not)."""
    return type(value) is float or is_integer(value)


def are_naturals(values: list[Any]) -> bool:
    """Return whether all values are integers from 0 to `MAX_INT`."""
    return are_integers(values) and (not values or 0 <= min(values) <= max(values) <= MAX_INT)


def _are_lists(fit: Callable[[list[Any]], bool]) -> Callable[[list[Any]], bool]:
    """Return whether all values are arrays whose values fit."""
    return lambda values: (
        set(map(type, values)) <= {list} and fit(list(chain.from_iterable(values)))
    )


class Cells(NamedTuple):
    """A kind of value: whether all of some values are of it, and what is expected of each."""

    fit: Callable[[list[Any]], bool]
    expected: str


INTEGERS = Cells(_are_lists(are_integers), "an array of integers")
NUMBERS = Cells(_are_lists(lambda values: all(map(is_number, values))), "an array of numbers")
STRINGS = Cells(_are_lists(lambda values: set(map(type, values)) <= {str}), "an array of strings")
NATURAL = Cells(are_naturals, f"an integer 0..{MAX_INT}")
NATURALS = Cells(_are_lists(are_naturals), f"an array of integers 0..{MAX_INT}")


def fitting(value: Any, cells: Cells, here: str) -> Any:
    """Return a value that must be of a kind."""
    if not cells.fit([value]):
        raise FormatError(f"{here} is {short(value)}; expected {cells.expected}")
    return value


def take(obj: Json, key: str, cells: Cells, where: str, *default: Any) -> Any:
    """Return the value at a key, which must be of a kind; a default makes it optional."""
    if default and key not in obj:
        return default[0]
    return fitting(obj.get(key), cells, f"{where}: {key}")


@dataclass(frozen=True)
class Rows:
    """Objects in an array, and the name of the array for messages.

    A million rows are checked column by column; only a wrong column is searched row by row.
    """

    rows: list[Json]
    name: str

    @classmethod
    def of(cls, obj: Json, key: str, where: str, most: int | None = None) -> "Rows":
        """Take the array at a key, all of whose values must be objects."""
        rows, name = take_list(obj, key, where, most), f"{where}: {key}"
        for index, row in enumerate(rows if set(map(type, rows)) - {dict} else ()):
            take_object(row, f"{name}[{index}]")
        return cls(rows, name)

    def column(self, key: str, cells: Cells, optional: bool = False) -> list[Any]:
        """Return the values at a key, which an optional one need not have in every row."""
        found = [row for row in self.rows if key in row] if optional else self.rows
        values = [row.get(key) for row in found]
        if not cells.fit(values):
            for index, row in enumerate(self.rows):
                if key in row or not optional:
                    fitting(row.get(key), cells, f"{self.name}[{index}].{key}")
        return values
