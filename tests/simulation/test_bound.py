"""Every simulated time is at least the certified bound, whatever the fabric and the demand."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall
from alltoall.ir.problem import Problem
from alltoall.simulation.report import Simulation
from strategies import fabrics, problems

ROUNDING = 1e-9
"""What sums in another order may take off."""


@st.composite
def fabric_options(draw: st.DrawFn) -> dict[str, Any]:
    """Draw rates, latencies and limits."""
    return {
        "link_bandwidth": draw(st.sampled_from([1.0, 1e9])),
        "latency": draw(st.sampled_from([0.0, 1e-6, 1.0])),
        "overhead": draw(st.sampled_from([0.0, 0.0, 1e-6, 0.5])),
        "injection": draw(st.sampled_from([None, None, 0.5, 2.0, 1e9])),
        "bytes": draw(st.sampled_from([1, 1000, [10**3, 10**6]])),
    }


def require_above_the_bound(found: Simulation) -> None:
    """Every row, and the share that it reaches."""
    for row in found.rows:
        assert row.seconds >= row.bound_seconds * (1 - ROUNDING)
        assert 0 < row.fraction <= 1 + ROUNDING
        assert row.throughput <= row.bound_throughput * (1 + ROUNDING)


@given(problems(max_nodes=6), fabric_options(), st.data())
@settings(max_examples=15)
def test_routes(problem: Problem, fabric: dict[str, Any], data: st.DataObject) -> None:
    """However they share links, are cut, or come in phases."""
    method = data.draw(st.sampled_from(["ecmp", "extp"]))
    routes = alltoall.route(problem, f"{method}:layering=none")
    found = alltoall.simulate(
        routes,
        weights=data.draw(st.sampled_from(["equal", "share"])),
        flows=data.draw(st.sampled_from([1, 3])),
        chunk_bytes=data.draw(st.sampled_from([None, "1M"])),
        phases=data.draw(st.sampled_from([None, None, 0])),
        resolution=data.draw(st.sampled_from([None, 0.05])),
        start=np.linspace(0, data.draw(st.sampled_from([0.0, 1.0])), problem.demand.terminals),
        **fabric,
    )
    require_above_the_bound(found)


@given(problems(max_nodes=5), fabric_options(), st.sampled_from(["dataflow", "step"]))
@settings(max_examples=15)
def test_schedules(problem: Problem, fabric: dict[str, Any], sync: str) -> None:
    """With barriers or without, whether what is due goes first or all have a fair share."""
    schedule = alltoall.schedule(problem, chunks=1)
    for sharing in ("due", "fair"):
        require_above_the_bound(alltoall.simulate(schedule, sync=sync, sharing=sharing, **fabric))


@given(fabrics(), fabric_options())
@settings(max_examples=10)
def test_hosts_behind_switches(topology: alltoall.Topology, fabric: dict[str, Any]) -> None:
    """What passes switches within a step."""
    schedule = alltoall.schedule(topology, chunks=1)
    for sharing in ("due", "fair"):
        require_above_the_bound(alltoall.simulate(schedule, sharing=sharing, **fabric))
