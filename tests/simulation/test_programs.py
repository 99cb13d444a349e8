"""MSCCL XML on a topology: the model of schedules, for programs of any tool."""

from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.errors import UsageError, VerificationError

ASKED: dict[str, Any] = {"link_bandwidth": "25Gbps", "latency": 2e-6, "overhead": 1e-6}


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("bipartite:4x4", {}),
        ("bipartite:4x4", {"chunks": 1}),
        ("hypercube:3", {}),
        ("torus:3x3", {}),
        ("genkautz:n=10,d=3", {}),
    ],
)
def test_a_lowered_schedule_takes_its_time(
    spec: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Within the overhead and latency of a few messages, and never below the bound."""
    schedule = alltoall.schedule(spec, **options)
    path = tmp_path / "program.xml"
    alltoall.lower(schedule, to="msccl").save(path)
    for size in (1 << 14, 1 << 24):
        program = alltoall.simulate(path, topology=spec, bytes=size, **ASKED)
        own = alltoall.simulate(schedule, bytes=size, **ASKED)
        assert program.seconds == pytest.approx(own.seconds, abs=2 * schedule.steps * 3e-6)
        assert program.bound_seconds == pytest.approx(own.bound_seconds)
        assert program.seconds >= program.bound_seconds


def test_a_message_waits_for_what_it_forwards(tmp_path: Path) -> None:
    """On a path of three nodes the last chunk comes after two links, one after the other."""
    path = tmp_path / "program.xml"
    alltoall.lower(alltoall.schedule("mesh:1x3", chunks=1), to="msccl").save(path)
    found = alltoall.simulate(path, topology="mesh:1x3", link_bandwidth=1e6, bytes=1_000_000)
    assert found.seconds == pytest.approx(2.0)
    slow = alltoall.simulate(
        path, topology="mesh:1x3", link_bandwidth=1e6, bytes=1_000_000, latency=0.25
    )
    assert slow.seconds == pytest.approx(2.5)


def test_a_program_needs_its_network(tmp_path: Path) -> None:
    """It does not say it; and a network without its links is refused."""
    path = tmp_path / "program.xml"
    alltoall.lower(alltoall.schedule("ring:4"), to="msccl").save(path)
    with pytest.raises(UsageError, match="give the topology too"):
        alltoall.simulate(path, link_bandwidth=1e9)
    with pytest.raises(VerificationError, match="no link or path"):
        alltoall.simulate(path, topology="mesh:1x4", link_bandwidth=1e9)
