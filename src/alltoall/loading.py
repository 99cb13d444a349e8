"""Load any file that alltoall writes or reads."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.files.artefacts import Saved, is_saved, refuse_unknown, saved_from_json
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.npz import artefact_from_bytes, is_archive
from alltoall.ir.files.text import decode, is_folder, read_bytes, require_size
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.lowering import MAX_LOWERED_BYTES, kind_of, parse_lowered
from alltoall.lowering.tables.routed_file import RoutedFile
from alltoall.topologies.formats import read_topology

Noun: TypeAlias = Saved | Program | ExecutionPlan | Messages | RoutedFile
"""Types that a file may hold."""


@dataclass(frozen=True)
class LoweredText:
    """A file that looks like one of a target of `lower`, not parsed yet."""

    text: str
    where: str
    kind: str
    """The name of the target."""


def load(path: str | PathLike[str]) -> Noun:
    """Load a file by its content, whatever its name.

    It may be a saved answer (JSON or `.npz`), a topology in any readable format, or a lowered
    program, plan or routes. Only the shape of the content is checked; use `verify` for its claims.

    >>> import alltoall
    >>> found = alltoall.schedule("ring:4")
    >>> found.save("ring.schedule.json")
    >>> alltoall.load("ring.schedule.json") == found
    True
    """
    found = opened(Path(path))
    if not isinstance(found, LoweredText):
        return found
    return parse_lowered(found.text, found.where)[1]


def opened(path: Path) -> Saved | LoweredText:
    """Return the content of a file, read once so that it may be a pipe."""
    if is_folder(path):
        return read_topology(path)
    data, where = read_bytes(path), str(path)
    if is_archive(data):
        return artefact_from_bytes(data, where)
    text = decode(data, where)
    value = parse_json(text, where) if text.lstrip()[:1] == "{" else None
    if is_saved(value):
        return saved_from_json(value, where)
    kind = kind_of(text)
    if kind is not None:
        require_size(data, where, MAX_LOWERED_BYTES)
        return LoweredText(text, where, kind)
    refuse_unknown(value, where)
    return read_topology(path)
