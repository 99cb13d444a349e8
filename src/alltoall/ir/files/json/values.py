"""Reading and writing JSON, and the checks that all artefacts share."""

import gc
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from alltoall.errors import FormatError, UsageError, VerificationError
from alltoall.ir.files.fields import short
from alltoall.ir.files.text import MAX_FILE_BYTES, read_text, write_text

MAX_INTEGER = 2**53
"""Integers beyond this are not exact in every JSON reader, and larger than any index here."""

MAX_PARSED = 768 << 20
"""Most bytes that the values of a JSON text may take in memory: over a million routes."""

VALUE_BYTES = {"{": 240, "[": 64, ",": 40}
"""What an object, an array and a further value take, found by the sign of each in a text."""


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
    """Estimate what the values of a JSON text take in memory: up to twenty times the text."""
    return sum(size * text.count(sign) for sign, size in VALUE_BYTES.items())


@contextmanager
def many_objects() -> Iterator[None]:
    """Pause the cyclic collector, which finds nothing in plain data and doubles the time of it."""
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
    """Return one artefact as compact JSON; refuse what no reader would take."""
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
    if not isinstance(found, str):
        what = 'no "format" key' if found is None else f"format is {short(found)}"
        raise FormatError(
            f"{where}: {what}; expected an alltoall artefact such as "
            f'{{"format": "alltoall.topology/1", ...}}'
        )
    return found


def artefact(value: object, expected: str, where: str) -> dict[str, Any]:
    """Return the object of an artefact, which must be of the expected format."""
    found = format_of(value, where)
    if found != expected:
        raise FormatError(f"{where}: format is {short(found)}; expected {expected!r}")
    return cast(dict[str, Any], value)


def positive(obj: dict[str, Any], key: str, where: str) -> float:
    """Return the value of a key, which must be a positive finite number."""
    found = obj.get(key)
    if not is_number(found) or not 0 < cast(float, found) < math.inf:
        raise FormatError(f"{where}: {key} is {short(found)}; expected a positive number")
    return float(cast(float, found))


def is_integer(value: object) -> bool:
    """Whether a value is an integer (a bool is not) that fits the arrays."""
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def are_integers(values: list[Any]) -> bool:
    """Whether `is_integer` holds for every value: the same, faster."""
    return not values or (
        set(map(type, values)) == {int}
        and min(values) >= -MAX_INTEGER
        and max(values) <= MAX_INTEGER
    )


def is_number(value: object) -> bool:
    """Whether a value is a float or an integer (a bool is not)."""
    return type(value) is float or is_integer(value)


def integers(value: object, key: str, where: str) -> list[int]:
    """Return a value that must be an array of integers."""
    if not isinstance(value, list) or not are_integers(value):
        raise FormatError(f"{where}: {key} is {short(value)}; expected an array of integers")
    return value


def numbers(value: object, key: str, where: str) -> list[float]:
    """Return a value that must be an array of numbers."""
    if not isinstance(value, list) or not all(map(is_number, value)):
        raise FormatError(f"{where}: {key} is {short(value)}; expected an array of numbers")
    return value


def strings(value: object, key: str, where: str) -> list[str]:
    """Return a value that must be an array of strings."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise FormatError(f"{where}: {key} is {short(value)}; expected an array of strings")
    return value


def is_triple(row: object) -> bool:
    """Whether a row is two integers and a number: a link."""
    return (
        isinstance(row, list)
        and len(row) == 3
        and is_integer(row[0])
        and is_integer(row[1])
        and is_number(row[2])
    )


def terminal_positions(
    rows: list[Any], key: str, position: dict[int, int], where: str, name: str = "flows"
) -> list[int]:
    """Return the position of the terminal that each row has under a key."""
    for index, row in enumerate(rows):
        if type(row.get(key)) is not int or row[key] not in position:
            raise FormatError(
                f"{where}: {name}[{index}].{key} is {short(row.get(key))}; expected a terminal"
            )
    return [position[row[key]] for row in rows]


def without_unclaimed(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out what an answer does not claim: a bound or a fractional time of 0, and its gap."""
    none = {"bound": 0.0, "fractional_time": 0.0, "gap": math.inf}
    return {key: each for key, each in value.items() if key not in none or each != none[key]}


def check_claims(obj: dict[str, Any], where: str, time: float, bound: float) -> None:
    """Refuse a file whose summary (`time`, `gap`) is not that of what it holds."""
    claims = {"time": (time, 0.0), "gap": (time / bound - 1 if bound > 0 else math.inf, 1e-9)}
    wrong = []
    for key, (true, slack) in claims.items():
        # A gap is a share, and may be off by one of rounding; a time has any unit.
        found = obj.get(key)
        if found is None:
            continue
        if not (is_number(found) and math.isclose(found, true, rel_tol=1e-9, abs_tol=slack)):
            wrong.append(f"{key} is {short(found)}, but what the file holds gives {true:.12g}")
    if wrong:
        raise VerificationError(where, wrong)
