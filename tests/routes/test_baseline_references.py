"""Baselines against plain rereadings of their definitions: the same routes, link by link."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from baseline_cases import case, settings

from alltoall import Demand, Problem, Topology
from alltoall.check.routes import check_routes
from alltoall.errors import InputError
from alltoall.ir.routes import Routes
from alltoall.routes import ROUTERS, route
from alltoall.routes.baselines.ewsp import route_ewsp
from alltoall.routes.layers.assign import assign_layers
from alltoall.settings import RouteSettings
from alltoall.topologies.properties import hop_distances
from alltoall.topologies.spec import build

NAMES = ("torus:3x3x3", "genkautz:n=16,d=4", "hosted ring", "uneven capacities", "uneven demand",
         "fattree:k=4")  # fmt: skip


def paths_of(routes: Routes) -> dict[tuple[int, int], list[list[int]]]:
    """Return the links of all routes, by pair."""
    found: dict[tuple[int, int], list[list[int]]] = {}
    for each in range(routes.count):
        ends = (int(routes.source[each]), int(routes.destination[each]))
        links = routes.link[routes.start[each] : routes.start[each + 1]].tolist()
        found.setdefault(ends, []).append(links)
    return found


def demand_of(problem: Problem) -> np.ndarray:
    """Return the demand as a matrix."""
    return problem.demand.rows(np.arange(problem.demand.terminals))


def distances_to(topology: Topology, root: int, weight: np.ndarray) -> np.ndarray:
    """Return the distance of every node to a root, by relaxing all links until nothing changes."""
    distance = np.full(topology.nodes, np.inf)
    distance[root] = 0.0
    for _ in range(topology.nodes):
        np.minimum.at(distance, topology.tail, distance[topology.head] + weight)
    return distance


def followed(topology: Topology, table: dict[int, int], node: int, end: int) -> list[int]:
    """Return the links by which a table leads from a node to the end."""
    path = []
    while node != end:
        path.append(table[node])
        node = int(topology.head[path[-1]])
    return path


def table_of(problem: Problem, method: str, row: int) -> dict[int, int]:
    """Return the link by which each node on a route to a terminal goes on, the same for all."""
    topology = problem.topology
    table: dict[int, int] = {}
    for (_, destination), (path,) in paths_of(ROUTERS[method](problem, settings())).items():
        if destination == row:
            for link in path:
                assert table.setdefault(int(topology.tail[link]), link) == link
    return table


@pytest.mark.parametrize("name", NAMES)
def test_ecmp_forwards_by_destination_over_links_that_lead_nearer(name: str) -> None:
    """Every node has one link per destination, and it leads one hop nearer."""
    problem = case(name)
    topology = problem.topology
    for row, root in enumerate(topology.terminals.tolist()):
        hops = distances_to(topology, root, np.ones(topology.links))
        for node, link in table_of(problem, "ecmp", row).items():
            assert hops[topology.head[link]] + 1 == hops[node]


def test_ecmp_spreads_destinations_evenly_and_otherwise_at_each_node() -> None:
    """Sixteen destinations behind four equal links: none idle; another node picks otherwise."""
    ends = [(first, middle) for first in (0, 1) for middle in range(2, 6)]
    ends += [(middle, end) for middle in range(2, 6) for end in range(6, 22)]
    links = [*ends, *((head, tail) for tail, head in ends)]
    problem = Problem.all_to_all(Topology.from_links("two stages", 22, [(*e, 1.0) for e in links]))
    picked: dict[int, list[int]] = {0: [], 1: []}
    for row in range(6, 22):
        table = table_of(problem, "ecmp", row)
        for node, heads in picked.items():
            heads.append(int(problem.topology.head[table[node]]))
    counts = [heads.count(middle) for heads in picked.values() for middle in range(2, 6)]
    assert 2 <= min(counts) <= max(counts) <= 8
    assert picked[0] != picked[1]


CABLED = ("torus:3x3x3", "hypercube:3", "mesh:3x4", "ring:6", "fattree:k=4",
          "jellyfish:n=16,d=3,seed=1", "jellyfish:n=17,d=4,seed=2")  # fmt: skip


@pytest.mark.parametrize("name", CABLED)
def test_updown_climbs_and_then_descends_on_the_shortest_such_way(name: str) -> None:
    """One link per node and destination, no climb after a descent, one layer, least used links."""
    problem = Problem.all_to_all(build(name))
    topology = problem.topology
    every = hop_distances(topology)
    rank = every[int(every.max(axis=1).argmin())]
    place = [(rank[node], node) for node in range(topology.nodes)]
    climbs = [place[v] < place[u] for u, v in zip(topology.tail, topology.head, strict=True)]
    for row, root in enumerate(topology.terminals.tolist()):
        # By relaxing: the shortest descent of each node, and the shortest way of any kind.
        down, any_way = np.full((2, topology.nodes), np.inf)
        down[root] = any_way[root] = 0
        for _ in range(topology.nodes):
            for link, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True)):
                if not climbs[link]:
                    down[u] = min(down[u], down[v] + 1)
                any_way[u] = min(any_way[u], down[u], any_way[v] + 1 if climbs[link] else np.inf)
        table = table_of(problem, "updown", row)
        for begin in topology.terminals.tolist():
            path = followed(topology, table, begin, root)
            ways = [climbs[link] for link in path]
            assert ways == sorted(ways, reverse=True)
            assert any_way[begin] <= len(path) <= topology.nodes
            if down[begin] == any_way[begin]:
                assert len(path) == any_way[begin]
    routes = route(problem, "updown")
    layered = assign_layers(routes, "df-sssp")
    assert layered.layers == 1


@pytest.mark.parametrize("seed", range(8))
def test_updown_needs_no_more_than_a_tree_of_links_in_both_directions(seed: int) -> None:
    """Links without a partner, and partners of another capacity, are links like all others."""
    rng = np.random.default_rng(seed)
    tree = [(node, int(rng.integers(node))) for node in range(1, 12)]
    one_way = {(int(u), int(v)) for u, v in rng.integers(12, size=(20, 2)) if u != v}
    ends = [*tree, *((v, u) for u, v in tree), *sorted(one_way)]
    links = [(u, v, float(rng.integers(1, 4))) for u, v in ends]
    routes = route(Problem.all_to_all(Topology.from_links("tree", 12, links)), "updown")
    assert assign_layers(routes, "df-sssp").layers == 1


def test_updown_wants_links_in_both_directions() -> None:
    """A directed network has no way back to climb; the first pair without a route is named."""
    with pytest.raises(InputError, match="no table by which 0 climbs first and then descends"):
        ROUTERS["updown"](case("genkautz:n=16,d=4"), settings())


@pytest.mark.parametrize("name", NAMES)
def test_sssp_takes_shortest_paths_under_what_the_trees_before_left(name: str) -> None:
    """Tree after tree: each route is shortest under hops and the loads of all earlier trees."""
    problem = case(name)
    topology, demand = problem.topology, demand_of(problem)
    found = paths_of(ROUTERS["sssp"](problem, settings()))
    # A hop outweighs all loads, so hops come first and loads break ties.
    load = np.zeros(topology.links)
    heavy = 1e3 * topology.nodes * demand.sum() / topology.capacity.min()
    for row, root in enumerate(topology.terminals.tolist()):
        best = distances_to(topology, root, heavy + load)
        added = np.zeros(topology.links)
        for source in np.flatnonzero(demand[:, row]):
            (path,) = found[int(source), row]
            length = (heavy + load)[path].sum()
            assert length == pytest.approx(best[topology.terminals[source]], rel=1e-13)
            added[path] += demand[source, row] / topology.capacity[path]
        load += added


def test_sssp_counts_loads_over_capacities_after_hops() -> None:
    """The second tree avoids what the first one loaded, unless the loaded link is wide."""
    # Two ways from 0 over 1 or 2 to 3 and on to 4 and 5, both of which want from 0 alone.
    ends = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 0), (5, 0), (3, 0)]
    matrix = np.zeros((6, 6))
    matrix[0, 4] = matrix[0, 5] = 1.0
    for wide, second in ((1.0, [1, 3, 5]), (4.0, [1, 3, 5])):
        links = [(*each, wide if each in ((0, 1), (1, 3)) else 1.0) for each in ends]
        problem = Problem(Topology.from_links("two ways", 6, links), Demand(6, matrix))
        found = paths_of(ROUTERS["sssp"](problem, settings()))
        assert found[0, 4] == [[0, 2, 4]]
        assert found[0, 5] == [second]
    # Three shards one after the other: the wide way takes three before the narrow one takes one.
    matrix[0, 1] = matrix[0, 2] = 0.0
    matrix[0, 3] = 1.0
    links = [(*each, 4.0 if each in ((0, 1), (1, 3)) else 1.0) for each in ends]
    problem = Problem(Topology.from_links("two ways", 6, links), Demand(6, matrix))
    found = paths_of(ROUTERS["sssp"](problem, settings()))
    assert [found[0, end][0][0] for end in (3, 4, 5)] == [0, 1, 0]


@pytest.mark.parametrize(("narrowest", "demand"), [(1e-3, 1.0), (1.0, 1e6), (1e-3, 1e6)])
def test_a_hop_outweighs_all_loads(narrowest: float, demand: float) -> None:
    """However much lies on the short way from 0 over 1 to 3, the way over 2 and 4 is not taken."""
    ring = [(0, 2, 1.0), (2, 4, 1.0), (4, 3, 1.0), (3, 0, 1.0)]
    links = [(0, 1, narrowest), (1, 3, 1.0), (1, 0, 1.0), *ring]
    matrix = np.zeros((5, 5))
    matrix[0, 1], matrix[0, 3] = demand, 1.0
    problem = Problem(Topology.from_links("two ways", 5, links), Demand(5, matrix))
    assert paths_of(ROUTERS["sssp"](problem, settings()))[0, 3] == [[0, 1]]


@pytest.mark.parametrize("spec", ["torus:4x3", "torus:2x4", "mesh:3x4", "torus:5x2x3"])
def test_dor_walks_one_dimension_after_the_other(spec: str) -> None:
    """By coordinates: the shorter way round, both where they tie, up and then down."""
    problem = Problem.all_to_all(build(spec))
    topology = problem.topology
    wraps = spec.startswith("torus")
    dims = tuple(map(int, spec.partition(":")[2].split("x")))
    link = {
        (int(u), int(v)): i
        for i, (u, v) in reversed(list(enumerate(zip(topology.tail, topology.head, strict=True))))
    }
    routes = ROUTERS["dor"](problem, settings())
    found = paths_of(routes)
    for (source, destination), paths in found.items():
        wanted = []
        for tie in (1, -1):
            here = list(np.unravel_index(source, dims))
            stops = [source]
            for axis, (side, end) in enumerate(
                zip(dims, np.unravel_index(destination, dims), strict=True)
            ):
                up = (int(end) - int(here[axis])) % side
                step = 1 if int(end) > int(here[axis]) else -1
                hops = abs(int(end) - int(here[axis]))
                if wraps:
                    hops = min(up, side - up)
                    step = tie if 2 * up == side else 1 if 2 * up < side else -1
                for _ in range(hops):
                    here[axis] = (here[axis] + step) % side
                    stops.append(int(np.ravel_multi_index(here, dims)))
            path = [link[hop] for hop in pairwise(stops)]
            if path not in wanted:
                wanted.append(path)
        assert paths == wanted
        weight = routes.weight[(routes.source == source) & (routes.destination == destination)]
        assert weight.tolist() == [1 / len(wanted)] * len(wanted)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (None, "its links are not those of a grid"),
        ((5, 1), "neighbours in dimension 0 of a grid of 5x1"),
        ((2, 2), "the shape 2x2 for 5 nodes"),
    ],
)
def test_dor_says_why_it_is_no_grid(shape: tuple[int, ...] | None, words: str) -> None:
    """Links in one direction only are no grid, whatever the name says, and whatever is told."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    problem = Problem.all_to_all(Topology.from_links("torus:5", 5, ring))
    with pytest.raises(InputError, match=words):
        ROUTERS["dor"](problem, replace(settings(), shape=shape))


@pytest.mark.parametrize(
    "spec", ["torus:3x5", "torus:4x4", "mesh:3x4", "hypercube:3", "hyperx:3x4x2", "ring:6"]
)
def test_dor_on_a_grid_of_any_numbering(spec: str) -> None:
    """Routes are shortest, and as fast as with the numbering of the family."""
    topology = build(spec)
    order = np.random.default_rng(1).permutation(topology.nodes)
    other = replace(
        topology, name="from a file", tail=order[topology.tail], head=order[topology.head]
    )
    times = [
        check_routes(ROUTERS["dor"](Problem.all_to_all(each), settings())).time
        for each in (topology, other)
    ]
    assert times[0] == pytest.approx(times[1])
    routes = ROUTERS["dor"](Problem.all_to_all(other), settings())
    hops = hop_distances(other, other.terminals)[routes.source, routes.destination]
    assert np.array_equal(np.diff(routes.start), hops)


@pytest.mark.parametrize("name", NAMES)
def test_ewsp_lists_every_shortest_path_once(name: str) -> None:
    """By walking all ways that lead nearer."""
    problem = case(name)
    topology = problem.topology
    routes = route_ewsp(problem, RouteSettings())
    found = paths_of(routes)
    for row, root in enumerate(topology.terminals.tolist()):
        hops = distances_to(topology, root, np.ones(topology.links))

        def walks(node: int, root: int = root, hops: np.ndarray = hops) -> list[list[int]]:
            if node == root:
                return [[]]
            nearer = np.flatnonzero(
                (topology.tail == node) & (hops[topology.head] + 1 == hops[node])
            )
            return [
                [int(link), *rest] for link in nearer for rest in walks(int(topology.head[link]))
            ]

        for source in np.flatnonzero(demand_of(problem)[:, row]):
            wanted = walks(int(topology.terminals[source]))
            if len(wanted) <= 64:
                mine = (routes.source == source) & (routes.destination == row)
                assert sorted(found[int(source), row]) == sorted(wanted)
                share = demand_of(problem)[source, row] / len(wanted)
                assert routes.weight[mine] == pytest.approx(share)
