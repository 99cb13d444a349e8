"""Flows, routes and schedules as the arrays of a .npz file; docs/formats.md describes it.

`FORMATS` lists the arrays of each format; the rest is in the JSON text `about`. Runs of links are
stored as their lengths, which take less room than their starts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.archive import MAX_NUMBERS, Array, Member, pack, read_texts, unpack
from alltoall.ir.files.fields import naming, short, take_int, take_object, take_text
from alltoall.ir.files.json.flow import FLOW_FORMAT, status_from_json
from alltoall.ir.files.json.problem import PROVENANCE, provenance_from_json
from alltoall.ir.files.json.routes import ROUTES_FORMAT
from alltoall.ir.files.json.schedule import SCHEDULE_FORMAT, UNEVEN_FORMAT, schedule_format
from alltoall.ir.files.json.values import MAX_INTEGER, parse_json, positive, strings
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Artefact: TypeAlias = Flow | Routes | Schedule
About: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, Array]

COMMON = {
    "format": Member("text"),
    "about": Member("text"),
    "tail": Member("integers", ("links",)),
    "head": Member("integers", ("links",)),
    "capacity": Member("numbers", ("links",)),
    "lengths": Member("numbers", ("links",)),
    "terminals": Member("integers", ("terminals",)),
    "demand": Member("numbers", ("terminals", "terminals"), required=False),
    PROVENANCE: Member("text", required=False),
}
"""The arrays of every file: the problem and the certificate. Without `demand` it is uniform."""

RUN_LENGTHS = ("size", "hops")
"""The array that stands for `start`: the links of each group, and of each route."""


def is_archive(data: bytes) -> bool:
    """Return whether data begins like a zip archive."""
    return data.startswith(b"PK")


def format_name(artefact: Artefact) -> str:
    """Return the format in which an artefact is saved."""
    if isinstance(artefact, Schedule):
        return schedule_format(artefact)
    return FLOW_FORMAT if isinstance(artefact, Flow) else ROUTES_FORMAT


def artefact_to_bytes(artefact: Artefact, provenance: bool = True) -> bytes:
    """Return the bytes of a flow, routes or a schedule, with known provenance."""
    form = FORMATS[format_name(artefact)]
    topology, demand = artefact.problem.topology, artefact.problem.demand.matrix
    about = _about(artefact) | {
        "name": topology.name,
        "nodes": int(topology.nodes),
        "notes": list(topology.notes),
        "method": artefact.method,
    }
    about |= _claim("bound", artefact.bound)
    about |= {} if topology.names is None else {"names": list(topology.names)}
    rate = topology.bytes_per_second
    about |= {} if rate is None else {"bytes_per_second": rate}
    arrays = {key: getattr(topology, key) for key in ("tail", "head", "capacity", "terminals")}
    arrays |= {"lengths": artefact.certificate.lengths, "demand": demand}
    arrays |= {key: _array_of(artefact, key) for key in form.members}
    members = {"format": format_name(artefact), "about": _text(about)}
    members |= {key: array for key, array in arrays.items() if array is not None}
    if provenance and artefact.provenance is not None:
        members[PROVENANCE] = _text(artefact.provenance.known())
    return pack(members)


def _array_of(artefact: Artefact, key: str) -> Array | None:
    if key in RUN_LENGTHS and not isinstance(artefact, Schedule):
        return np.diff(artefact.start)
    found: Array | Chunks | None = getattr(artefact, key)
    return found.counts if isinstance(found, Chunks) else found


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def artefact_from_bytes(data: bytes, where: str) -> Artefact:
    """Build a flow, routes or a schedule from the bytes of a file, unchecked."""
    texts = read_texts(data, ("format", "about", PROVENANCE), where)
    if "format" not in texts:
        raise FormatError(f'{where}: no array "format"; expected an alltoall artefact')
    found = texts.pop("format")
    if found not in FORMATS:
        raise FormatError(
            f"{where}: format is {short(found)}; expected one of {', '.join(FORMATS)}"
        )
    arrays = unpack(data, COMMON | FORMATS[found].members, where)
    objects = {
        key: take_object(parse_json(text, f"{where}: {key}"), f"{where}: {key}")
        for key, text in texts.items()
    }
    about = objects.pop("about") | objects
    with naming(where):
        form = FORMATS[found]
        topology = Topology(
            name=take_text(about, "name", where),
            nodes=take_int(about, "nodes", where, MAX_INTEGER),
            tail=arrays["tail"],
            head=arrays["head"],
            capacity=arrays["capacity"],
            terminals=arrays["terminals"],
            notes=tuple(strings(about.get("notes"), "notes", where)),
            names=tuple(strings(about["names"], "names", where)) if "names" in about else None,
            bytes_per_second=_claimed(about, "bytes_per_second", where) or None,
        )
        problem = Problem(topology, Demand(len(topology.terminals), arrays.get("demand")))
        fields: dict[str, Any] = {key: arrays.get(key) for key in form.members}
        for key in RUN_LENGTHS:
            if key in fields:
                fields["start"] = _starts(fields.pop(key), len(arrays["link"]), where)
        fields |= _fields(form.kind, about, arrays, problem, where)
        claims = positive if form.kind is Flow else _claimed
        return form.kind(
            problem=problem,
            certificate=Certificate(arrays["lengths"], claims(about, "bound", where)),
            method=take_text(about, "method", where),
            provenance=provenance_from_json(about, where),
            **fields,
        )


def _claim(key: str, value: float) -> About:
    """Return a positive number as a field of `about`, else no field."""
    return {key: float(value)} if value > 0 else {}


def _claimed(about: About, key: str, where: str) -> float:
    """Return a positive number of `about`, 0 if it is left out."""
    return positive(about, key, where) if key in about else 0.0


def _starts(sizes: Ints, entries: int, where: str) -> Ints:
    """Return the starts of runs; refuse sizes whose sum could overflow."""
    if np.any((sizes < 0) | (sizes > entries)) or int(sizes.sum()) != entries:
        raise FormatError(f"{where}: the lengths of the runs do not add up to {entries:,} links")
    return starts_of(sizes)


def _about(artefact: Artefact) -> About:
    """Return the fields of one kind of artefact, besides arrays."""
    if isinstance(artefact, Flow):
        return {"rate": float(artefact.rate), "status": artefact.status.value}
    if isinstance(artefact, Routes):
        common = artefact.denominator
        return {} if common is None else {"denominator": int(common)}
    about = {"steps": int(artefact.steps)} | _claim("fractional_time", artefact.fractional_time)
    even = artefact.chunks.uniform
    return about | ({"chunks_per_shard": artefact.chunks_per_shard} if even else {})


def _fields(
    kind: type[Artefact], about: About, arrays: Arrays, problem: Problem, where: str
) -> dict[str, Any]:
    """Return the fields restored from `_about`."""
    if kind is Flow:
        return {"rate": positive(about, "rate", where), "status": status_from_json(about, where)}
    if kind is Routes:
        known = "denominator" in about
        common = take_int(about, "denominator", where, MAX_INTEGER, 1) if known else None
        return {"denominator": common}
    if "chunks" in arrays:
        chunks = Chunks(problem.demand.terminals, counts=arrays["chunks"])
    else:
        chunks = Chunks.of_demand(problem.demand, take_int(about, "chunks_per_shard", where))
    return {
        "chunks": chunks,
        "steps": take_int(about, "steps", where, MAX_NUMBERS),
        "fractional_time": _claimed(about, "fractional_time", where),
    }


@dataclass(frozen=True)
class Form:
    """A kind of artefact, and its arrays."""

    kind: type[Artefact]
    members: dict[str, Member]


_KEYS = ("step", "source", "destination", "chunk", "link")
_SENDS = {key: Member("integers", ("sends",)) for key in _KEYS}
_CHUNKS = {"chunks": Member("integers", ("terminals", "terminals"))}
FORMATS: dict[str, Form] = {
    FLOW_FORMAT: Form(
        Flow,
        {
            "source": Member("integers", ("groups",)),
            "size": Member("integers", ("groups",)),
            "link": Member("integers", ("amounts",)),
            "amount": Member("numbers", ("amounts",)),
            "destination": Member("integers", ("groups",), required=False),
            "generators": Member("integers", ("generators", "nodes"), required=False),
        },
    ),
    ROUTES_FORMAT: Form(
        Routes,
        {
            "source": Member("integers", ("routes",)),
            "destination": Member("integers", ("routes",)),
            "hops": Member("integers", ("routes",)),
            "link": Member("integers", ("hops",)),
            "weight": Member("numbers", ("routes",)),
            "layer": Member("integers", ("routes",), required=False),
            "hop_layer": Member("integers", ("hops",), required=False),
        },
    ),
    SCHEDULE_FORMAT: Form(Schedule, _SENDS),
    UNEVEN_FORMAT: Form(Schedule, _SENDS | _CHUNKS),
}
"""The formats: the same names and the same content as in JSON."""
