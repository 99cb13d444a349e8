"""Routes run with real bytes on real links: what arrives, and what the links say of it."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fabrics import RATE, fabric, needs_testbed

import alltoall
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.demand import Demand
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.lowering.tables.routed_file import RoutedFile, rebuild
from alltoall.routes.phases import split_phases
from alltoall.testbed import namespaces, routed
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.plan import Plan
from alltoall.testbed.ports import per_chunk
from alltoall.testbed.report import BedRow
from alltoall.testbed.routed import run_routes
from alltoall.testbed.shares import Pieces, pieces_of
from alltoall.testbed.steering import Steered, steer, steered

KEYS = "bytes seconds throughput bound_throughput fraction counters_ok steal retransmits drops"


pytestmark = needs_testbed


def routes_of(spec: str, method: str = "sssp") -> Routes:
    """Return routes without layers, which a fabric of Linux has no use for."""
    return alltoall.route(spec, f"{method}:layering=none")


def run(bed: Bed, routes: Routes, size: int = 20_000, **options: Any) -> BedRow:
    """Run once, with a limit that only a hang reaches."""
    return run_routes(bed, routes, (size,), 1, 0, **{"timeout": 60.0, **options})[0]


def test_both_ways_to_steer() -> None:
    """Every byte arrives and every link carries what it should; the second replaces the first."""
    routes = routes_of("hypercube:3", "ewsp")
    with fabric(routes.problem.topology) as bed:
        for steering in ("plain", "encap"):
            rows = run_routes(bed, routes, (1, 1000, 60_000), 1, 0, steering=steering, timeout=60)
            assert [row.bytes for row in rows] == [1, 1000, 60_000]
            assert [row.disagreements for row in rows] == [(), (), ()]
            assert all(row.counters_ok for row in rows)
            large = asdict(rows[-1])
            assert set(KEYS.split()) <= set(large)
            assert large["bound_throughput"] == pytest.approx(7 * RATE / 4)
            # Nobody beats the bound; how near one comes is not for a test to judge.
            assert 0 < large["fraction"] <= 1
            assert large["load_fraction"] == pytest.approx(large["fraction"])


def test_source_ports_pick_routes() -> None:
    """The kernel's hash of the 5-tuple takes each chunk over its route: every link counts."""
    routes = per_chunk(routes_of("hypercube:2", "ewsp"))
    with fabric(routes.problem.topology) as bed:
        for size in (999, 20_000):
            assert run(bed, routes, size, steering="ports").disagreements == ()


def test_shares_and_baselines() -> None:
    """All ways to divide bytes among routes, and routes of any method, by the same sender."""
    many = routes_of("hypercube:3", "ewsp")
    phase = split_phases(many, 3, 0.5)
    with fabric(many.problem.topology) as bed:
        for weights in ("chunks", "paced", "phases"):
            assert run(bed, many, weights=weights, phase=phase).disagreements == ()
        for method in ("dor", "updown"):
            row = run(bed, routes_of("hypercube:3", method))
            assert row.disagreements == ()
            assert row.load_fraction is not None
            assert row.load_fraction >= row.fraction


def test_links_that_lead_one_way() -> None:
    """Acknowledgements take routes too: the channels back carry nothing."""
    routes = routes_of("genkautz:n=8,d=2")
    with fabric(routes.problem.topology) as bed:
        assert run(bed, routes, steering="encap").disagreements == ()


def test_switches_and_uneven_demands() -> None:
    """A switch forwards, and who only receives answers all the same."""
    matrix = np.zeros((4, 4))
    matrix[0, 1:] = (1.0, 2.0, 0.5)
    matrix[3, 2] = 1.0
    routes = alltoall.route("switch:n=4", "sssp:layering=none", demand=Demand(4, matrix))
    with fabric(routes.problem.topology) as bed:
        row = run(bed, routes)
        assert row.disagreements == ()
        assert row.throughput <= 4.5 * 20_000 / 4 / row.seconds


def test_a_route_that_is_installed_elsewhere_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes arrive, but links tell that they came another way."""
    routes = routes_of("ring:4")
    way = int(np.flatnonzero((routes.source == 0) & (routes.destination == 2))[0])
    topology = routes.problem.topology
    around = 1 if int(topology.head[routes.link[routes.start[way]]]) == 3 else 3
    links = {
        (int(t), int(h)): i
        for i, (t, h) in enumerate(zip(topology.tail, topology.head, strict=True))
    }
    other = np.array(routes.link)
    other[routes.start[way] : routes.start[way + 1]] = [links[0, around], links[around, 2]]

    def steer_elsewhere(bed: Bed, _: Steered, steering: str) -> None:
        steer(bed, steered(bed.plan, replace(routes, link=other)), steering)

    monkeypatch.setattr(routed, "steer", steer_elsewhere)
    with fabric(topology) as bed:
        row = run(bed, routes)
        assert not row.counters_ok
        named = " ".join(row.disagreements)
        assert all(f"(0 -> {node}) carried" in named for node in (1, 3))
        assert len(row.disagreements) == 4


def test_bytes_that_are_missing_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All routes send the beginning of their shard: its end is as wrong as it was made."""
    routes = routes_of("hypercube:2", "ewsp")

    def beginnings(*given: Any) -> Pieces:
        cut = pieces_of(*given)
        return replace(cut, offset=0 * cut.offset)

    monkeypatch.setattr(routed, "pieces_of", beginnings)
    wrong = pytest.raises(VerificationError, match="wrong bytes in the shard from rank")
    with fabric(routes.problem.topology) as bed, wrong:
        run(bed, routes)


def test_a_cut_link_is_named_and_other_routes_run_again() -> None:
    """The report is there within the limit; routes around the cut replace those over it."""
    routes = routes_of("ring:4")
    with fabric(routes.problem.topology) as bed:
        broken = namespaces.cut(bed, (0, 1))
        with pytest.raises(VerificationError, match=r"all of them need 0-1: is a link cut") as told:
            run(broken, routes, silence=1.0)
        assert "0 to 1: not connected" in str(told.value)
        left = without(routes.problem.topology, {(0, 1), (1, 0)})
        row = run(broken, alltoall.route(left, "sssp:layering=none"))
        assert row.disagreements == ()
        assert row.bound_throughput == pytest.approx(3 * RATE / 4)


def without(topology: Topology, ends: set[tuple[int, int]]) -> Topology:
    """Return what is left of a topology after links between these nodes failed."""
    pairs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    return Topology.from_links("left", topology.nodes, [pair for pair in pairs if pair not in ends])


def test_what_routes_were_lowered_to(tmp_path: Path) -> None:
    """XML for Open MPI: an address does what the hash of a fabric would."""
    routes = alltoall.route("hypercube:2")
    alltoall.lower(routes, to="ompi").save(tmp_path / "cube.xml")
    routes.save(tmp_path / "cube.json")
    lowered = alltoall.load(tmp_path / "cube.xml")
    assert isinstance(lowered, RoutedFile)
    found = rebuild(lowered, routes.problem, lowered.certificate)
    assert alltoall.load(tmp_path / "cube.json") == routes
    assert found.time == routes.time
    with fabric(routes.problem.topology) as bed:
        row = run(bed, found)
        assert row.disagreements == ()
        assert row.fraction == row.load_fraction
        assert row.load_fraction is not None
        assert 0 < row.load_fraction <= 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"weights": "evenly"}, "weights 'evenly'; expected one of weights, chunks"),
        ({"steering": "mpls"}, "steering 'mpls'; expected one of encap, plain"),
        ({"weights": "phases"}, "0 phases for 12 routes; expected the phase of each route"),
        ({"size": 0}, r"shard sizes \[0\]; expected at least one byte each"),
    ],
)
def test_what_cannot_be_run_is_refused(options: dict[str, Any], problem: str) -> None:
    """Before anything is touched."""
    routes = routes_of("ring:4")
    bed = Bed(Plan("none", routes.problem.topology, RATE))
    with pytest.raises(UsageError, match=problem):
        run(bed, routes, **options)
