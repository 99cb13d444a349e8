"""Every target on every topology: what is written is read back and moves the right bytes."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_files import check_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering_cases import TOPOLOGIES, schedule_named, topology_named

from alltoall.errors import FormatError, InputError, LimitError, UsageError, VerificationError
from alltoall.flows import prove
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering import TARGETS, Options, kind_of, parse_lowered, targets_for
from alltoall.topologies.spec import build
from alltoall.verification import verify, verify_text
from hop_schedules import hop_schedule, with_moves
from lowered_files import EXECUTED, SIMULATED, check_lowered
from strategies import topologies


@pytest.mark.parametrize("target", EXECUTED)
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_lowered_files_do_the_all_to_all(name: str, chunks: int, target: str) -> None:
    """A file of any target, parsed back and executed, is a correct all-to-all on its topology."""
    schedule = schedule_named(name, chunks)
    text = TARGETS[target].emit(schedule, Options())
    found = verify_text(text, target, schedule.problem.topology, prove)
    assert found["format"] == target == kind_of(text)
    assert found["ranks"] == len(schedule.problem.topology.terminals)
    assert found["chunks_per_shard"] == chunks
    # The simple schedule sends everything as early as it can, so the depths are its steps.
    assert found["steps"] == schedule.steps
    # Without its steps a program may be faster than the schedule, but not than the busiest link.
    busiest = (schedule.loads().sum(axis=0) / schedule.problem.topology.capacity).max()
    assert busiest - 1e-9 <= found["time"] <= schedule.time + 1e-9
    assert found["gap"] == pytest.approx(found["time"] / found["bound"] - 1)


@pytest.mark.parametrize("target", SIMULATED)
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_files_for_simulators_send_what_the_schedule_does(
    name: str, chunks: int, target: str
) -> None:
    """Parsed back and simulated, every link carries the same bytes in the same steps."""
    check_lowered(target, schedule_named(name, chunks))


@pytest.mark.parametrize("target", ["msccl", "mscclpp", "oneccl"])
def test_channels_carry_parts_of_every_shard(target: str) -> None:
    """K channels cut a shard into K times as many chunks and keep loads and steps."""
    schedule = schedule_named("hypercube:3", 2)
    text = TARGETS[target].emit(schedule, Options(channels=3))
    found = verify_text(text, target, schedule.problem.topology)
    assert found["chunks_per_shard"] == 6
    assert found["time"] <= schedule.time + 1e-9
    assert found["steps"] == schedule.steps


@pytest.mark.parametrize("target", targets_for(Schedule))
@given(topology=topologies(max_nodes=6), chunks=st.integers(1, 3), channels=st.integers(1, 2))
@settings(max_examples=15)
def test_random_topologies(target: str, topology: Topology, chunks: int, channels: int) -> None:
    """On any topology, with switches or without, the lowered file is a correct all-to-all."""
    check_lowered(target, hop_schedule(topology, chunks), channels=channels)


@pytest.mark.parametrize("target", targets_for(Schedule))
@pytest.mark.parametrize("name", ["hypercube:3", "torus:3x3x3 host", "genkautz:n=16,d=4"])
def test_chunks_that_wait_on_the_way(name: str, target: str) -> None:
    """Chunks that lie in scratch for several steps, while others come and go, arrive unchanged."""
    plain = schedule_named(name, 2)
    late = (7 * plain.source + 3 * plain.destination + plain.chunk) % 3
    order = np.argsort(3 * plain.step + late, kind="stable")
    columns = {"step": 3 * plain.step + late} | {
        key: getattr(plain, key) for key in ("source", "destination", "chunk", "link")
    }
    slow = replace(
        plain, steps=3 * plain.steps, **{key: column[order] for key, column in columns.items()}
    )
    check_lowered(target, slow, channels=2)
    if target in EXECUTED:
        text = TARGETS[target].emit(slow, Options(channels=2))
        found = verify_text(text, target, plain.problem.topology)
        assert found["steps"] <= slow.steps
        assert found["time"] >= plain.bound


@pytest.mark.parametrize("target", targets_for(Schedule))
@pytest.mark.parametrize("back", [False, True])
def test_chunks_that_are_sent_on_from_where_they_belong(target: str, back: bool) -> None:
    """A foreign schedule may send on what has arrived; it is ordered like all that is sent on."""
    plain = hop_schedule(build("complete:4"))
    ends = [(source, goal) for source in range(4) for goal in range(4) if source != goal]
    others = [min({0, 1, 2, 3} - {source, goal}) for source, goal in ends]
    on = [(1, *pair, pair[1], via) for pair, via in zip(ends, others, strict=True)]
    there_and_back = [(2, source, goal, via, goal) for _, source, goal, _, via in on]
    wasteful = with_moves(plain, on + there_and_back * back)
    check_lowered(target, wasteful)


@pytest.mark.parametrize("target", targets_for(Schedule))
def test_a_chunk_that_returns_to_its_sender_is_refused(target: str) -> None:
    """No rank can send to itself: the message says where, and how to find out more."""
    hub = Topology.from_edges("hub", 4, [(0, 3), (1, 3), (2, 3)], terminals=[0, 1, 2])
    wasteful = with_moves(hop_schedule(hub), [(1, 0, 2, 2, 3), (1, 0, 2, 3, 2)])
    with pytest.raises(InputError, match=r"step 1 rank 2 sends chunk 0 .* to itself; run"):
        TARGETS[target].emit(wasteful, Options())


@pytest.mark.parametrize("target", targets_for(Schedule))
def test_golden_files(request: pytest.FixtureRequest, target: str) -> None:
    """The text of a small file is the one that has been looked at."""
    text = TARGETS[target].emit(schedule_named("hypercube:2"), Options())
    check_golden(request, f"hypercube_2{TARGETS[target].suffix}", text)


@pytest.mark.parametrize("target", targets_for(Schedule))
def test_same_schedule_same_file(target: str) -> None:
    """Lowering is a function of the schedule."""
    schedule = schedule_named("genkautz:n=16,d=4")
    assert TARGETS[target].emit(schedule, Options()) == TARGETS[target].emit(schedule, Options())


def test_files_are_recognised_by_content(tmp_path: Path) -> None:
    """The formats are told apart without their names."""
    path = tmp_path / "unnamed"
    for kind in EXECUTED:
        text = TARGETS[kind].emit(schedule_named("ring:4"), Options())
        assert kind_of(text) == kind
        path.write_text(text)
        assert verify(path).facts["correct"]
    with pytest.raises(FormatError, match="not the file of a target"):
        parse_lowered("<system/>", "file")


def test_the_table_of_targets_is_light() -> None:
    """What a target does is imported when it does it."""
    program = (
        "import sys, alltoall.lowering as room; rooms = (f'{room.__name__}.programs', "
        "f'{room.__name__}.tables');"
        "print([each for each in sys.modules if each.startswith(rooms)])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_sending_off_the_topology_is_found() -> None:
    """A program for a torus is refused on a mesh of the same size, naming the ranks."""
    text = TARGETS["msccl"].emit(schedule_named("torus:3x3"), Options())
    with pytest.raises(VerificationError, match="rank 0 sends to rank 2, but no link"):
        verify_text(text, "file", topology_named("mesh:3x3"))
    with pytest.raises(VerificationError, match="9 ranks; hypercube:3 has 8 terminals"):
        verify_text(text, "file", topology_named("hypercube:3"))


def test_the_time_respects_capacities() -> None:
    """Twice the capacity, half the time."""
    schedule = schedule_named("ring:4")
    text = TARGETS["oneccl"].emit(schedule, Options())
    topology = topology_named("ring:4")
    fast = Topology(
        "fast", 4, topology.tail, topology.head, topology.capacity * 2, topology.terminals
    )
    assert verify_text(text, "f", fast)["time"] == pytest.approx(schedule.time / 2)


def test_long_fifos_are_dealt_out_to_more_thread_blocks() -> None:
    """A schedule with more than 64 steps on a link still fits RCCL, on more channels."""
    schedule = schedule_named("genkautz:n=50,d=2")
    text = TARGETS["msccl"].emit(schedule, Options(runtime="rccl"))
    found = verify_text(text, "f", schedule.problem.topology)
    assert "rccl" in found["runtimes"]
    assert found["thread_blocks"] > 5


def test_what_does_not_fit_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit's name, the number found, the limit and what to do are in the message."""
    with pytest.raises(
        LimitError, match=r"\d+ thread blocks per gpu .* rccl takes at most 64; use"
    ):
        TARGETS["msccl"].emit(schedule_named("hypercube:3"), Options(runtime="rccl", channels=32))
    monkeypatch.setattr("alltoall.lowering.programs.mscclpp.MAX_OPERATIONS", 8)
    with pytest.raises(LimitError, match=r"\d+ operations per thread block.*at most 8; use fewer"):
        TARGETS["mscclpp"].emit(schedule_named("ring:8"), Options())
    with pytest.raises(UsageError, match="runtime 'nccl'; expected one of msccl"):
        TARGETS["msccl"].emit(schedule_named("ring:4"), Options(runtime="nccl"))
    with pytest.raises(UsageError, match="protocol 'LL' for mscclpp"):
        TARGETS["mscclpp"].emit(schedule_named("ring:4"), Options(protocol="LL"))
    with pytest.raises(UsageError, match="0 channels"):
        TARGETS["oneccl"].emit(schedule_named("ring:4"), Options(channels=0))
