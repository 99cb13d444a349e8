"""Saving and reading nouns: the one place that chooses JSON or binary.

Flows, routes and schedules have both forms; all other nouns are JSON, except messages, which are
saved as the text that ranks read.
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
from alltoall.ir.files.json import demand, problem, program
from alltoall.ir.files.json.saved_answers import FORMATS as ANSWERS
from alltoall.ir.files.json.saved_answers import (
    UNEVEN_FORMAT,
    Artefact,
    answer_from_json,
    answer_to_json,
    format_name,
)
from alltoall.ir.files.json.values import format_of, json_text, parse_json
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.npz import artefact_from_bytes, artefact_to_bytes, is_archive
from alltoall.ir.files.text import decode, read_bytes, write_bytes
from alltoall.ir.messages import Messages
from alltoall.ir.noun import Noun
from alltoall.ir.problem import Problem
from alltoall.ir.program import Program
from alltoall.ir.topology import Topology

Kind = TypeVar("Kind", bound=Artefact)
Saved: TypeAlias = (
    Artefact | Topology | Demand | Problem | Certificate | Fabric | Program | ExecutionPlan
)

BINARY_SUFFIX = ".npz"
FORMATS: dict[type, str] = {kind: name for name, kind in ANSWERS.items() if name != UNEVEN_FORMAT}
"""The usual format of each artefact, the same in JSON as in binary."""

_TO_JSON: dict[type[Noun], Callable[[Any], dict[str, Any]]] = {
    **dict.fromkeys(FORMATS, answer_to_json),
    Topology: problem.topology_to_json,
    Demand: demand.demand_to_json,
    Problem: problem.problem_to_json,
    Certificate: problem.certificate_to_json,
    Fabric: problem.fabric_to_json,
    Program: program.program_to_json,
    ExecutionPlan: program.program_to_json,
}
_FROM_JSON: dict[str, Callable[[object, str], Any]] = {
    **dict.fromkeys(ANSWERS, answer_from_json),
    problem.TOPOLOGY_FORMAT: problem.topology_from_json,
    demand.DEMAND_FORMAT: problem.demand_alone,
    problem.PROBLEM_FORMAT: problem.problem_from_json,
    problem.CERTIFICATE_FORMAT: problem.certificate_from_json,
    problem.FABRIC_FORMAT: problem.fabric_from_json,
    program.PROGRAM_FORMAT: program.program_from_json,
    program.PLAN_FORMAT: program.program_from_json,
}


def write_artefact(path: Path, noun: Noun, provenance: bool = True) -> None:
    """Save a noun: in the compact form if the path ends in .npz, else as JSON.

    Without `provenance`, or where it is not known, the files of equal answers are equal.
    """
    write_bytes(path, file_bytes(path, noun, provenance))


def file_bytes(path: Path | None, noun: Noun, provenance: bool = True) -> bytes:
    """Return the content of a noun's file; see `write_artefact`."""
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
    block = {} if known is None else {problem.PROVENANCE: known.known()}
    return json_text(_TO_JSON[type(noun)](noun) | block).encode()


def saved_from_json(value: object, where: str) -> Saved:
    """Build the noun in parsed JSON, by its format."""
    found = format_of(value, where)
    saved: Saved = _FROM_JSON.get(found, answer_from_json)(value, where)
    return saved


def is_saved(value: object) -> bool:
    """Return whether parsed JSON names the format of a noun."""
    found = _named_format(value)
    return found in _FROM_JSON and found != problem.TOPOLOGY_FORMAT


def refuse_unknown(value: object, where: str) -> None:
    """Refuse parsed JSON that names a format of alltoall, but none that we know."""
    found = _named_format(value)
    if found.startswith("alltoall.") and found not in _FROM_JSON:
        known = ", ".join(_FROM_JSON)
        raise FormatError(f"{where}: format is {short(found)}; expected one of {known}")


def _named_format(value: object) -> str:
    found = value.get("format") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def read_artefact(path: Path) -> Artefact:
    """Read a flow, routes or a schedule in either form."""
    return artefact_of(read_bytes(path), str(path))


def artefact_of(data: bytes, where: str) -> Artefact:
    """Build a flow, routes or a schedule from the bytes of a file."""
    if is_archive(data):
        return artefact_from_bytes(data, where)
    found: Artefact = answer_from_json(parse_json(decode(data, where), where), where)
    return found


def read_as(path: Path, kind: type[Kind]) -> Kind:
    """Read an artefact that must be of one kind."""
    return artefact_as(read_bytes(path), str(path), kind)


def artefact_as(data: bytes, where: str, kind: type[Kind]) -> Kind:
    """Build an artefact, which must be of one kind, from the bytes of a file."""
    found = artefact_of(data, where)
    if not isinstance(found, kind):
        raise FormatError(f"{where}: format is {format_name(found)!r}; expected {FORMATS[kind]!r}")
    return found


def frame_of(columns: Mapping[str, Iterable[object]]) -> Any:
    """Return columns of equal length as a DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingComponentError(
            f"to_frame() needs pandas, which is not installed; {how_to_install('frames')}"
        ) from None
    return pandas.DataFrame(dict(columns))
