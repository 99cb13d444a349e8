"""Flows, routes and schedules as the arrays of a .npz file; docs/formats.md describes it.

`MEMBERS` lists the arrays of each format; the rest is in the JSON text `about`. Runs of links are
stored as their lengths, which take less room than their starts.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.archive import MAX_NUMBERS, Array, Member, pack, read_texts, unpack
from alltoall.ir.files.fields import naming, short, take_int, take_object, take_text
from alltoall.ir.files.json.problem import PROVENANCE, topology_fields
from alltoall.ir.files.json.saved_answers import (
    FLOW_FORMAT,
    ROUTES_FORMAT,
    SCHEDULE_FORMAT,
    UNEVEN_FORMAT,
    Artefact,
    answer_of,
    claims_of,
    format_name,
)
from alltoall.ir.files.json.saved_answers import FORMATS as ANSWERS
from alltoall.ir.files.json.values import MAX_INTEGER, parse_json
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

About: TypeAlias = dict[str, Any]

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

ENDS = ("tail", "head", "capacity", "terminals")
"""The arrays of the topology."""

RUN_LENGTHS = ("size", "hops")
"""The array that stands for `start`: the links of each group, and of each route."""


def is_archive(data: bytes) -> bool:
    """Return whether data begins like a zip archive."""
    return data.startswith(b"PK")


def artefact_to_bytes(artefact: Artefact, provenance: bool = True) -> bytes:
    """Return the bytes of a flow, routes or a schedule, with known provenance."""
    members_of = MEMBERS[format_name(artefact)]
    topology, demand = artefact.problem.topology, artefact.problem.demand.matrix
    about: About = {}
    if isinstance(artefact, Schedule):
        about = {"steps": int(artefact.steps)}
    elif isinstance(artefact, Routes) and artefact.denominator is not None:
        about = {"denominator": int(artefact.denominator)}
    about |= {key: each for key, each in claims_of(artefact).items() if each}
    about |= {
        "name": topology.name,
        "nodes": int(topology.nodes),
        "notes": list(topology.notes),
        "method": artefact.method,
    }
    about |= {"bound": float(artefact.bound)} if artefact.bound > 0 else {}
    about |= {} if topology.names is None else {"names": list(topology.names)}
    rate = topology.bytes_per_second
    about |= {} if rate is None else {"bytes_per_second": rate}
    arrays = {key: getattr(topology, key) for key in ENDS}
    arrays |= {"lengths": artefact.certificate.lengths, "demand": demand}
    arrays |= {key: _array_of(artefact, key) for key in members_of}
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
    if found not in MEMBERS:
        raise FormatError(
            f"{where}: format is {short(found)}; expected one of {', '.join(MEMBERS)}"
        )
    arrays = unpack(data, COMMON | MEMBERS[found], where)
    about, more = (
        take_object(parse_json(texts.get(key, "{}"), f"{where}: {key}"), f"{where}: {key}")
        for key in ("about", PROVENANCE)
    )
    with naming(where):
        for key in ("name", "method"):  # which may be left out in JSON only
            take_text(about, key, where)
        ends: dict[str, Any] = {key: arrays[key] for key in ENDS}
        topology = Topology(**topology_fields(about, where), **ends)
        problem = Problem(topology, Demand(len(topology.terminals), arrays.get("demand")))
        fields: dict[str, Any] = {key: arrays.get(key) for key in MEMBERS[found]}
        for key in fields.keys() & set(RUN_LENGTHS):
            fields["start"] = _starts(fields.pop(key), len(arrays["link"]), where)
        if "weight" in fields and "denominator" in about:
            fields["denominator"] = take_int(about, "denominator", where, MAX_INTEGER, 1)
        if "step" in fields:
            fields["steps"] = take_int(about, "steps", where, MAX_NUMBERS)
        if "chunks" in fields:
            fields["chunks"] = Chunks(len(topology.terminals), counts=arrays["chunks"])
        about |= {PROVENANCE: more} if PROVENANCE in texts else {}
        kind, lengths = ANSWERS[found], arrays["lengths"]
        made: Artefact = answer_of(kind, problem, lengths, about, where, **fields)
        return made


def _starts(sizes: Ints, entries: int, where: str) -> Ints:
    """Return the starts of runs; refuse sizes whose sum could overflow."""
    if np.any((sizes < 0) | (sizes > entries)) or int(sizes.sum()) != entries:
        raise FormatError(f"{where}: the lengths of the runs do not add up to {entries:,} links")
    return starts_of(sizes)


_KEYS = ("step", "source", "destination", "chunk", "link")
_SENDS = {key: Member("integers", ("sends",)) for key in _KEYS}
_CHUNKS = {"chunks": Member("integers", ("terminals", "terminals"))}
MEMBERS: dict[str, dict[str, Member]] = {
    FLOW_FORMAT: {
        "source": Member("integers", ("groups",)),
        "size": Member("integers", ("groups",)),
        "link": Member("integers", ("amounts",)),
        "amount": Member("numbers", ("amounts",)),
        "destination": Member("integers", ("groups",), required=False),
        "generators": Member("integers", ("generators", "nodes"), required=False),
    },
    ROUTES_FORMAT: {
        "source": Member("integers", ("routes",)),
        "destination": Member("integers", ("routes",)),
        "hops": Member("integers", ("routes",)),
        "link": Member("integers", ("hops",)),
        "weight": Member("numbers", ("routes",)),
        "layer": Member("integers", ("routes",), required=False),
        "hop_layer": Member("integers", ("hops",), required=False),
    },
    SCHEDULE_FORMAT: _SENDS,
    UNEVEN_FORMAT: _SENDS | _CHUNKS,
}
"""The arrays of each format, beside those of every file."""
