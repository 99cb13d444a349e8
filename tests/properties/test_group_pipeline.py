"""Random fabrics, groups and demands, from the problem to the bytes, through every target."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError
from alltoall.ir.chunks import shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering import TARGETS, Options, targets_for
from alltoall.lowering.programs.moves import plain_chunks
from alltoall.runtime.in_process import Alltoall
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.clusters import compose
from alltoall.topologies.hosts import Host
from alltoall.topologies.spec import build
from lowered_files import check_lowered
from strategies import fabrics, topologies
from uneven_cases import uneven_problems

OUTSIDES = [("rail", "rails"), ("switch", "nics"), ("ring", "hosts"), ("genkautz:d=2", "hosts")]


@st.composite
def clusters(draw: st.DrawFn) -> Topology:
    """Draw two or three hosts of two kinds, joined in any way."""
    outside, over = draw(st.sampled_from(OUTSIDES))
    nics = draw(st.integers(1, 3))
    kinds = [
        Host(
            gpus=draw(st.integers(2, 3)),
            inside=draw(st.sampled_from(["nvswitch:5", "complete", "ring"])),
            nics=nics,
            rate=draw(st.sampled_from([1.0, 2.5])),
        )
        for _ in range(2)
    ]
    hosts = [draw(st.sampled_from(kinds)) for _ in range(draw(st.integers(2, 3)))]
    return compose("cluster", hosts, outside, over, draw(st.sampled_from(["host", "nic"])))


@st.composite
def grouped_problems(draw: st.DrawFn) -> Problem:
    """Draw a fabric, and groups of its terminals that may overlap; others only relay."""
    topology = draw(topologies(max_nodes=7) | fabrics() | clusters())
    count = len(topology.terminals)
    members = st.lists(st.integers(0, count - 1), min_size=2, max_size=4, unique=True)
    groups = draw(st.lists(members, min_size=1, max_size=3))
    return Problem(topology, Demand.of_groups(count, groups))


def exchanged(schedule: Schedule, size: int) -> None:
    """Move random bytes by a schedule in one process, and compare all of them."""
    shard, random = shards_of(schedule.problem.demand, size), np.random.default_rng(0)
    ranks = range(shard.ranks)
    sent = [
        [random.bytes(int(shard.of(np.array(source), np.array(to)))) for to in ranks]
        for source in ranks
    ]
    send = [np.frombuffer(b"".join(row), dtype=np.uint8) for row in sent]
    recv = [np.zeros(size, dtype=np.uint8) for size in shard.outputs().tolist()]
    Alltoall(schedule)(send, recv, shard)
    for to in ranks:
        assert recv[to].tobytes() == b"".join(sent[source][to] for source in ranks)


@given(problem=grouped_problems() | uneven_problems(), chunks=st.integers(1, 3))
@settings(max_examples=12)
def test_from_the_problem_to_the_bytes(problem: Problem, chunks: int) -> None:
    """Scheduled, lowered to every target that admits it, verified, and run; MSCCL says why not."""
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=chunks)).schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    admitted = set(targets_for(Schedule))
    if not plain_chunks(schedule).uniform:
        admitted.remove("msccl")
        with pytest.raises(InputError, match="lower it to messages, mscclpp or oneccl, or pad"):
            TARGETS["msccl"].emit(schedule, Options())
    for name in sorted(admitted):
        check_lowered(name, schedule)
    exchanged(schedule, 11)


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed; pip install '.[mpi]'",
)
@pytest.mark.parametrize(
    ("spec", "groups"),
    [
        ("complete:8", [[0, 1], [1, 2, 3]]),
        ("cluster:hosts=2,gpus=3,inside=nvswitch:9,nics=3x2", [[0, 3]]),
    ],
)
def test_ranks_that_only_relay(spec: str, groups: list[list[int]], tmp_path: Path) -> None:
    """Real processes: helpers have no input and no output, and every byte is checked."""
    topology = build(spec)
    problem = Problem(topology, Demand.of_groups(len(topology.terminals), groups))
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(steps=2, chunks=4)).schedule
    idle = ~(problem.demand.table().any(axis=0) | problem.demand.table().any(axis=1))
    assert idle.any()
    schedule.save(tmp_path / "groups.json")
    wanted = RunSettings(sizes=(40,), iterations=1, warmup=0, timeout=120)
    report = run_schedule(tmp_path / "groups.json", "mpi", wanted)
    assert report.ranks == len(topology.terminals)
