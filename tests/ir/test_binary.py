"""The compact form: exact round trips, and a clear error for every file that is not one."""

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import FormatError, InputError, UsageError
from alltoall.ir.answer import Certificate
from alltoall.ir.files import npz as archive
from alltoall.ir.files.artefacts import read_artefact, read_as, write_artefact
from alltoall.ir.files.json.saved_answers import Artefact
from alltoall.ir.files.npz import artefact_from_bytes, artefact_to_bytes
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from hop_schedules import hop_schedule
from strategies import flows, routes, schedules

TOPOLOGY = Topology.from_edges("triangle", 3, [(0, 1), (1, 2), (0, 2)], notes=["by hand"])
PROBLEM = Problem.all_to_all(TOPOLOGY)
CERTIFICATE = Certificate(np.ones(6), 1.0)
ROUTES = Routes(
    problem=PROBLEM,
    source=TOPOLOGY.tail,
    destination=TOPOLOGY.head,
    start=np.arange(7),
    link=np.arange(6),
    weight=np.ones(6),
    certificate=CERTIFICATE,
    method="direct",
    layer=np.zeros(6, dtype=np.int64),
    denominator=1,
)
FLOW = Flow(
    problem=PROBLEM,
    rate=1.0,
    source=np.arange(3),
    destination=None,
    start=np.arange(0, 7, 2),
    link=np.arange(6),
    amount=np.ones(6),
    certificate=CERTIFICATE,
    method="direct",
    generators=np.array([[1, 2, 0]]),
)
SCHEDULE = hop_schedule(TOPOLOGY)
DATA = artefact_to_bytes(ROUTES)


def same(found: object, expected: object) -> bool:
    """Whether two nouns, or parts of them, are equal in every bit and type."""
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and found.dtype == expected.dtype
            and found.shape == expected.shape
            and found.tobytes() == expected.tobytes()
            and not found.flags.writeable
        )
    if hasattr(expected, "__dataclass_fields__"):
        keys = [field.name for field in fields(expected)]  # type: ignore[arg-type]
        return all(same(getattr(found, key), getattr(expected, key)) for key in keys)
    return type(found) is type(expected) and found == expected


@given(noun=flows() | routes() | schedules())
def test_round_trips_are_exact(noun: Artefact) -> None:
    """Whatever a noun holds comes back bit by bit, and is written in the same bytes again."""
    data = artefact_to_bytes(noun)
    again = artefact_from_bytes(data, "file")
    assert same(again, noun)
    assert artefact_to_bytes(again) == data


@pytest.mark.parametrize("noun", [FLOW, ROUTES, SCHEDULE], ids=lambda noun: type(noun).__name__)
@pytest.mark.parametrize("name", ["x.npz", "X.NPZ", "x.json"])
def test_the_path_chooses_the_form_and_the_content_tells_it(
    tmp_path: Path, noun: Artefact, name: str
) -> None:
    """Only .npz is binary when written; when read, the name does not matter."""
    saved, moved = tmp_path / name, tmp_path / "moved"
    write_artefact(saved, noun)
    assert (saved.read_bytes()[:2] == b"PK") == (name != "x.json")
    saved.rename(moved)
    assert same(read_artefact(moved), noun)
    assert same(read_as(moved, type(noun)), noun)
    other = Flow if isinstance(noun, Routes) else Routes
    with pytest.raises(FormatError, match=r"format is 'alltoall\.\w+/1'; expected 'alltoall"):
        read_as(moved, other)


def test_numpy_reads_the_file() -> None:
    """The arrays are there for everyone, in the smallest types that hold them, without pickle."""
    with np.load(io.BytesIO(DATA), allow_pickle=False) as found:
        assert str(found["format"]) == "alltoall.routes/1"
        assert json.loads(str(found["about"]))["name"] == "triangle"
        assert found["link"].dtype == np.uint8
        assert found["weight"].dtype == np.float32
        assert found["link"].tolist() == list(range(6))


def changed(data: bytes, **changes: Any) -> bytes:
    """Return an archive with some of its arrays replaced; None leaves an array out."""
    with np.load(io.BytesIO(data), allow_pickle=False) as old:
        arrays = {key: old[key] for key in old} | changes
    buffer = io.BytesIO()
    np.savez(buffer, **{key: value for key, value in arrays.items() if value is not None})
    return buffer.getvalue()


def about(data: bytes, **changes: Any) -> bytes:
    """Return an archive with some entries of `about` replaced; None leaves an entry out."""
    with np.load(io.BytesIO(data), allow_pickle=False) as old:
        entries = json.loads(str(old["about"])) | changes
    kept = {key: value for key, value in entries.items() if value is not None}
    return changed(data, about=json.dumps(kept))


def repacked(data: bytes, method: int = zipfile.ZIP_STORED, **extra: bytes) -> bytes:
    """Return the archive packed by another method, with more members, of the same name even."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, extra.pop(name.removesuffix(".npy"), old.read(name)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, content in extra.items():
                new.writestr(name.removesuffix("_again") + ".npy", content)
    return buffer.getvalue()


def header(descr: str, shape: str, order: str = "False") -> bytes:
    """Return a .npy file that has no numbers at all."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def encrypted(data: bytes) -> bytes:
    """Return the archive with the flag of its first member in the directory set to encrypted."""
    place = data.index(b"PK\x01\x02") + 8
    return data[:place] + b"\x01" + data[place + 1 :]


def swallowed(data: bytes) -> bytes:
    """Return the archive with its last entry made a comment on the one before."""
    last = data.rindex(b"PK\x01\x02")
    before, length = data.rindex(b"PK\x01\x02", 0, last), len(data) - 22 - last
    return data[: before + 32] + struct.pack("<H", length) + data[before + 34 :]


class Trap:
    """Fails the test if it is ever unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return pytest.fail, ("a file was unpickled",)


HUGE = np.array([2**62, 2**62, 2**62, 2**62, 0, 6])
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing but the sign": (lambda: b"PK", "truncated"),
    "half of it": (lambda: DATA[: len(DATA) // 2], "truncated"),
    "without its last byte": (lambda: DATA[:-1], "truncated"),
    "without its middle": (lambda: DATA[:200] + DATA[-900:], "damaged|no .npy"),
    "pickled objects": (lambda: changed(DATA, link=np.array([Trap()], dtype=object)), "no .npy"),
    "records": (lambda: changed(DATA, link=np.zeros(6, dtype="i4,i4")), "no .npy"),
    "dates": (lambda: changed(DATA, link=np.zeros(6, dtype="M8[s]")), "no .npy"),
    "complex numbers": (lambda: changed(DATA, weight=np.ones(6, dtype=complex)), "no .npy"),
    "big-endian integers": (lambda: changed(DATA, link=np.arange(6, dtype=">i4")), "no .npy"),
    "a column-major matrix": (
        lambda: changed(DATA, demand=np.asfortranarray(np.arange(9.0).reshape(3, 3))),
        "no .npy",
    ),
    "unsigned of 64 bits": (lambda: changed(DATA, link=np.arange(6, dtype="u8")), "type <u8"),
    "half precision": (lambda: changed(DATA, weight=np.ones(6, dtype="f2")), "type <f2"),
    "integers for weights": (lambda: changed(DATA, weight=np.ones(6, dtype=int)), "type <i8"),
    "floats for links": (lambda: changed(DATA, link=np.arange(6.0)), "expected integers"),
    "numbers for the format": (lambda: changed(DATA, format=np.array(3)), "expected text"),
    "a row of formats": (lambda: changed(DATA, format=np.array(["a"])), "shape .1,."),
    "a later format": (lambda: changed(DATA, format="alltoall.routes/2"), "routes/2.*expected one"),
    "another noun's format": (lambda: changed(DATA, format="alltoall.flow/1"), "has the array"),
    "no format": (lambda: changed(DATA, format=None), 'no array "format"'),
    "no links": (lambda: changed(DATA, link=None), "no array 'link'"),
    "an array of its own": (lambda: changed(DATA, mine=np.zeros(3)), "has the array 'mine'"),
    "a weight missing": (lambda: changed(DATA, weight=np.ones(5)), "source is for 6 routes and"),
    "an end missing": (lambda: changed(DATA, head=np.zeros(5, int)), "tail is for 6 links and"),
    "a matrix of links": (lambda: changed(DATA, link=np.zeros((6, 1), int)), "1 dimensions"),
    "a demand that is not square": (lambda: changed(DATA, demand=np.ones((3, 2))), "terminals"),
    "a demand of too few": (lambda: changed(DATA, demand=np.ones((2, 2))), "terminals"),
    "a demand on the diagonal": (lambda: changed(DATA, demand=np.ones((3, 3))), "itself"),
    "NaN": (lambda: changed(DATA, weight=np.full(6, np.nan)), "weight has a number that is not"),
    "infinity": (lambda: changed(DATA, lengths=np.full(6, np.inf)), "lengths has a number that"),
    "a negative capacity": (lambda: changed(DATA, capacity=-np.ones(6)), "capacity -1"),
    "a link that is not there": (lambda: changed(DATA, link=np.arange(1, 7)), "link 6"),
    "hops that overflow": (lambda: changed(DATA, hops=HUGE), "do not add up to 6"),
    "hops below nothing": (lambda: changed(DATA, hops=np.array([-1, 2, 2, 1, 1, 1])), "add up"),
    "a route of no hops": (lambda: changed(DATA, hops=np.array([0, 2, 1, 1, 1, 1])), "at least"),
    "a million million nodes": (lambda: about(DATA, nodes=10**12), "1000000000000 nodes"),
    "nodes in words": (lambda: about(DATA, nodes="three"), 'nodes is "three"'),
    "notes that are no text": (lambda: about(DATA, notes=[3]), "notes is"),
    "no name": (lambda: about(DATA, name=None), "name is missing"),
    "no method": (lambda: about(DATA, method=None), "method is missing"),
    "a negative bound": (lambda: about(DATA, bound=-1.0), "bound is -1"),
    "no denominator": (lambda: about(DATA, denominator=0), "denominator is 0"),
    "about nothing": (lambda: changed(DATA, about="[]"), "expected an object"),
    "about what is no JSON": (lambda: changed(DATA, about='{"a":NaN}'), "NaN"),
    "half a surrogate": (
        lambda: repacked(DATA, about=header("'<U1'", "()") + b"\x00\xd8\x00\x00"),
        "damaged",
    ),
    "an array twice": (lambda: repacked(DATA, link_again=b""), "an array twice"),
    "a header only": (lambda: repacked(DATA, link=header("'|u1'", "(6,)")), "would have"),
    "a bomb": (lambda: repacked(DATA, link=header("'|u1'", f"({10**11},)")), "100,000,000,000"),
    "a bomb of text": (lambda: repacked(DATA, about=header("'<U999999999'", "()")), "999,999,999"),
    "a bomb of dimensions": (lambda: repacked(DATA, link=header("'|u1'", "(9, 9, 9)")), "no .npy"),
    "code in a header": (lambda: repacked(DATA, link=header("exit()", "(6,)")), "no .npy"),
    "not an array": (lambda: repacked(DATA, link=b"hello"), "no .npy"),
    "a lot of members": (
        lambda: repacked(DATA, 0, **{f"{index:060}": b"" for index in range(1000)}),
        "a directory of",
    ),
    "a second directory": (
        lambda: DATA[:-22] + b"PK\x06\x07" + bytes(16) + DATA[-22:],
        "a directory of",
    ),
    "another compression": (lambda: repacked(DATA, zipfile.ZIP_BZIP2), "unknown compression"),
    "a member in the comment of another": (lambda: swallowed(DATA), "12 members of 13"),
    "an encrypted member": (lambda: encrypted(DATA), "encrypted"),
    "a rate of nothing": (lambda: about(artefact_to_bytes(FLOW), rate=0.0), "rate is 0"),
    "an unknown status": (lambda: about(artefact_to_bytes(FLOW), status="great"), "great"),
    "a flow without a bound": (lambda: about(artefact_to_bytes(FLOW), bound=None), "bound is"),
    "generators of other nodes": (
        lambda: changed(artefact_to_bytes(FLOW), generators=np.zeros((1, 4), int)),
        "the generators of the flow do not fit",
    ),
    "generators that are no images": (
        lambda: changed(artefact_to_bytes(FLOW), generators=np.array([[1, 2, 3]])),
        "generator 3; expected 0..2",
    ),
    "a schedule without end": (lambda: about(artefact_to_bytes(SCHEDULE), steps=10**15), "steps"),
    "a schedule without steps": (lambda: about(artefact_to_bytes(SCHEDULE), steps=0), "0 steps"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused(case: str) -> None:
    """Nothing but a `FormatError`, which names the file and what is wrong in it."""
    make, words = HOSTILE[case]
    with pytest.raises(FormatError, match=words) as caught:
        artefact_from_bytes(make(), "the file")
    assert str(caught.value).startswith("the file")


@given(place=st.integers(0, len(DATA) - 1), byte=st.integers(0, 255))
def test_one_wrong_byte_never_does_harm(place: int, byte: int) -> None:
    """A file with a byte replaced is refused as one, or it still says the same."""
    data = DATA[:place] + bytes([byte]) + DATA[place + 1 :]
    with suppress(FormatError):
        assert same(artefact_from_bytes(data, "file"), ROUTES)


def test_numbers_are_counted_before_anything_is_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for each array and for all of them together, when read and when written."""
    monkeypatch.setattr(archive, "_inflate", lambda *_: pytest.fail("inflated"))
    for limit, words in ((5, "tail.npy has 6"), (150, "numbers; expected at most 150")):
        monkeypatch.setattr(archive, "MAX_NUMBERS", limit)
        with pytest.raises(FormatError, match=words):
            archive.unpack(DATA, _members(), "file")
        with pytest.raises(UsageError, match=f"a file holds at most {limit}"):
            artefact_to_bytes(ROUTES)


def _members() -> dict[str, archive.Member]:
    """Return what a file of routes has."""
    from alltoall.ir.files.npz import COMMON, MEMBERS

    return COMMON | MEMBERS["alltoall.routes/1"]


def test_what_no_reader_takes_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither numbers that are not finite nor a file beyond the limit; what was there stays."""
    path = tmp_path / "x.npz"
    write_artefact(path, ROUTES)
    with pytest.raises(ValueError, match="not finite"):
        write_artefact(path, replace(ROUTES, weight=np.full(6, np.inf)))
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 100)
    with pytest.raises(UsageError, match="bytes; a file holds at most 100"):
        write_artefact(path, ROUTES)
    assert path.read_bytes() == DATA
    assert [each.name for each in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format":"alltoall.topology/1"}', "expected one of alltoall.flow/1"),
        ("[]", "no .format."),
    ],
)
def test_json_that_is_no_artefact(tmp_path: Path, text: str, words: str) -> None:
    """A topology or a bare array is told what would do."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_artefact(path)


def test_schedules_have_their_steps() -> None:
    """A last step without sends is not forgotten."""
    longer = replace(SCHEDULE, steps=SCHEDULE.steps + 2)
    found = artefact_from_bytes(artefact_to_bytes(longer), "file")
    assert isinstance(found, Schedule)
    assert found.steps == longer.steps
