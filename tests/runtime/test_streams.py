"""Programs and plans carried out by ranks: every byte arrives, whatever the sizes and the file."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.check.program.alltoall import check_all_to_all
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.chunks import Chunks, PerShard, shards_of
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.program import Buffer, Instruction, Op, Place, Program, RankProgram, Step, Thread
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, kind_of, parse_lowered
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.streams import ChunkLayout, StreamsEndpoint
from alltoall.topologies.spec import build
from command_line import Run
from hop_schedules import hop_schedule
from uneven_cases import CASES

PROGRAMS = ("msccl", "mscclpp", "oneccl")
QUICK = RunSettings(sizes=(5, 64), iterations=2, warmup=0, timeout=120)
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed; pip install '.[mpi]'",
)
RUNTIMES = ["reference", pytest.param("mpi", marks=needs_mpi)]


def streams_of(schedule: Schedule, target: str, **options: Any) -> Program | ExecutionPlan:
    """Return what the file of a target says."""
    found = parse_lowered(TARGETS[target].emit(schedule, Options(**options)), target)[1]
    assert isinstance(found, Program | ExecutionPlan)
    return found


def exchanged(work: Program | ExecutionPlan, shard: PerShard) -> None:
    """Move random bytes by a program in one process; compare all of them."""
    random, ranks = np.random.default_rng(0), range(shard.ranks)
    size = [[int(shard.of(np.array(s), np.array(d))) for d in ranks] for s in ranks]
    sent = [[random.bytes(each) for each in row] for row in size]
    send = [np.frombuffer(b"".join(row), dtype=np.uint8) for row in sent]
    recv = [np.zeros(each, dtype=np.uint8) for each in shard.outputs().tolist()]
    StreamsEndpoint(work).exchange(send, recv, shard)
    for to in ranks:
        assert recv[to].tobytes() == b"".join(sent[source][to] for source in ranks)


@pytest.mark.parametrize("target", PROGRAMS)
@pytest.mark.parametrize(("spec", "chunks"), [("hypercube:3", 2), ("ring:5", 3), ("torus:3x3", 1)])
@pytest.mark.parametrize("size", [1, 6, 7])
def test_every_byte_arrives(target: str, spec: str, chunks: int, size: int) -> None:
    """Shards of fewer bytes than chunks, of a multiple of them, and of neither."""
    work = streams_of(hop_schedule(build(spec), chunks), target)
    exchanged(work, PerShard(len(work.ranks), size))


@pytest.mark.parametrize("target", ["msccl", "mscclpp", "oneccl"])
def test_channels(target: str) -> None:
    """Several FIFOs, or channels, between two ranks are told apart."""
    work = streams_of(hop_schedule(build("hypercube:2"), 2), target, channels=3)
    exchanged(work, PerShard(4, 100))


@pytest.mark.parametrize("name", CASES)
def test_uneven_shards_of_programs(name: str) -> None:
    """Chunks of pairs may have different sizes, and ranks may have none."""
    work = streams_of(CASES[name], "oneccl")
    exchanged(work, shards_of(work.chunks.demand(), 50))


def test_the_callers_memory_is_used_where_it_fits() -> None:
    """No copy of the input and the output is made if chunks are rows of them."""
    work = streams_of(hop_schedule(build("ring:4"), 2), "msccl")
    layouts = [ChunkLayout(work, 1, PerShard(4, size)) for size in (6, 7)]
    for layout, shares in zip(layouts, (True, False), strict=True):
        data = [np.zeros(size, dtype=np.uint8) for size in (24 if shares else 28,) * 2]
        for buffer, given in zip(layout.memory(data[0], data[1]), data, strict=False):
            assert np.shares_memory(buffer, given) == shares


def forwarding() -> Program:
    """Return an all-to-all of 3 ranks in which rank 1 forwards what rank 0 has for rank 2."""

    def at(buffer: Buffer, offset: int) -> Place:
        return Place(buffer, offset)

    def one(channel: int, to: int | None, source: int | None, *steps: Instruction) -> Thread:
        return Thread(channel, to, source, steps)

    def send(to: int) -> Instruction:
        return Instruction(Op.SEND, 2, source=at(Buffer.INPUT, 2 * to))

    def receive(source: int, inner: int = 0, count: int = 2) -> Instruction:
        return Instruction(Op.RECEIVE, count, target=at(Buffer.OUTPUT, 2 * source + inner))

    def own(rank: int) -> Thread:
        place = 2 * rank
        copy = Instruction(Op.COPY, 2, at(Buffer.INPUT, place), at(Buffer.OUTPUT, place))
        return one(9, None, None, copy, Instruction(Op.NOP, after=(Step(1, 0),)))

    pushed = Instruction(Op.FORWARD, 2, target=at(Buffer.SCRATCH, 0))
    parted = (receive(0, 0, 1), receive(0, 1, 1))
    codes = [
        (own(0), one(0, 1, 1, send(1), receive(1)), one(1, 1, 2, send(2), receive(2))),
        (
            own(1),
            one(0, 0, 0, send(0), receive(0)),
            one(1, 2, 0, pushed),
            one(0, 2, 2, send(2), receive(2)),
        ),
        (own(2), one(1, 0, 1, send(0), *parted), one(0, 1, 1, send(1), receive(1))),
    ]
    ranks = tuple(RankProgram(6, 6, 2, code) for code in codes)
    return Program("forwarding", Chunks(3, 2), ranks)


def test_forwards_and_receives_of_fewer_chunks_than_were_sent() -> None:
    """A FIFO carries chunks, however instructions count them."""
    assert check_all_to_all(forwarding()).correct
    exchanged(forwarding(), PerShard(3, 11))


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("target", PROGRAMS)
def test_files_of_programs_run(on: str, target: str, tmp_path: Path) -> None:
    """Ranks carry out the file, all bytes are checked twice a size, and the report says how."""
    path = tmp_path / "file"
    path.write_text(TARGETS[target].emit(hop_schedule(build("ring:4"), 3), Options()))
    report = run_schedule(path, on, QUICK, ranks=4)
    assert [row.bytes for row in report.rows] == [5, 64]
    assert "by the instructions of the file" in report.runtime
    assert (report.native is None) == (on == "reference")


@needs_mpi
def test_uneven_programs_run_on_mpi(tmp_path: Path) -> None:
    """Beside MPI_Alltoallv."""
    path = tmp_path / "uneven.xml"
    path.write_text(TARGETS["oneccl"].emit(CASES["ring"], Options()))
    assert run_schedule(path, "mpi", QUICK).native == "MPI_Alltoallv"


def test_what_is_no_all_to_all_is_refused_before_it_runs(run: Run, tmp_path: Path) -> None:
    """If a signal is missing, no rank is started; the judge says why."""
    plan = json.loads(TARGETS["mscclpp"].emit(hop_schedule(build("ring:4")), Options()))
    block = plan["gpus"][0]["threadblocks"][0]
    block["ops"] = [op for op in block["ops"] if op["name"] != "signal"]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    for words in ((), ("--on", "mpi")):
        outcome = run("run", path, *words)
        assert outcome.code == 4
        assert "deadlock" in outcome.err
    with pytest.raises(VerificationError):
        alltoall.run(path)


def test_routes_are_not_run(tmp_path: Path) -> None:
    """Routes alone move nothing; the message says what does."""
    path = tmp_path / "file"
    alltoall.lower(alltoall.route("ring:4"), to="srv6").save(path)
    with pytest.raises(UsageError, match=r"cannot run a file of the target srv6.*MSCCL XML"):
        alltoall.run(path)


def test_what_programs_do_not_run_on(tmp_path: Path) -> None:
    """Torch takes messages only, and a program has no steps to wait after."""
    path = tmp_path / "file"
    path.write_text(TARGETS["msccl"].emit(hop_schedule(build("ring:4")), Options()))
    for on, sync in (("torch", "dataflow"), ("mpi", "step")):
        with pytest.raises(UsageError, match="Lower the schedule to messages"):
            alltoall.run(path, on=on, sync=sync)
    with pytest.raises(UsageError, match="a schedule for 4 ranks"):
        alltoall.run(path, ranks=5)


def test_a_schedule_whose_nodes_have_names_of_formats(tmp_path: Path) -> None:
    """An artefact is told by its format, whatever words are in it."""
    topology = alltoall.Topology.from_edges("gpus", 3, [(0, 1), (1, 2), (2, 0)])
    named = hop_schedule(topology)
    path = tmp_path / "schedule.json"
    named.save(path)
    names = '"name":"gpus","names":["gpus","a","b"]'
    path.write_text(path.read_text().replace('"name":"gpus"', names))
    assert kind_of(path.read_text()) == "mscclpp"
    assert alltoall.run(path, bytes=8, iterations=1).rows[0].bytes == 8
