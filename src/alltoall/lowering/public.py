"""`alltoall.lower`: files for runtimes and fabrics, verified before they are returned."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.errors import FormatError, UsageError
from alltoall.grammar import TARGETS as KEYS
from alltoall.grammar import read_words
from alltoall.ir.files.artefacts import FORMATS, artefact_of
from alltoall.ir.files.json.saved_answers import Artefact
from alltoall.ir.files.node_tables import read_node_rows, read_node_values, read_ranks
from alltoall.ir.files.text import decode, read_bytes, require_size, write_bytes
from alltoall.ir.flow import Flow
from alltoall.ir.quantities import parse_size
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import listed
from alltoall.lowering.options import Options, schedule_by_rank
from alltoall.lowering.programs.msccl_read import complete_msccl
from alltoall.lowering.targets import (
    MAX_LOWERED_BYTES,
    SNIFFED,
    TARGETS,
    Content,
    Target,
    kind_of,
    targets_for,
)
from alltoall.registry import load
from alltoall.verification import verify, verify_text

PHASE_LOSS = 0.05
"""The share that phases may lose, by default."""

PADDED = ("mscclpp",)
"""Targets whose chunks are all as large as the largest."""

WORDS = {Schedule: "a schedule", Routes: "routes"}
"""Names of the inputs of targets in messages."""

TABLES: dict[str, dict[str, Callable[[Path, Topology], Any]]] = {
    "rank map": {"rank": read_ranks},
    "addresses": {
        "address": lambda path, topology: tuple(read_node_values(path, topology)),
        "places": lambda path, topology: tuple(
            map(tuple, read_node_rows(path, topology, np.arange(topology.nodes)))
        ),
    },
}
"""Readers of node tables, by the field of `Options` that they fill."""


@dataclass(frozen=True, repr=False)
class LoweredFiles:
    """The files that a target makes of a schedule or routes, by name.

    They have been parsed back and verified: a program was executed on real bytes, routes were
    checked against the topology. For simulators, the schedule or routes were checked instead.
    `facts` are the results of the check, by the names that the command line prints. Files per rank
    are bytes.
    """

    target: str
    files: Mapping[str, str | bytes]
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The text, where there is one file."""
        found = list(self.files.values())
        if len(found) > 1 or not isinstance(found[0], str):
            raise UsageError(
                f"{self.target} writes {len(found)} files; save them to a folder (-o FOLDER)"
            )
        return found[0]

    def summary(self) -> dict[str, Any]:
        """Return the facts and the size as plain values."""
        return {**self.facts, "bytes": sum(len(_data(each)) for each in self.files.values())}

    def __repr__(self) -> str:
        return f"<LoweredFiles of {self.target}: {listed(self.files)}>"

    def placed(self, path: str | PathLike[str]) -> dict[Path, bytes]:
        """Return where each file goes: the one file to a path, several into a folder."""
        if len(self.files) == 1:
            return {Path(path): _data(each) for each in self.files.values()}
        folder, ends = Path(path), tuple({Path(name).suffix for name in self.files})
        found = sorted(each.name for each in folder.glob("*") if each.name.endswith(ends))
        # A reader would take them for ours.
        others = [name for name in found if name not in self.files]
        if others:
            raise UsageError(
                f"{folder} has {others[0]} ({len(others)} such files), which {self.target} would "
                f"leave beside the {len(self.files)} files of this one; expected a folder without: "
                "remove them, or name another folder"
            )
        return {Path(path) / name: _data(each) for name, each in self.files.items()}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the one file to a path, or several under their names into a folder."""
        for place, data in self.placed(path).items():
            write_bytes(place, data)


def _data(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def lower(
    subject: Schedule | Routes | str | PathLike[str],
    to: str,
    *,
    rank_map: str | PathLike[str] | None = None,
    bytes: str | int = "1M",
    link_bandwidth: str | None = None,
    name: str | None = None,
) -> LoweredFiles:
    """Lower a saved schedule or saved routes to the file of a runtime or a fabric.

    Before the file is written it is parsed back: a program is executed on real bytes, routes are
    checked against the topology. Files for simulators (goal, chakra, simgrid) are only written: the
    schedule or routes are checked. An MSCCL file of another tool is lowered to msccl again, with
    all attributes that any runtime requires.

    >>> import alltoall
    >>> lowered = alltoall.lower(alltoall.schedule("ring:4"), "msccl:channels=2")
    >>> lowered.facts["ranks"], lowered.facts["correct"], list(lowered.files)
    (4, True, ['alltoall.msccl.xml'])

    """
    found = _read(Path(subject)) if isinstance(subject, str | PathLike) else subject
    to, words = read_words("target", to, KEYS, {})
    tables = {"rank map": rank_map, "addresses": words.pop("addresses", None)}
    if "phase_loss" in words and "phases" not in words:
        raise UsageError(f"target {to}: phase-loss without phases; add them, or leave it out")
    phases, loss = words.pop("phases", None), words.pop("phase_loss", PHASE_LOSS)
    given = {what: Path(path) for what, path in tables.items() if path is not None}
    options = Options(shard_bytes=parse_size(bytes), link_bandwidth=link_bandwidth, **words)
    if isinstance(found, str):
        return _complete(found, to, options, str(subject), name, given)
    if to not in TARGETS or not isinstance(found, TARGETS[to].takes):
        names = ", ".join(targets_for(type(found)))
        raise UsageError(f"target {to!r} for {WORDS[type(found)]}; expected one of {names}")
    target = TARGETS[to]
    for what, path in given.items():
        field = _field(what, to, target)
        filled = {field: TABLES[what][field](path, found.problem.topology)}
        options = replace(options, **filled)
    if phases is not None and isinstance(found, Routes):
        # By name: nothing else here needs a solver, and that takes longer to load than to lower.
        split_phases = load("alltoall.routes.phases:split_phases")
        options = replace(options, phase=split_phases(found, phases or None, loss))
    if isinstance(found, Schedule) and options.rank is not None:
        found = schedule_by_rank(found, options.rank)
    name = name or f"alltoall{target.suffix}"
    content: Content = target.emit(found, options)
    files = {name: content} if isinstance(content, str) else content
    return LoweredFiles(to, files, _facts(found, content, to, name))


def _field(what: str, to: str, target: Target) -> str:
    """Return the field of `Options` that a table fills for a target; refuse one without use."""
    for field in TABLES[what]:
        if target.admits(field):
            return field
    by = [name for name, each in TARGETS.items() if any(map(each.admits, TABLES[what]))]
    raise UsageError(
        f"{what} for this file and {to}, which takes no {what.replace('rank map', 'ranks')}; "
        f"use it with {', '.join(by)}"
    )


def _facts(noun: Schedule | Routes, content: Content, to: str, name: str) -> dict[str, Any]:
    """Read a file back, check it, and return its facts.

    For targets without a reader the noun is checked.
    """
    if TARGETS[to].read is None or not isinstance(content, str):
        return {"format": to, **verify(noun).facts}
    facts = verify_text(content, name, noun)
    if facts["format"] != to:
        raise UsageError(
            f"target {to!r}: its file reads as one of the target {facts['format']}; expected a "
            "sign that only its own files have near their beginning"
        )
    if isinstance(noun, Routes):
        return facts
    facts["time"] = noun.time
    facts.pop("chunk_sizes", None)  # the schedule knows them
    if to in PADDED and not noun.chunks.uniform:
        facts["padding"] = noun.padding
    if noun.bound > 0:
        facts |= {"bound": noun.bound, "gap": noun.gap}
    return facts


def _read(path: Path) -> Schedule | Routes | str:
    """Return the artefact in a file, or the text of an MSCCL file."""
    data, where = read_bytes(path), str(path)
    artefact: Artefact | str
    if data[:SNIFFED].lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"<"):
        require_size(data, where, MAX_LOWERED_BYTES)
        artefact = decode(data, where)
        found = {"msccl": None, None: "XML"}.get(kind_of(artefact), "a lowered program")
    else:
        artefact = artefact_of(data, where)
        found = f"format is {FORMATS[Flow]!r}" if isinstance(artefact, Flow) else None
    if found or isinstance(artefact, Flow):
        raise FormatError(
            f"{path}: {found}; expected {FORMATS[Schedule]!r} or {FORMATS[Routes]!r}, which "
            "`alltoall schedule` and `alltoall route` save, or MSCCL XML"
        )
    return artefact


def _complete(
    text: str, to: str, options: Options, where: str, name: str | None, given: Iterable[str]
) -> LoweredFiles:
    """Return an MSCCL file of another tool with all that any runtime requires."""
    for what in given:
        raise UsageError(f"{what} for an MSCCL file, which has ranks; lower the schedule itself")
    if to != "msccl":
        raise UsageError(
            f"target {to!r} for an MSCCL file; expected msccl, which completes it; other "
            "targets are lowered from the schedule that `alltoall schedule` saves"
        )
    name = name or f"alltoall{TARGETS[to].suffix}"
    completed = complete_msccl(text, options, where)
    return LoweredFiles(to, {name: completed}, verify_text(completed, name))
