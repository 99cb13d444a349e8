"""Small files with large claims are judged in little memory, and the largest files in 2 GiB."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alltoall.errors import DemandError, FormatError, UsageError
from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.artefacts import write_artefact
from alltoall.ir.files.json import values as json_values
from alltoall.ir.files.json.demand import demand_from_json
from alltoall.ir.files.json.saved_answers import answer_to_json
from alltoall.ir.files.json.values import parse_json, write_json
from alltoall.ir.files.npz import MAX_NUMBERS, MAX_TEXT
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from hop_schedules import hop_schedule

LIMIT = 2 << 30
"""Bytes of address space, in which the libraries of the command line take some 0.8 GiB."""

RING = Topology.from_edges("ring", 6, [(u, (u + 1) % 6) for u in range(6)])
SCHEDULE = hop_schedule(RING)


SCRIPT = """
import resource, sys
from alltoall.cli.app import run
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    print(path, "exit code", run(["verify", path]))
"""


def verify_within_limit(*paths: Path) -> str:
    """Run `alltoall verify` on files in a process of limited memory; return what it says."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(LIMIT), *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout + ran.stderr


def one_long_route(hops: int) -> Routes:
    """Return a route that goes forth and back over one cable."""
    there = int(np.flatnonzero((RING.tail == 0) & (RING.head == 1))[0])
    back = int(np.flatnonzero((RING.tail == 1) & (RING.head == 0))[0])
    return Routes(
        problem=Problem.all_to_all(RING),
        source=np.array([0]),
        destination=np.array([1]),
        start=np.array([0, hops]),
        link=np.tile([there, back], hops // 2 + 1)[:hops],
        weight=np.ones(1),
        certificate=Certificate(np.ones(12), 1.0),
        method="forged",
    )


def one_long_group(entries: int) -> Flow:
    """Return a flow of one group that names one link over and over."""
    return Flow(
        problem=Problem.all_to_all(RING),
        rate=1.0,
        source=np.array([0]),
        destination=np.array([1]),
        start=np.array([0, entries]),
        link=np.zeros(entries, dtype=np.int64),
        amount=np.ones(entries),
        certificate=Certificate(np.ones(12), 1.0),
        method="forged",
    )


def star(terminals: int) -> Topology:
    """Return so many terminals around a switch."""
    every, hub = np.arange(terminals), np.full(terminals, terminals)
    ends = (np.concatenate((every, hub)), np.concatenate((hub, every)))
    return Topology("star", terminals + 1, *ends, np.ones(2 * terminals), every)


def few_sends(topology: Topology) -> Schedule:
    """Return a schedule of one send between any number of terminals."""
    one = np.zeros(1, dtype=np.int64)
    return Schedule(
        problem=Problem.all_to_all(topology),
        chunks=Chunks(len(topology.terminals), 1),
        steps=1,
        step=one,
        source=one,
        destination=one + 1,
        chunk=one,
        link=one,
        certificate=Certificate(np.ones(topology.links), 1.0),
        fractional_time=1.0,
        method="forged",
    )


def as_many_sends_as_a_file_holds() -> Schedule:
    """Return a schedule that sends every chunk once, all over one link in one step."""
    shards = np.flatnonzero(~np.eye(6, dtype=np.bool_))
    chunks = (MAX_NUMBERS - 1000) // (5 * len(shards))
    shard, nothing = np.repeat(shards, chunks), np.zeros(len(shards) * chunks, dtype=np.int64)
    return replace(
        SCHEDULE,
        chunks=Chunks(6, chunks),
        steps=1,
        step=nothing,
        source=shard // 6,
        destination=shard % 6,
        chunk=np.tile(np.arange(chunks), len(shards)),
        link=nothing,
    )


def one_chunk_over_and_over() -> Schedule:
    """Return a schedule that repeats its last send as often as a file holds."""
    again = np.append(np.arange(SCHEDULE.sends), np.full(MAX_NUMBERS // 6, SCHEDULE.sends - 1))
    keys = ("step", "source", "destination", "chunk", "link")
    return replace(SCHEDULE, **{key: getattr(SCHEDULE, key)[again] for key in keys})


def few_commodities(topology: Topology) -> Flow:
    """Return a flow of one commodity between any number of terminals."""
    return Flow(
        problem=Problem.all_to_all(topology),
        rate=1.0,
        source=np.array([0]),
        destination=np.array([1]),
        start=np.array([0, 1]),
        link=np.array([0]),
        amount=np.ones(1),
        certificate=Certificate(np.ones(topology.links), 1.0),
        method="forged",
    )


FORGED: dict[str, tuple[Callable[[], Any], str]] = {
    "ten million chunks a shard": (
        lambda: replace(SCHEDULE, chunks=Chunks(SCHEDULE.chunks.ranks, 10**7)),
        "sends cannot deliver 300000000 chunks of all shards",
    ),
    "as many chunks as a number holds": (
        lambda: replace(SCHEDULE, chunks=Chunks(SCHEDULE.chunks.ranks, 2**31 - 1)),
        "sends cannot deliver",
    ),
    "one send between many terminals": (
        lambda: few_sends(star(50_000)),
        "1 sends cannot deliver 2499950000 chunks of all shards",
    ),
    "as many sends as a file holds, nearly all wrong": (
        as_many_sends_as_a_file_holds,
        "sends of chunks that are not there",
    ),
    "one chunk sent over and over": (one_chunk_over_and_over, "times; a path has at most 5 links"),
    "one commodity between many terminals": (
        lambda: few_commodities(star(50_000)),
        "where the demand has 2499950000",
    ),
    "a route of very many hops": (
        lambda: one_long_route(MAX_NUMBERS // 2),
        "links; a path in 6 nodes has at most 5",
    ),
    "a group of very many entries": (
        lambda: one_long_group(MAX_NUMBERS // 4),
        "entries for 12 links",
    ),
}


def test_large_claims_take_little_memory(tmp_path: Path) -> None:
    """Each is refused as a violation, not for want of memory; steps never used are no harm."""
    paths = [tmp_path / f"{number}.npz" for number in range(len(FORGED))]
    for path, (make, _) in zip(paths, FORGED.values(), strict=True):
        write_artefact(path, make())
    idle, empty = tmp_path / "idle.npz", tmp_path / "empty.json"
    write_artefact(idle, replace(SCHEDULE, steps=15_000_000))
    value = answer_to_json(SCHEDULE)
    value["steps"] += [[]] * 3_000_000
    empty.write_text(json.dumps(value))
    found = verify_within_limit(*paths, idle, empty)
    for path, (_, words) in zip(paths, FORGED.values(), strict=True):
        assert f"{path} exit code 4" in found
        assert words in found
    for path in (idle, empty):
        assert f"{path} exit code 0" in found


def test_json_beyond_memory_is_neither_read_nor_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What parsing takes is estimated from the text before it is parsed."""
    text = "[" + ",".join(["[]"] * 1000) + "]"
    assert json_values.parsed_bytes(text) == 64 * 1001 + 40 * 999
    monkeypatch.setattr(json_values, "MAX_PARSED", 100_000)
    with pytest.raises(FormatError, match=r"would take some 104,024 bytes.*\.npz"):
        parse_json(text, "file")
    with pytest.raises(UsageError, match="too large for JSON; save it in the compact form"):
        write_json(tmp_path / "x.json", {"rows": [[]] * 1000})
    assert not list(tmp_path.iterdir())


def test_parsed_bytes_are_not_less_than_what_is_taken() -> None:
    """Of arrays, objects and numbers, measured by their sizes."""
    text = json.dumps([{"src": i, "dst": i, "links": [1000 + i, 2000 + i]} for i in range(1000)])
    rows: Any = json.loads(text)
    taken = sys.getsizeof(rows)
    for row in rows:
        links = row["links"]
        taken += sys.getsizeof(row) + sys.getsizeof(links) + 4 * sys.getsizeof(links[0])
    assert taken <= json_values.parsed_bytes(text) <= 2 * taken


def test_a_sparse_demand_between_too_many_terminals_is_refused() -> None:
    """Its matrix would be larger than any file."""
    value = {"format": "alltoall.demand/1", "entries": [[0, 1, 1.0]]}
    with pytest.raises(DemandError, match="between 50,000 terminals; expected at most 5,792"):
        demand_from_json(value, star(50_000), "file")


def test_a_long_text_is_not_written(tmp_path: Path) -> None:
    """The reader would refuse it."""
    with pytest.raises(UsageError, match="characters"):
        write_artefact(tmp_path / "x.npz", replace(SCHEDULE, method="x" * MAX_TEXT))
