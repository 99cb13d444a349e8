"""Any file that alltoall writes, or reads, back as what it stands for."""

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
"""What a file may stand for."""


@dataclass(frozen=True)
class LoweredText:
    """What a target of `lower` looks like the writer of, not parsed yet."""

    text: str
    where: str
    kind: str
    """The name of the target."""


def load(path: str | PathLike[str]) -> Noun:
    """Return what a file stands for: the content tells, not the name.

    Whatever a noun's `save` wrote (JSON or `.npz`), topologies in every format that can be read,
    programs and plans that `lower` wrote, and lowered routes as the file says them. What is read
    is sound as far as its shape goes; whether it is true is for `verify` to say.

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
    """Return what a file holds; artefacts and programs are read once, so they may be a pipe."""
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
