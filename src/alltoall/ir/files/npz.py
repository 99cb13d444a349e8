"""Flows, routes and schedules as the arrays of a .npz file; docs/formats.md describes it.

`FORMATS` says which arrays a file of each format has; the rest is in the JSON text `about`. Runs of
links are stored as their lengths rather than their starts, which take more room.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from alltoall.errors import FormatError, InputError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.archive import (
    MAX_NUMBERS,
    Array,
    Member,
    has_member,
    pack,
    read_member_text,
    unpack,
)
from alltoall.ir.files.fields import short, take_int, take_object, take_text
from alltoall.ir.files.json.flow import FLOW_FORMAT
from alltoall.ir.files.json.problem import PROVENANCE, provenance_from_json
from alltoall.ir.files.json.routes import ROUTES_FORMAT
from alltoall.ir.files.json.schedule import SCHEDULE_FORMAT, UNEVEN_FORMAT, schedule_format
from alltoall.ir.files.json.values import MAX_INTEGER, parse_json, positive, strings
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Noun: TypeAlias = Flow | Routes | Schedule
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
"""What every file has: the problem and the certificate. Without `demand` it is uniform."""


def is_archive(data: bytes) -> bool:
    """Whether data begins like a zip archive, which no text does."""
    return data.startswith(b"PK")


def artefact_to_bytes(noun: Noun, provenance: bool = True) -> bytes:
    """Return the file of a flow, routes or a schedule, with where it came from if that is known."""
    name = next(name for name, form in FORMATS.items() if type(noun) is form.kind)
    name = schedule_format(noun) if isinstance(noun, Schedule) else name
    form = FORMATS[name]
    topology, demand = noun.problem.topology, noun.problem.demand.matrix
    about, arrays = form.to_parts(noun)
    about |= {
        "name": topology.name,
        "nodes": int(topology.nodes),
        "notes": list(topology.notes),
        "method": noun.method,
    } | _claim("bound", noun.bound)
    about |= {} if topology.names is None else {"names": list(topology.names)}
    rate = topology.bytes_per_second
    about |= {} if rate is None else {"bytes_per_second": rate}
    common = {key: getattr(topology, key) for key in ("tail", "head", "capacity", "terminals")}
    common |= {"lengths": noun.certificate.lengths} | _given(demand=demand)
    members = {"format": name, "about": _text(about)} | common | arrays
    if provenance and noun.provenance is not None:
        members[PROVENANCE] = _text(noun.provenance.known())
    return pack(members)


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def artefact_from_bytes(data: bytes, where: str) -> Noun:
    """Build a flow, routes or a schedule from the bytes of a file; the checkers say if it holds."""
    found = read_member_text(data, "format", where)
    if found not in FORMATS:
        raise FormatError(
            f"{where}: format is {short(found)}; expected one of {', '.join(FORMATS)}"
        )
    arrays = unpack(data, COMMON | FORMATS[found].members, where)
    about = _object(data, "about", where)
    if has_member(data, PROVENANCE, where):
        about[PROVENANCE] = _object(data, PROVENANCE, where)
    try:
        return FORMATS[found].from_parts(about, arrays, where)
    except FormatError:
        raise
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None


def _object(data: bytes, key: str, where: str) -> About:
    """Return the JSON object that is one of the texts of a file."""
    here = f"{where}: {key}"
    return take_object(parse_json(read_member_text(data, key, where), here), here)


def _problem(about: About, arrays: Arrays, where: str) -> Problem:
    names = tuple(strings(about["names"], "names", where)) if "names" in about else None
    topology = Topology(
        name=take_text(about, "name", where),
        nodes=take_int(about, "nodes", where, MAX_INTEGER),
        tail=arrays["tail"],
        head=arrays["head"],
        capacity=arrays["capacity"],
        terminals=arrays["terminals"],
        notes=tuple(strings(about.get("notes"), "notes", where)),
        names=names,
        bytes_per_second=_rate(about, where),
    )
    return Problem(topology, Demand(len(topology.terminals), arrays.get("demand")))


def _rate(about: About, where: str) -> float | None:
    """Return what capacity 1 is, if the file says so."""
    key = "bytes_per_second"
    return positive(about, key, where) if key in about else None


def _certificate(about: About, arrays: Arrays, where: str) -> Certificate:
    return Certificate(arrays["lengths"], _claimed("bound", about, where))


def _claim(key: str, value: float) -> About:
    """Return a number for `about`; nothing is claimed by leaving it out."""
    return {key: float(value)} if value > 0 else {}


def _claimed(key: str, about: About, where: str) -> float:
    return positive(about, key, where) if key in about else 0.0


def _given(**arrays: Array | None) -> Arrays:
    return {key: array for key, array in arrays.items() if array is not None}


def _starts(sizes: Ints, entries: int, where: str) -> Ints:
    """Return where runs of these sizes start; sizes that could overflow the sum are refused."""
    if np.any((sizes < 0) | (sizes > entries)) or int(sizes.sum()) != entries:
        raise FormatError(f"{where}: the lengths of the runs do not add up to {entries:,} links")
    return starts_of(sizes)


def _flow_to_parts(flow: Flow) -> tuple[About, Arrays]:
    about = {"rate": float(flow.rate), "status": flow.status.value}
    arrays = {
        "source": flow.source,
        "size": np.diff(flow.start),
        "link": flow.link,
        "amount": flow.amount,
    }
    optional = _given(destination=flow.destination, generators=flow.generators)
    return about, arrays | optional


def _flow_from_parts(about: About, arrays: Arrays, where: str) -> Flow:
    status = take_text(about, "status", where)
    if status not in set(Status):
        raise FormatError(
            f"{where}: status is {short(status)}; expected one of {', '.join(Status)}"
        )
    return Flow(
        problem=_problem(about, arrays, where),
        rate=positive(about, "rate", where),
        source=arrays["source"],
        destination=arrays.get("destination"),
        start=_starts(arrays["size"], len(arrays["link"]), where),
        link=arrays["link"],
        amount=arrays["amount"],
        certificate=Certificate(arrays["lengths"], positive(about, "bound", where)),
        method=take_text(about, "method", where),
        status=Status(status),
        generators=arrays.get("generators"),
        provenance=provenance_from_json(about, where),
    )


def _routes_to_parts(routes: Routes) -> tuple[About, Arrays]:
    about = {} if routes.denominator is None else {"denominator": int(routes.denominator)}
    arrays = {
        "source": routes.source,
        "destination": routes.destination,
        "hops": np.diff(routes.start),
        "link": routes.link,
        "weight": routes.weight,
    }
    return about, arrays | _given(layer=routes.layer, hop_layer=routes.hop_layer)


def _routes_from_parts(about: About, arrays: Arrays, where: str) -> Routes:
    denominator = None
    if "denominator" in about:
        denominator = take_int(about, "denominator", where, MAX_INTEGER, 1)
    return Routes(
        problem=_problem(about, arrays, where),
        source=arrays["source"],
        destination=arrays["destination"],
        start=_starts(arrays["hops"], len(arrays["link"]), where),
        link=arrays["link"],
        weight=arrays["weight"],
        certificate=_certificate(about, arrays, where),
        method=take_text(about, "method", where),
        layer=arrays.get("layer"),
        hop_layer=arrays.get("hop_layer"),
        denominator=denominator,
        provenance=provenance_from_json(about, where),
    )


def _schedule_to_parts(schedule: Schedule) -> tuple[About, Arrays]:
    about = {"steps": int(schedule.steps)} | _claim("fractional_time", schedule.fractional_time)
    arrays = {key: getattr(schedule, key) for key in SENDS}
    if schedule.chunks.counts is None:
        return about | {"chunks_per_shard": schedule.chunks_per_shard}, arrays
    return about, arrays | {"chunks": schedule.chunks.counts}


def _schedule_from_parts(about: About, arrays: Arrays, where: str) -> Schedule:
    steps = take_int(about, "steps", where, MAX_NUMBERS)
    problem = _problem(about, arrays, where)
    if "chunks" in arrays:
        chunks = Chunks(problem.demand.terminals, counts=arrays["chunks"])
    else:
        chunks = Chunks.of_demand(problem.demand, take_int(about, "chunks_per_shard", where))
    return Schedule(
        problem=problem,
        chunks=chunks,
        steps=steps,
        step=arrays["step"],
        source=arrays["source"],
        destination=arrays["destination"],
        chunk=arrays["chunk"],
        link=arrays["link"],
        certificate=_certificate(about, arrays, where),
        fractional_time=_claimed("fractional_time", about, where),
        method=take_text(about, "method", where),
        provenance=provenance_from_json(about, where),
    )


@dataclass(frozen=True)
class Form:
    """How one noun becomes what is in `about` and arrays, and comes back from them."""

    kind: type[Noun]
    members: dict[str, Member]
    to_parts: Callable[[Any], tuple[About, Arrays]]
    from_parts: Callable[[About, Arrays, str], Noun]


SENDS = ("step", "source", "destination", "chunk", "link")
FORMATS: dict[str, Form] = {
    FLOW_FORMAT: Form(
        Flow,
        {
            "source": Member("integers", ("groups",)),
            "destination": Member("integers", ("groups",), required=False),
            "size": Member("integers", ("groups",)),
            "link": Member("integers", ("amounts",)),
            "amount": Member("numbers", ("amounts",)),
            "generators": Member("integers", ("generators", "nodes"), required=False),
        },
        _flow_to_parts,
        _flow_from_parts,
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
        _routes_to_parts,
        _routes_from_parts,
    ),
    SCHEDULE_FORMAT: Form(
        Schedule,
        {key: Member("integers", ("sends",)) for key in SENDS},
        _schedule_to_parts,
        _schedule_from_parts,
    ),
    UNEVEN_FORMAT: Form(
        Schedule,
        {key: Member("integers", ("sends",)) for key in SENDS}
        | {"chunks": Member("integers", ("terminals", "terminals"))},
        _schedule_to_parts,
        _schedule_from_parts,
    ),
}
"""The formats: the same names and the same content as in JSON."""
