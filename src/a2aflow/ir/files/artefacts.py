"""Saving and reading flows, routes and schedules: the one place that chooses JSON or binary."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from a2aflow.errors import FormatError
from a2aflow.ir.files.json import (
    FLOW_FORMAT,
    ROUTES_FORMAT,
    SCHEDULE_FORMAT,
    UNEVEN_FORMAT,
    flow_from_json,
    flow_to_json,
    format_of,
    json_text,
    parse_json,
    routes_from_json,
    routes_to_json,
    schedule_format,
    schedule_from_json,
    schedule_to_json,
)
from a2aflow.ir.files.json.values import short
from a2aflow.ir.files.npz import artefact_from_bytes, artefact_to_bytes, is_archive
from a2aflow.ir.files.text import decode, read_bytes, write_bytes
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule

Artefact: TypeAlias = Flow | Routes | Schedule
Kind = TypeVar("Kind", bound=Artefact)

BINARY_SUFFIX = ".npz"
FORMATS: dict[type, str] = {
    Flow: FLOW_FORMAT,
    Routes: ROUTES_FORMAT,
    Schedule: SCHEDULE_FORMAT,
}
"""The format of each artefact, the same in JSON as in binary."""

_TO_JSON: dict[type[Artefact], Callable[[Any], dict[str, Any]]] = {
    Flow: flow_to_json,
    Routes: routes_to_json,
    Schedule: schedule_to_json,
}
_FROM_JSON: dict[str, Callable[[object, str], Artefact]] = {
    FLOW_FORMAT: flow_from_json,
    ROUTES_FORMAT: routes_from_json,
    SCHEDULE_FORMAT: schedule_from_json,
    UNEVEN_FORMAT: schedule_from_json,
}


def format_name(noun: Artefact) -> str:
    """Return the format in which an artefact is saved."""
    return schedule_format(noun) if isinstance(noun, Schedule) else FORMATS[type(noun)]


def write_artefact(path: Path, noun: Artefact) -> None:
    """Save an artefact: in the compact form if the path ends in .npz, else as JSON."""
    write_bytes(path, file_bytes(path, noun))


def file_bytes(path: Path | None, noun: Artefact) -> bytes:
    """Return what the file of an artefact holds: by the path's suffix, as `write_artefact` says."""
    if path is not None and path.name.lower().endswith(BINARY_SUFFIX):
        return artefact_to_bytes(noun)
    return json_text(_TO_JSON[type(noun)](noun)).encode()


def read_artefact(path: Path) -> Artefact:
    """Read a flow, routes or a schedule in either form."""
    return artefact_of(read_bytes(path), str(path))


def artefact_of(data: bytes, where: str) -> Artefact:
    """Build a flow, routes or a schedule from the bytes of a file; the first of them say which."""
    if is_archive(data):
        return artefact_from_bytes(data, where)
    return artefact_from_json(parse_json(decode(data, where), where), where)


def read_as(path: Path, kind: type[Kind]) -> Kind:
    """Read an artefact that must be of one kind."""
    found = read_artefact(path)
    if not isinstance(found, kind):
        raise FormatError(f"{path}: format is {format_name(found)!r}; expected {FORMATS[kind]!r}")
    return found


def is_artefact(value: object) -> bool:
    """Whether parsed JSON says that it is a flow, routes or a schedule."""
    found = value.get("format") if isinstance(value, dict) else None
    return isinstance(found, str) and found in _FROM_JSON


def artefact_from_json(value: object, where: str) -> Artefact:
    """Build a flow, routes or a schedule from parsed JSON, whichever its format names."""
    found = format_of(value, where)
    if found not in _FROM_JSON:
        raise FormatError(
            f"{where}: format is {short(found)}; expected one of {', '.join(_FROM_JSON)}"
        )
    return _FROM_JSON[found](value, where)
