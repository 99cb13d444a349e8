"""One source stands for its orbit: same optimum, and every image can be written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from alltoall.check.flow import check_flow
from alltoall.errors import InputError
from alltoall.flows import SolveSettings, sizes, solve
from alltoall.flows.by_lp import solve_by_lp
from alltoall.flows.exact import by_commodity, by_source, exact_flows
from alltoall.flows.methods import solve_first_order, solve_grouped, solve_master, solve_sources
from alltoall.flows.program import (
    certify,
    length_bound,
    program_bound,
    reduced_program,
    whole_program,
)
from alltoall.flows.symmetry import orbits as symmetry
from alltoall.flows.symmetry.orbits import (
    Symmetry,
    expand,
    expand_if_small,
    find_symmetry,
    link_maps,
)
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems, symmetric_problems

QUIET = SolveSettings()
ALONE = SolveSettings(symmetry=False)


def striped(topology: Topology, widths: tuple[float, ...]) -> Topology:
    """Return the topology with links of these widths in turn, by the difference of their ends."""
    turn = (topology.head - topology.tail) % topology.nodes
    return replace(topology, capacity=np.array(widths)[turn % len(widths)])


def by_distance(terminals: int) -> Floats:
    """Return a demand that a turn of a ring keeps: more to the next than to the others."""
    ahead = (np.arange(terminals) - np.arange(terminals)[:, None]) % terminals
    return np.where(ahead == 0, 0.0, np.where(ahead == 1, 3.0, 1.0))


def lopsided(terminals: int) -> Floats:
    """Return a demand that nothing keeps: all different, with a row and some pairs empty."""
    matrix = 1 + np.arange(terminals**2, dtype=np.float64).reshape(terminals, terminals) % 7
    matrix[matrix == 4] = 0.0
    matrix[1] = 0.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


def doubled_ring(nodes: int) -> Topology:
    """Return a ring with two links, of capacities 1 and 2, each way, and chords."""
    links = []
    for node in range(nodes):
        after, across = (node + 1) % nodes, (node + 2) % nodes
        links += [(node, after, 2.0), (node, after, 1.0), (after, node, 1.0), (after, node, 1.0)]
        links += [(node, across, 0.5)]
    return Topology.from_links("doubled ring", nodes, links)


PROBLEMS = {
    "torus": Problem.all_to_all(build("torus:3x4")),
    "generalized Kautz": Problem.all_to_all(build("genkautz:n=20,d=4")),
    "Kautz": Problem.all_to_all(build("kautz:d=2,k=3")),
    "hypercube": Problem.all_to_all(build("hypercube:4")),
    "mesh": Problem.all_to_all(build("mesh:3x4")),
    "bipartite": Problem.all_to_all(build("bipartite:3x4")),
    "fat tree": Problem.all_to_all(build("fattree:k=4")),
    "hosted torus": Problem.all_to_all(with_host_bandwidth(build("torus:3x3"), 2.0)),
    "parallel links": Problem.all_to_all(doubled_ring(7)),
    "unequal capacities": Problem.all_to_all(striped(build("circulant:n=12,jumps=1x3"), (1, 2.5))),
    "DGX-1": Problem.all_to_all(build("dgx1")),
    "symmetric demand": Problem(build("ring:8"), Demand(8, by_distance(8))),
    "unsymmetric demand": Problem(build("torus:3x3"), Demand(9, lopsided(9))),
}


def acyclic(flow: Flow) -> bool:
    """Whether no group has links with flow that lead back to where they started."""
    topology = flow.problem.topology
    shape = (topology.nodes, topology.nodes)
    for begin, end in zip(flow.start[:-1], flow.start[1:], strict=True):
        used = flow.link[begin:end]
        ends = (topology.tail[used], topology.head[used])
        arcs = coo_array((np.ones(len(used)), ends), shape=shape)
        parts, _ = connected_components(arcs, directed=True, connection="strong")
        if parts != topology.nodes:
            return False
    return True


@pytest.mark.parametrize("name", PROBLEMS)
def test_symmetry_leaves_the_optimum_as_it_is(name: str) -> None:
    """With and without, compact and written out: one time, proven, by the ordinary checker."""
    problem = PROBLEMS[name]
    plain = solve(problem, "grouped", ALONE)
    compact = solve_master(problem, QUIET)
    written = expand(compact)
    assert compact.time == pytest.approx(plain.time, rel=1e-6)
    assert written.time == pytest.approx(compact.time, rel=1e-9)
    assert written.generators is None
    assert np.array_equal(written.source, problem.sources)
    for flow in (compact, written):
        report = check_flow(flow)
        assert report.gap <= 1e-6
        assert report.max_load == pytest.approx(1.0)
    assert acyclic(written)


@given(problem=problems(max_nodes=6) | symmetric_problems())
def test_symmetry_leaves_the_optimum_of_random_problems(problem: Problem) -> None:
    """Whatever capacities, switches, parallel links and demand: one optimum."""
    compact = solve_master(problem, QUIET)
    written = expand(compact)
    assert compact.time == pytest.approx(solve(problem, "grouped", ALONE).time, rel=1e-6)
    assert written.time == pytest.approx(compact.time, rel=1e-9)
    check_flow(compact)
    check_flow(written)
    assert acyclic(written)


def test_a_symmetric_problem_is_solved_for_fewer_sources() -> None:
    """One source of a torus, two corners and an edge of a small mesh; all where none is alike."""
    assert solve_master(PROBLEMS["torus"], QUIET).groups == 1
    assert solve_master(Problem.all_to_all(build("mesh:3x3")), QUIET).groups == 3
    alone = solve_master(PROBLEMS["unsymmetric demand"], QUIET)
    assert alone.groups == 8
    assert alone.generators is None
    assert solve_master(PROBLEMS["torus"], ALONE).groups == 12


@pytest.mark.parametrize("name", PROBLEMS)
def test_link_maps_follow_the_nodes(name: str) -> None:
    """A link goes to one between the images of its ends, of its capacity, and none to the same."""
    found = find_symmetry(PROBLEMS[name])
    topology = found.problem.topology
    for nodes, links in zip(found.generators, found.link_maps, strict=True):
        assert np.array_equal(np.sort(links), np.arange(topology.links))
        assert np.array_equal(topology.tail[links], nodes[topology.tail])
        assert np.array_equal(topology.head[links], nodes[topology.head])
        assert np.array_equal(topology.capacity[links], topology.capacity)


def test_link_maps_compose() -> None:
    """The map of a product of automorphisms is the product of their maps, parallel links too."""
    found = find_symmetry(PROBLEMS["parallel links"])
    topology = found.problem.topology
    for first, links in zip(found.generators, found.link_maps, strict=True):
        for second, more in zip(found.generators, found.link_maps, strict=True):
            assert np.array_equal(link_maps(topology, second[first][None, :])[0], more[links])


def test_orbits_join_what_maps_join() -> None:
    """Cycles of several maps merge; what none moves is alone."""
    maps = np.array([[1, 0, 2, 3, 4], [0, 2, 1, 3, 4]])
    label = symmetry.orbits(maps, 5)
    assert label[0] == label[1] == label[2]
    assert len({label[0], label[3], label[4]}) == 3
    assert len(set(symmetry.orbits(maps[:0], 5).tolist())) == 5


def test_representatives_stand_for_all_sources() -> None:
    """Sizes add up to the sources, and a source that sends nothing has no orbit."""
    for name in ("mesh", "fat tree", "symmetric demand"):
        problem = PROBLEMS[name]
        sources, size = find_symmetry(problem).representatives()
        assert size.sum() == len(problem.sources)
        assert set(sources.tolist()) <= set(problem.sources.tolist())
    only = np.zeros((6, 6))
    only[0, 1:] = 1.0
    sources, size = find_symmetry(Problem(build("complete:6"), Demand(6, only))).representatives()
    assert (sources.tolist(), size.tolist()) == ([0], [1])


@pytest.mark.parametrize("name", ["torus", "mesh", "fat tree", "parallel links"])
def test_the_reduced_program_bounds_like_the_whole_one(name: str) -> None:
    """Lengths that are even on orbits prove the same from representatives as from all sources."""
    found = find_symmetry(PROBLEMS[name])
    program = reduced_program(found)
    orbit = found.link_orbit
    lengths = np.random.default_rng(3).uniform(0.1, 1.0, int(orbit.max()) + 1)[orbit]
    assert program_bound(program, lengths) == pytest.approx(length_bound(found.problem, lengths))
    assert program_bound(program, np.zeros_like(lengths)) == 0.0


def test_a_certificate_is_the_best_of_its_candidates() -> None:
    """Unit lengths take part, negative ones count as none, and scale does not matter."""
    problem = PROBLEMS["mesh"]
    optimal = solve(problem, "grouped").certificate
    spoilt = np.where(optimal.lengths > 0, 1e200 * optimal.lengths, -1.0)
    assert certify(problem, [spoilt]).bound == pytest.approx(optimal.bound)
    ones = certify(problem, [np.zeros(problem.topology.links)])
    assert ones.bound == pytest.approx(length_bound(problem, np.ones(problem.topology.links)))


def test_whole_programs_sum_what_links_carry() -> None:
    """Groups per source and per pair have the same time on the same paths."""
    problem = PROBLEMS["mesh"]
    times = []
    for groups in (by_source(problem), by_commodity(problem)):
        nothing = np.zeros((len(groups.start), problem.topology.links))
        volumes = exact_flows(problem.topology, groups, nothing)
        times.append(whole_program(problem, groups).time(volumes))
        assert times[-1] == pytest.approx(float((volumes.sum(axis=0)).max()))
    assert times[0] == pytest.approx(times[1])


@pytest.mark.parametrize("name", ["generalized Kautz", "hypercube", "mesh", "parallel links"])
def test_any_generators_can_be_claimed(name: str) -> None:
    """Solved under each single generator, the flow is right as it is and written out."""
    problem = PROBLEMS[name]
    optimum = solve(problem, "grouped", ALONE).time
    for generator in find_symmetry(problem).generators:
        some = Symmetry(problem, generator[None, :])
        program = reduced_program(some)
        flow = solve_by_lp(problem, program, QUIET, "grouped")
        compact = replace(flow, generators=some.generators)
        check_flow(compact)
        assert compact.time == pytest.approx(optimum, rel=1e-6)
        check_flow(expand(compact))


@given(problem=symmetric_problems(), data=st.data())
def test_any_generators_of_random_problems_can_be_claimed(
    problem: Problem, data: st.DataObject
) -> None:
    """Writing out takes no more symmetry than was claimed."""
    found = find_symmetry(problem).generators
    chosen = data.draw(st.lists(st.sampled_from(range(len(found))), max_size=2, unique=True))
    some = Symmetry(problem, found[chosen])
    flow = solve_by_lp(problem, reduced_program(some), QUIET, "grouped")
    compact = replace(flow, generators=some.generators)
    check_flow(compact)
    check_flow(expand(compact))


def test_what_is_too_large_to_write_out_stays_compact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the limit all sources are written out; above, the compact flow or an error."""
    compact = solve_master(PROBLEMS["hypercube"], QUIET)
    assert expand_if_small(compact).groups == 16
    monkeypatch.setattr(symmetry, "MOST_ENTRIES", 20)
    assert expand_if_small(compact) is compact
    with pytest.raises(InputError, match="one source per orbit"):
        expand(compact)
    assert solve_grouped(PROBLEMS["hypercube"], QUIET).groups == 1
    assert solve_first_order(PROBLEMS["hypercube"], QUIET).groups == 1


def test_what_has_no_symmetry_is_returned_as_it_is() -> None:
    """Writing out a flow per source, or per commodity, is no work at all."""
    for method in ("grouped", "decomposed"):
        flow = solve(PROBLEMS["mesh"], method)
        assert expand(flow) is flow
        assert expand_if_small(flow) is flow


@pytest.mark.parametrize("spec", ["torus:4x4x4", "genkautz:n=40,d=4", "mesh:5x5"])
def test_larger_flows_to_be_routed_are_solved_by_orbits(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a size the flow of every source comes from one source per orbit."""
    monkeypatch.setattr(sizes, "WHOLE_VARIABLES", 100)
    problem = Problem.all_to_all(build(spec))
    flow = solve_sources(problem, QUIET)
    assert flow.generators is None
    assert flow.groups == len(problem.sources)
    assert check_flow(flow).gap <= 1e-6
    assert acyclic(flow)
    split = solve(problem, "decomposed")
    assert split.destination is not None
    assert check_flow(split).gap <= 1e-6


@pytest.mark.parametrize(("spec", "time"), [("torus:16x16x16", 8192), ("hypercube:12", 2048)])
def test_giants_are_solved_exactly(spec: str, time: int) -> None:
    """4096 nodes by one source, and the checker accepts the compact flow."""
    flow = solve_master(Problem.all_to_all(build(spec)), QUIET)
    assert flow.groups == 1
    assert flow.time == pytest.approx(time, rel=1e-9)
    assert check_flow(flow).gap <= 1e-9


def test_extreme_capacities_survive_the_writing_out() -> None:
    """Widths and demands over many orders of magnitude, turned around a ring of eight."""
    for width in (1e-6, 1e-3, 1e6):
        topology = striped(build("circulant:n=8,jumps=1x3"), (1.0, width, 1.0))
        demand = by_distance(8)
        demand[demand == 1.0] = 1e-8
        for problem in (Problem.all_to_all(topology), Problem(topology, Demand(8, demand))):
            compact = solve_master(problem, QUIET)
            check_flow(compact)
            check_flow(expand(compact))
