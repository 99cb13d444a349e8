"""Flows, routes and schedules as the arrays of a .npz file; docs/formats.md describes it.

`MEMBERS` lists the arrays of each format; the rest is in the JSON text `about`. Runs of links are
stored as their lengths, which take less room than their starts.

A .npz file is a zip archive with one .npy file per array, as `numpy.load` reads it. Files are
untrusted, and `numpy.load` allocates whatever a header asks for. This reader checks the directory,
every header, and the shapes against each other before it inflates anything, and never unpickles.
"""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, UsageError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
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
from alltoall.ir.files.text import MAX_FILE_BYTES
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Array: TypeAlias = NDArray[Any]

MAX_NUMBERS = 1 << 26
"""Most numbers in one file, of eight bytes each, so that checks fit in 2 GiB."""

MAX_TEXT = 1 << 23
"""Most characters of a text: a name, a method, notes, and the names of hundreds of thousands of
nodes."""

MAGIC = b"\x93NUMPY\x01\x00"
MAX_HEADER = 1024
WIDTHS = {
    "integers": ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8"),
    "numbers": ("<f4", "<f8"),
}
"""The types that arrays of each kind may have in a file: little-endian on every machine."""

_HEADER = re.compile(
    rb"\{'descr': '([<|][iuf][1248]|<U[0-9]{1,9})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,12},(?: [0-9]{1,12})?)?)\), \} *\n"
)


@dataclass(frozen=True)
class ArrayHeader:
    """The type and shape of an array, and the offset of its numbers in its file."""

    descr: str
    shape: tuple[int, ...]
    offset: int

    @property
    def is_text(self) -> bool:
        """Whether this is text, in UTF-32."""
        return self.descr[1] == "U"

    @property
    def numbers(self) -> int:
        """The number of entries; of a text, of characters."""
        return math.prod(self.shape) * (int(self.descr[2:]) if self.is_text else 1)

    @property
    def end(self) -> int:
        """The size of the file that holds exactly this array."""
        return self.offset + self.numbers * (4 if self.is_text else int(self.descr[2:]))


def parse_header(start: bytes, where: str) -> ArrayHeader:
    """Return the header at the start of a .npy file, as numpy writes it for our types only.

    Objects, records and dates, which only `pickle` could read, are refused.
    """
    begin = len(MAGIC) + 2
    length = int.from_bytes(start[len(MAGIC) : begin], "little")
    match = _HEADER.fullmatch(start[begin : begin + length])
    if not start.startswith(MAGIC) or match is None:
        raise FormatError(f"{where} is no .npy file of integers, floats or text")
    shape = tuple(int(size) for size in re.findall(rb"[0-9]+", match[2]))
    header = ArrayHeader(match[1].decode(), shape, begin + length)
    limit, words = (MAX_TEXT, "characters") if header.is_text else (MAX_NUMBERS, "numbers")
    if header.numbers > limit:
        raise FormatError(f"{where} has {header.numbers:,} {words}; expected at most {limit:,}")
    return header


def narrow(array: Array) -> Array:
    """Return the same values in the smallest type that holds all of them exactly."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError("a number that is not finite; an artefact has none")
        with np.errstate(over="ignore", under="ignore"):
            single = array.astype("<f4")
        exact = np.array_equal(single, array)
        return np.ascontiguousarray(array, "<f4" if exact else "<f8")
    least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
    limits = ((descr, np.iinfo(descr)) for descr in WIDTHS["integers"])
    descr = next(descr for descr, info in limits if info.min <= least and most <= info.max)
    return np.ascontiguousarray(array, descr)


def widen(data: bytes, header: ArrayHeader, key: str) -> Array:
    """Return the numbers of a .npy file, read-only, as int64 or float64, all of them finite."""
    array = np.frombuffer(data, header.descr, offset=header.offset).reshape(header.shape)
    if header.descr[1] == "f" and not np.isfinite(array).all():
        raise ValueError(f"{key} has a number that is not finite")
    wide = array.astype(np.float64 if header.descr[1] == "f" else np.int64, copy=False)
    wide.setflags(write=False)
    return wide


SUFFIX = ".npy"
LEVEL = 1
"""Level of compression: a million routes shrink fourfold in 0.2 s; higher ones gain little."""

MAX_DIRECTORY = 1 << 16
"""Most bytes of the archive's directory; ours have some seventy for each array."""

END, END_SIGN = struct.Struct("<4s4H2LH"), b"PK\x05\x06"
LOCATOR_BYTES, LOCATOR_SIGN = 20, b"PK\x06\x07"

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    RuntimeError,  # and those that zipfile derives from it
    EOFError,
    LookupError,
    OSError,
    ValueError,
)
"""Errors of `zipfile` for damaged, encrypted or malicious archives."""


@dataclass(frozen=True)
class Member:
    """The kind of an array, "integers", "numbers" or "text", and the names of its dimensions.

    Dimensions of the same name have the same size in all arrays of a file.
    """

    kind: str
    shape: tuple[str, ...] = ()
    required: bool = True


def pack(arrays: Mapping[str, Array | str]) -> bytes:
    """Return the archive of some arrays and texts, each in the smallest type that holds it."""
    texts = [len(each) for each in arrays.values() if isinstance(each, str)]
    numbers = [each.size for each in arrays.values() if not isinstance(each, str)]
    _require_at_most(MAX_NUMBERS, sum(texts + numbers), "numbers")
    _require_at_most(MAX_TEXT, max(texts, default=0), "characters")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for key, value in arrays.items():
            array = np.array(value, dtype="<U") if isinstance(value, str) else narrow(value)
            # The size is not known yet, and large members need a larger entry.
            with archive.open(key + SUFFIX, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    _require_at_most(MAX_FILE_BYTES, len(buffer.getbuffer()), "bytes")
    return buffer.getvalue()


def _require_at_most(limit: int, found: int, words: str) -> None:
    """Refuse to write files that the reader would refuse."""
    if found > limit:
        raise UsageError(f"an artefact of {found:,} {words}; a file holds at most {limit:,}")


def unpack(data: bytes, members: Mapping[str, Member], where: str) -> dict[str, Array]:
    """Return the arrays of an archive, without texts; it must have exactly these members."""
    with _open(data, where) as archive:
        infos = {info.filename.removesuffix(SUFFIX): info for info in archive.infolist()}
        strange = sorted(infos.keys() - members.keys())
        if strange or len(infos) != len(archive.infolist()):
            found = f"the array {strange[0][:60]!r}" if strange else "an array twice"
            raise FormatError(f"{where}: has {found}; expected {', '.join(members)}")
        missing = [key for key, member in members.items() if member.required and key not in infos]
        if missing:
            raise FormatError(f"{where}: has no array {missing[0]!r}; the file may be incomplete")
        headers = {key: _header(archive, infos[key], where) for key in members if key in infos}
        for key, header in headers.items():
            _check_kind(key, header, members[key], where)
        # Refuse different sizes of dimensions of one name, and too many numbers in all.
        sizes: dict[str, tuple[int, str]] = {}
        for key, header in headers.items():
            for name, size in zip(members[key].shape, header.shape, strict=True):
                known, owner = sizes.setdefault(name, (size, key))
                if known != size:
                    found = f"{owner} is for {known:,} {name} and {key} for {size:,}"
                    raise FormatError(f"{where}: {found}; expected the same")
        total = sum(header.numbers for header in headers.values())
        if total > MAX_NUMBERS:
            raise FormatError(f"{where}: {total:,} numbers; expected at most {MAX_NUMBERS:,}")
        return {
            key: widen(_inflate(archive, key, header), header, key)
            for key, header in headers.items()
            if not header.is_text
        }


def read_texts(data: bytes, keys: tuple[str, ...], where: str) -> dict[str, str]:
    """Return the existing ones of some texts of an archive."""
    with _open(data, where) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        found = {}
        for key in (key for key in keys if key + SUFFIX in infos):
            header = _header(archive, infos[key + SUFFIX], where)
            _check_kind(key, header, Member("text"), where)
            text = _inflate(archive, key, header)[header.offset :].decode("utf-32-le")
            found[key] = text.rstrip("\0")
        return found


@contextmanager
def _open(data: bytes, where: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive after a check of the size of its directory, all of which `zipfile` reads.

    The longer form of the directory's end is for archives beyond our limits, and could contradict
    the shorter one.
    """
    end = data[-END.size :]
    if len(end) < END.size or not end.startswith(END_SIGN):
        raise FormatError(f"{where}: the archive has no end; the file may be truncated")
    count, size = END.unpack(end)[4:6]
    if size > MAX_DIRECTORY or data[: -END.size][-LOCATOR_BYTES:].startswith(LOCATOR_SIGN):
        raise FormatError(
            f"{where}: an archive with a directory of {size:,} bytes; expected an alltoall "
            f"artefact, with at most {MAX_DIRECTORY:,}"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) != count:  # an optional array may hide in a comment
                raise EOFError(f"{len(archive.infolist())} members of {count} are found")
            yield archive
    except BROKEN as error:
        raise FormatError(f"{where}: a damaged archive: {error}; write the file again") from None


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> ArrayHeader:
    """Read the header of one array; its size must be what the directory says."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise FormatError(f"{where}: an archive that is encrypted or of an unknown compression")
    with archive.open(info) as file:
        header = parse_header(file.read(len(MAGIC) + 2 + MAX_HEADER), f"{where}: {info.filename}")
    if header.end != info.file_size:
        raise FormatError(
            f"{where}: {info.filename} has {info.file_size:,} bytes, but with type {header.descr} "
            f"and shape {header.shape} it would have {header.end:,}"
        )
    return header


def _check_kind(key: str, header: ArrayHeader, member: Member, where: str) -> None:
    sound = header.is_text if member.kind == "text" else header.descr in WIDTHS[member.kind]
    if not sound or len(header.shape) != len(member.shape):
        raise FormatError(
            f"{where}: {key} has type {header.descr} and shape {header.shape}; expected "
            f"{member.kind} in {len(member.shape)} dimensions"
        )


def _inflate(archive: zipfile.ZipFile, key: str, header: ArrayHeader) -> bytes:
    """Read one array with a checked header, and no more bytes than it announces."""
    with archive.open(key + SUFFIX) as file:
        data = file.read(header.end)
    if len(data) != header.end:
        raise EOFError(f"{key} ends after {len(data):,} of {header.end:,} bytes")
    return data


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
