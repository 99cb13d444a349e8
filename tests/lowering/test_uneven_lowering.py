"""Shards of all sizes through every target that can hold them, and through a run in one process."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall
from alltoall.check.schedule import check_schedule
from alltoall.cli.wording import lines_of
from alltoall.errors import AlltoallError, FormatError, InputError, UsageError, VerificationError
from alltoall.flows import prove
from alltoall.ir.chunks import Chunks, PerShard, shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, parse_lowered, targets_for
from alltoall.lowering.tables.routed_file import RoutedFile
from alltoall.runtime.in_process import Alltoall
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.spec import build
from alltoall.verification import verify_text
from hop_schedules import hop_schedule, uneven_hops
from lowered_files import SIMULATED, check_lowered
from uneven_cases import CASES, uneven_problems

FULL = Problem(
    build("ring:4"), Demand(4, np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0.0]]))
)
"""Every rank sends and receives, in chunks of one size."""


def exchanged(schedule: Schedule, shard: PerShard) -> None:
    """Move random bytes by a schedule in one process; compare all of them."""
    random, ranks = np.random.default_rng(0), shard.ranks
    sent = [[random.bytes(int(shard.of(np.array(s), np.array(d)))) for d in range(ranks)]
            for s in range(ranks)]  # fmt: skip
    send = [np.frombuffer(b"".join(row), dtype=np.uint8) for row in sent]
    recv = [np.zeros(size, dtype=np.uint8) for size in shard.outputs().tolist()]
    Alltoall(schedule)(send, recv, shard)
    for to in range(ranks):
        assert recv[to].tobytes() == b"".join(sent[source][to] for source in range(ranks))


@pytest.mark.parametrize("target", ["messages", "oneccl"])
@pytest.mark.parametrize("name", CASES)
def test_uneven_files_do_the_all_to_all(name: str, target: str) -> None:
    """Ranks that send or receive nothing, pure relays, and any number of chunks of a pair."""
    schedule = CASES[name]
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    text = TARGETS[target].emit(schedule, Options())
    found = verify_text(text, target, schedule.problem.topology, prove)
    assert (found["correct"], found["chunks"]) == (True, schedule.chunks.total)
    assert found["max_chunks_per_shard"] == schedule.chunks.most
    lowered = parse_lowered(text, "file")[1]
    assert not isinstance(lowered, RoutedFile)
    assert lowered.chunks.rows() == schedule.chunks.rows()
    if target == "messages":
        assert found["time"] == pytest.approx(schedule.time)
    assert found.get("chunk_sizes") == (None if target == "messages" else "equal")


@pytest.mark.parametrize("target", SIMULATED)
@pytest.mark.parametrize("name", CASES)
def test_uneven_traffic_is_that_of_the_schedule(name: str, target: str) -> None:
    """Files for simulators say how large each shard is, and send what the schedule does."""
    check_lowered(target, CASES[name], shard_bytes=1 << 30)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_uneven_runs_move_every_byte(name: str, size: int) -> None:
    """Demand times bytes, to the nearest byte, whatever the number of chunks."""
    schedule = CASES[name]
    exchanged(schedule, shards_of(schedule.problem.demand, size))


def test_sizes_of_a_call_are_free() -> None:
    """A schedule is a template: any bytes for any of its pairs, also none, and own shards."""
    schedule, ranks = CASES["torus"], 9
    counts = np.random.default_rng(3).integers(0, 50, (ranks, ranks))
    kept = (schedule.chunk_counts() > 0) | np.eye(ranks, dtype=bool)
    exchanged(schedule, PerShard(ranks, counts=np.where(kept, counts, 0)))
    exchanged(hop_schedule(build("torus:3x3"), 2), PerShard(ranks, counts=counts))


def test_bytes_are_rounded_to_the_nearest() -> None:
    """Halves go to the even number, as said; a rank has no shard of its own."""
    demand = Demand(3, np.array([[0, 0.5, 1.5], [0.26, 0, 0], [1e-9, 2, 0.0]]))
    assert shards_of(demand, 5).rows() == [[0, 1, 2], [0, 2, 8], [1, 0, 1], [2, 1, 10]]
    assert shards_of(Demand(3), 5).per_shard == 5
    with pytest.raises(UsageError, match="expected fewer"):
        shards_of(demand, 10**19)


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        (None, "give the bytes of a shard of size 1, or a matrix"),
        (3, "rank 0 has 10 bytes to send and room for 10; expected"),
        (np.zeros((2, 2), dtype=int), "expected 6 rows and columns"),
        (-np.eye(6, dtype=int), "-1 of one shard; expected 0 to"),
        (np.ones((6, 6), dtype=int), "a pair without demand in this schedule; expected 0 bytes"),
    ],
)
def test_sizes_that_do_not_fit(sizes: object, problem: str) -> None:
    """What is missing or does not fit is refused before a byte moves."""
    buffers = [np.zeros(10, dtype=np.uint8) for _ in range(6)]
    with pytest.raises(UsageError, match=problem):
        Alltoall(CASES["ring"])(buffers, buffers, sizes)  # type: ignore[arg-type]


def test_plans_of_equal_chunks() -> None:
    """MSCCL++ takes uneven shards where every rank has some, and channels cut them further."""
    schedule = uneven_hops(FULL, Chunks.of_demand(FULL.demand, 1))
    assert schedule.padding == pytest.approx(0.0)
    for channels in (1, 2):
        text = TARGETS["mscclpp"].emit(schedule, Options(channels=channels))
        found = verify_text(text, "plan", FULL.topology, prove)
        assert (found["chunks"], found["max_chunks_per_shard"]) == (16 * channels, 2 * channels)
        assert found["time"] == pytest.approx(schedule.time / 2)
        assert found["bound"] == pytest.approx(prove(FULL).bound / 2)
    for target in ("oneccl", "messages"):
        text = TARGETS[target].emit(schedule, Options(channels=3))
        assert verify_text(text, target, FULL.topology)["correct"]


def test_sizes_that_a_file_does_not_have_are_said(tmp_path: Path) -> None:
    """A time on a topology is one of equal chunks then; what is even, or not timed, is exact."""
    schedule, file = CASES["ring"], tmp_path / "file"
    topology = schedule.problem.topology
    lowered = alltoall.lower(schedule, to="oneccl")
    assert lowered.facts["time"] == pytest.approx(schedule.time)
    assert "chunk_sizes" not in lowered.facts
    lowered.save(file)
    facts = alltoall.verify(file, topology=topology).facts
    assert facts["chunk_sizes"] == "equal"
    assert "take all chunks to be equal" in lines_of(facts)["sizes"]
    assert "chunk_sizes" not in alltoall.verify(file).facts
    alltoall.lower(hop_schedule(topology), to="oneccl").save(file)
    assert "chunk_sizes" not in alltoall.verify(file, topology=topology).facts


def test_chunks_of_several_sizes_are_padded() -> None:
    """As large as the largest, and what that costs is known."""
    matrix = np.array([[0, 1.0], [0.5, 0]])
    problem = Problem(build("ring:2"), Demand(2, matrix))
    schedule = uneven_hops(problem, Chunks(2, counts=np.array([[0, 2], [2, 0]])))
    assert schedule.padding == pytest.approx(4 * 0.5 / 1.5 - 1)


def test_what_targets_cannot_hold_is_refused_with_a_way_out() -> None:
    """Shards of one size: the message says what takes others, and what padding costs."""
    with pytest.raises(InputError, match=r"one size only.*mscclpp or oneccl, or pad .* 844% m"):
        TARGETS["msccl"].emit(CASES["ring"], Options())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("channels", [1, 2])
def test_plans_admit_ranks_that_only_relay(name: str, channels: int) -> None:
    """An executor needs an input or an output: such a rank copies a chunk of its own."""
    schedule = CASES[name]
    text = TARGETS["mscclpp"].emit(schedule, Options(channels=channels))
    assert verify_text(text, "plan", schedule.problem.topology)["correct"]
    gpus, inputs = json.loads(text)["gpus"], schedule.chunks.inputs() * channels
    assert (gpus[2]["input_chunks"], gpus[2]["output_chunks"]) == (1, 1)
    assert all(gpu["input_chunks"] + gpu["output_chunks"] > 0 for gpu in gpus)
    assert all(gpu["input_chunks"] == inputs[gpu["id"]] for gpu in gpus if inputs[gpu["id"]])
    assert min(len(gpu["threadblocks"]) for gpu in gpus) > 0


@pytest.mark.parametrize("target", targets_for(Schedule))
def test_a_matrix_that_says_uniform_is_uniform(target: str) -> None:
    """Where each pair is told the same, all targets take it."""
    problem = Problem(build("ring:4"), Demand(4, 2 - 2 * np.eye(4)))
    schedule = uneven_hops(problem, Chunks.of_demand(problem.demand, 1))
    check_lowered(target, schedule)


SHARDS = {
    "a rank that is none": ('from="0"', 'from="9"', "9 to rank"),
    "no chunk": ('chunks="4"', 'chunks="0"', "at least one chunk"),
    "an attribute": ("<shard from", '<shard x="1" from', "has other attributes"),
    "a pair twice": ('<shard from="0" to="4"', '<shard from="0" to="5"', "each pair once"),
    "other buffers": ('chunks="4"', 'chunks="5"', "the sums over its shards"),
    "after a rank": ("</schedule>", '<shard from="1" to="0" chunks="1"/></schedule>', "expected"),
    "both": ('version="2"', 'version="2" chunks-per-shard="1"', "has other attributes"),
    "the first version": ('version="2"', 'version="1"', "lacks some"),
}


@pytest.mark.parametrize("case", SHARDS)
def test_bad_shards_are_refused_by_name(case: str) -> None:
    """Shards in oneCCL files that are not one number for each pair."""
    old, new, problem = SHARDS[case]
    text = TARGETS["oneccl"].emit(CASES["ring"], Options())
    assert old in text
    with pytest.raises(FormatError, match=re.escape(problem)):
        parse_lowered(text.replace(old, new, 1), "file")


@pytest.mark.parametrize(
    ("shards", "problem"),
    [
        ([[0, 1]], "expected two GPUs and a number of chunks"),
        ([[0, 1, -1]], "expected non-negative integers"),
        ([[0, 9, 1]], "expected two of 4 ranks"),
        ([], "0 chunks per shard"),
        ("all", "shards is"),
        ([[0, 1, 1]], "the sums over its shards"),
    ],
)
def test_bad_shards_of_plans(shards: object, problem: str) -> None:
    """Shards in MSCCL++ plans that are not one number for each pair."""
    schedule = uneven_hops(FULL, Chunks.of_demand(FULL.demand, 1))
    plan = json.loads(TARGETS["mscclpp"].emit(schedule, Options()))
    with pytest.raises(FormatError, match=problem):
        parse_lowered(json.dumps(plan | {"shards": shards}), "file")


def test_chunks_in_the_wrong_shard_are_found() -> None:
    """The judge knows where the chunks of each pair belong."""
    text = TARGETS["oneccl"].emit(CASES["ring"], Options())
    swapped = re.sub(
        r'(<receive .*? buffer="output" offset=")0(" count="1"/>)', r"\g<1>1\g<2>", text, count=1
    )
    assert swapped != text
    with pytest.raises(VerificationError, match="of the shard from rank"):
        verify_text(swapped, "file")


@given(problem=uneven_problems(), chunks=st.none() | st.integers(1, 3))
@settings(max_examples=20)
def test_random_fabrics_and_demands(problem: Problem, chunks: int | None) -> None:
    """From the problem to the bytes: scheduled, verified, lowered, verified again, and run."""
    wanted = ScheduleSettings(chunks=chunks, max_chunks=None if chunks else 3, loss=0.5)
    schedule = find_schedule(problem, "tsmcf", wanted).schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    for target in targets_for(Schedule):
        try:
            TARGETS[target].emit(schedule, Options())
        except AlltoallError:
            assert target in ("msccl", "mscclpp")
            continue
        check_lowered(target, schedule)
    exchanged(schedule, shards_of(problem.demand, 13))
