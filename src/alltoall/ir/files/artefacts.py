"""Saving and reading nouns: the one place that chooses JSON or binary.

Flows, routes and schedules are answers, and have both forms; all others are JSON, but for messages,
whose file ranks read as well.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from alltoall.errors import FormatError, MissingComponentError, UsageError, how_to_install
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.fabric import Fabric
from alltoall.ir.files.fields import short
from alltoall.ir.files.json.demand import DEMAND_FORMAT, demand_to_json
from alltoall.ir.files.json.flow import FLOW_FORMAT, flow_from_json, flow_to_json
from alltoall.ir.files.json.problem import (
    CERTIFICATE_FORMAT,
    FABRIC_FORMAT,
    PROBLEM_FORMAT,
    PROVENANCE,
    TOPOLOGY_FORMAT,
    certificate_from_json,
    certificate_to_json,
    demand_alone,
    fabric_from_json,
    fabric_to_json,
    problem_from_json,
    problem_to_json,
    topology_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.program import (
    PLAN_FORMAT,
    PROGRAM_FORMAT,
    plan_from_json,
    plan_to_json,
    program_from_json,
    program_to_json,
)
from alltoall.ir.files.json.routes import ROUTES_FORMAT, routes_from_json, routes_to_json
from alltoall.ir.files.json.schedule import (
    SCHEDULE_FORMAT,
    UNEVEN_FORMAT,
    schedule_format,
    schedule_from_json,
    schedule_to_json,
)
from alltoall.ir.files.json.values import format_of, json_text, parse_json
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.npz import artefact_from_bytes, artefact_to_bytes, is_archive
from alltoall.ir.files.text import decode, read_bytes, write_bytes
from alltoall.ir.flow import Flow
from alltoall.ir.messages import Messages
from alltoall.ir.noun import Noun
from alltoall.ir.problem import Problem
from alltoall.ir.program import Program
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Artefact: TypeAlias = Flow | Routes | Schedule
Saved: TypeAlias = (
    Artefact | Topology | Demand | Problem | Certificate | Fabric | Program | ExecutionPlan
)
Kind = TypeVar("Kind", bound=Artefact)

BINARY_SUFFIX = ".npz"
FORMATS: dict[type, str] = {
    Flow: FLOW_FORMAT,
    Routes: ROUTES_FORMAT,
    Schedule: SCHEDULE_FORMAT,
}
"""The format of each artefact, the same in JSON as in binary."""

_TO_JSON: dict[type[Noun], Callable[[Any], dict[str, Any]]] = {
    Flow: flow_to_json,
    Routes: routes_to_json,
    Schedule: schedule_to_json,
    Topology: topology_to_json,
    Demand: demand_to_json,
    Problem: problem_to_json,
    Certificate: certificate_to_json,
    Fabric: fabric_to_json,
    Program: program_to_json,
    ExecutionPlan: plan_to_json,
}
_FROM_JSON: dict[str, Callable[[object, str], Artefact]] = {
    FLOW_FORMAT: flow_from_json,
    ROUTES_FORMAT: routes_from_json,
    SCHEDULE_FORMAT: schedule_from_json,
    UNEVEN_FORMAT: schedule_from_json,
}
_PARTS_FROM_JSON: dict[str, Callable[[object, str], Saved]] = {
    TOPOLOGY_FORMAT: topology_from_json,
    DEMAND_FORMAT: demand_alone,
    PROBLEM_FORMAT: problem_from_json,
    CERTIFICATE_FORMAT: certificate_from_json,
    FABRIC_FORMAT: fabric_from_json,
    PROGRAM_FORMAT: program_from_json,
    PLAN_FORMAT: plan_from_json,
}
"""What is no answer: the parts of one, and what one is lowered to."""


def format_name(noun: Artefact) -> str:
    """Return the format in which an artefact is saved."""
    return schedule_format(noun) if isinstance(noun, Schedule) else FORMATS[type(noun)]


def write_artefact(path: Path, noun: Noun, provenance: bool = True) -> None:
    """Save a noun: in the compact form if the path ends in .npz, else as JSON.

    Without `provenance`, or where it is not known, the files of equal answers are equal.
    """
    write_bytes(path, file_bytes(path, noun, provenance))


def file_bytes(path: Path | None, noun: Noun, provenance: bool = True) -> bytes:
    """Return what the file of a noun holds, as `write_artefact` says."""
    compact = path is not None and path.name.lower().endswith(BINARY_SUFFIX)
    if compact and isinstance(noun, Artefact):
        return artefact_to_bytes(noun, provenance)
    if type(noun) not in _TO_JSON and not isinstance(noun, Messages):
        raise UsageError(f"{noun!r} has no file of its own; save what it is a part of")
    if compact:
        raise UsageError(f"{path}: a {type(noun).__name__} is saved as text; choose another suffix")
    if isinstance(noun, Messages):
        return messages_text(noun).encode()
    known = noun.provenance if provenance and isinstance(noun, Artefact | Topology) else None
    block = {} if known is None else {PROVENANCE: known.known()}
    return json_text(_TO_JSON[type(noun)](noun) | block).encode()


def saved_from_json(value: object, where: str) -> Saved:
    """Build any noun from parsed JSON, whichever its format names."""
    found = format_of(value, where)
    if found in _PARTS_FROM_JSON:
        return _PARTS_FROM_JSON[found](value, where)
    return artefact_from_json(value, where)


def is_saved(value: object) -> bool:
    """Whether parsed JSON says that it is a noun; a topology's own reader knows it too."""
    found = value.get("format") if isinstance(value, dict) else None
    known = _FROM_JSON.keys() | _PARTS_FROM_JSON.keys() - {TOPOLOGY_FORMAT}
    return isinstance(found, str) and found in known


def refuse_unknown(value: object, where: str) -> None:
    """Refuse parsed JSON that says that it is a noun of ours, but none that we know."""
    found = value.get("format") if isinstance(value, dict) else None
    known = (*_FROM_JSON, *_PARTS_FROM_JSON)
    if isinstance(found, str) and found.startswith("alltoall.") and found not in known:
        raise FormatError(f"{where}: format is {short(found)}; expected one of {', '.join(known)}")


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
    return artefact_as(read_bytes(path), str(path), kind)


def artefact_as(data: bytes, where: str, kind: type[Kind]) -> Kind:
    """Build an artefact, which must be of one kind, from the bytes of a file."""
    found = artefact_of(data, where)
    if not isinstance(found, kind):
        raise FormatError(f"{where}: format is {format_name(found)!r}; expected {FORMATS[kind]!r}")
    return found


def artefact_from_json(value: object, where: str) -> Artefact:
    """Build a flow, routes or a schedule from parsed JSON, whichever its format names."""
    found = format_of(value, where)
    if found not in _FROM_JSON:
        raise FormatError(
            f"{where}: format is {short(found)}; expected one of {', '.join(_FROM_JSON)}"
        )
    return _FROM_JSON[found](value, where)


def frame_of(columns: Mapping[str, Iterable[object]]) -> Any:
    """Return columns of equal length as a DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingComponentError(
            f"to_frame() needs pandas, which is not installed; {how_to_install('frames')}"
        ) from None
    return pandas.DataFrame(dict(columns))
