"""Random problems and artefacts for property tests."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

capacities = st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 10.0])


@st.composite
def topologies(draw: st.DrawFn, max_nodes: int = 7, switches: bool = True) -> Topology:
    """Draw a strongly connected digraph: a cycle through all nodes, and random links on top."""
    nodes = draw(st.integers(2, max_nodes))
    order = draw(st.permutations(range(nodes)))
    cycle = [(order[i], order[(i + 1) % nodes]) for i in range(nodes)]
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    extra = draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=3 * nodes))
    links = [(u, v, draw(capacities)) for u, v in cycle + extra]
    terminals = None
    if switches and nodes > 2:
        terminals = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=2)))
    return Topology.from_links("random", nodes, links, terminals)


RINGS = {
    "first": [("first", "first")],
    "each": [("first", "first"), ("last", "last")],
    "switch": [("switch", "switch")],
    "last to first": [("last", "first")],
}
"""What joins a host to the next one in a ring of hosts: pairs of ends."""


def hosts_in_a_ring(hosts: int, each: int, fast: float, ring: str) -> Topology:
    """Build hosts of `each` terminals behind a fast switch, and slow links from host to host."""
    links = []
    for host in range(hosts):
        here, there = (_ends(number % hosts, hosts, each) for number in (host, host + 1))
        for node in range(host * each, (host + 1) * each):
            links += [(node, here["switch"], fast), (here["switch"], node, fast)]
        for one, other in RINGS[ring]:
            links += [(here[one], there[other], 1.0), (there[other], here[one], 1.0)]
    terminals = list(range(hosts * each))
    return Topology.from_links(f"{ring} ring", hosts * (each + 1), links, terminals)


def _ends(host: int, hosts: int, each: int) -> dict[str, int]:
    """Return the nodes of a host at which links to other hosts end."""
    return {"first": host * each, "last": (host + 1) * each - 1, "switch": hosts * each + host}


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Draw a few hosts behind switches, in a ring."""
    hosts, each = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    fast = draw(st.sampled_from([0.5, 1.0, 3.0, 10.0, 1e3]))
    return hosts_in_a_ring(hosts, each, fast, draw(st.sampled_from(list(RINGS))))


@st.composite
def problems(draw: st.DrawFn, max_nodes: int = 7) -> Problem:
    """Draw a topology and a demand on it: uniform, or sparse and uneven."""
    topology = draw(topologies(max_nodes))
    terminals = len(topology.terminals)
    if draw(st.booleans()):
        return Problem.all_to_all(topology)
    amounts = st.sampled_from([0.0, 0.0, 0.125, 1.0, 1.0, 5.0])
    cells = st.lists(amounts, min_size=terminals**2, max_size=terminals**2)
    matrix = np.array(draw(cells)).reshape(terminals, terminals)
    np.fill_diagonal(matrix, 0.0)
    if not matrix.any():
        matrix[0, 1] = 1.0
    return Problem(topology, Demand(terminals, matrix))


@st.composite
def symmetric_problems(draw: st.DrawFn, max_nodes: int = 8) -> Problem:
    """Draw a circulant digraph, with a width and a demand for each difference of ends.

    Links may be parallel, and hubs, which are switches, may stand between all of them.
    """
    nodes = draw(st.integers(3, max_nodes))
    jumps = [1, *draw(st.lists(st.integers(1, nodes - 1), max_size=3))]
    links = [
        (node, (node + jump) % nodes, width)
        for jump, width in [(jump, draw(capacities)) for jump in jumps]
        for node in range(nodes)
    ]
    hubs = draw(st.integers(0, 2))
    for hub in range(nodes, nodes + hubs):
        links += [pair for node in range(nodes) for pair in ((node, hub, 0.5), (hub, node, 0.25))]
    topology = Topology.from_links("circulant", nodes + hubs, links, list(range(nodes)))
    if draw(st.booleans()):
        return Problem.all_to_all(topology)
    amounts = st.lists(st.sampled_from([0.0, 0.125, 1.0, 5.0]), min_size=nodes, max_size=nodes)
    amount = np.array([0.0, 1.0, *draw(amounts)[2:]])
    ahead = (np.arange(nodes) - np.arange(nodes)[:, None]) % nodes
    return Problem(topology, Demand(nodes, amount[ahead]))


def _integers(draw: st.DrawFn, below: int, count: int) -> Ints:
    """Draw `count` integers from 0 to below `below`."""
    return np.array(draw(st.lists(st.integers(0, below - 1), min_size=count, max_size=count)), int)


def _numbers(draw: st.DrawFn, count: int) -> Floats:
    """Draw `count` positive numbers, some of which only the widest type holds."""
    numbers = st.floats(1e-300, 1e300) | st.sampled_from([1.0, 0.5, 1 / 3])
    return np.array(draw(st.lists(numbers, min_size=count, max_size=count)), float)


def _runs(draw: st.DrawFn, count: int, least: int) -> Ints:
    """Draw where `count` runs of at least `least` entries start, and where the last one ends."""
    sizes = draw(st.lists(st.integers(least, 4), min_size=count, max_size=count))
    return np.cumsum([0, *sizes], dtype=np.int64)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Draw a flow that is well-formed, which is all that a file asks for, and seldom true."""
    problem = draw(problems())
    topology, terminals = problem.topology, len(problem.topology.terminals)
    count, maps = draw(st.integers(0, 5)), draw(st.integers(0, 2))
    start = _runs(draw, count, 0)
    images = [draw(st.permutations(range(topology.nodes))) for _ in range(maps)]
    per_commodity = draw(st.booleans()) and not images
    return Flow(
        problem=problem,
        rate=draw(st.floats(1e-9, 1e9)),
        source=_integers(draw, terminals, count),
        destination=_integers(draw, terminals, count) if per_commodity else None,
        start=start,
        link=_integers(draw, topology.links, int(start[-1])),
        amount=_numbers(draw, int(start[-1])),
        certificate=Certificate(_numbers(draw, topology.links), draw(st.floats(1e-9, 1e9))),
        method=draw(st.text(max_size=5)),
        status=draw(st.sampled_from(list(Status))),
        generators=np.array(images, int) if images else None,
    )


@st.composite
def routes(draw: st.DrawFn) -> Routes:
    """Draw routes that are well-formed, and seldom true."""
    problem = draw(problems())
    topology, terminals = problem.topology, len(problem.topology.terminals)
    count = draw(st.integers(1, 5))
    start = _runs(draw, count, 1)
    return Routes(
        problem=problem,
        source=_integers(draw, terminals, count),
        destination=_integers(draw, terminals, count),
        start=start,
        link=_integers(draw, topology.links, int(start[-1])),
        weight=_numbers(draw, count),
        certificate=Certificate(_numbers(draw, topology.links), draw(st.floats(0, 1e9))),
        method=draw(st.text(max_size=5)),
        **_layers(draw, count, int(start[-1])),
        denominator=draw(st.none() | st.integers(1, 2**53)),
    )


def _layers(draw: st.DrawFn, count: int, hops: int) -> dict[str, Any]:
    """Draw no layers, a layer per route, or one per hop."""
    most = draw(st.sampled_from([1, 9, 300, 2**40]))
    kind = draw(st.sampled_from([None, "layer", "hop_layer"]))
    return {} if kind is None else {kind: _integers(draw, most, count if kind == "layer" else hops)}


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Draw a schedule that is well-formed, and seldom true."""
    topology = draw(topologies())
    terminals, steps = len(topology.terminals), draw(st.integers(1, 4))
    chunks = Chunks(terminals, 300)
    if draw(st.booleans()):
        counts = _integers(draw, 300, terminals**2).reshape(terminals, terminals) + 1
        chunks = Chunks(terminals, counts=counts * (1 - np.eye(terminals, dtype=int)))
    pairs = st.tuples(st.integers(0, terminals - 1), st.integers(1, terminals - 1))
    ends = draw(st.lists(pairs, max_size=6))
    source = np.array([source for source, _ in ends], int)
    destination = np.array([(source + ahead) % terminals for source, ahead in ends], int)
    return Schedule(
        problem=Problem.all_to_all(topology),
        chunks=chunks,
        steps=steps,
        step=np.sort(_integers(draw, steps, len(ends))),
        source=source,
        destination=destination,
        chunk=_integers(draw, 300, len(ends)) % np.maximum(chunks.of(source, destination), 1),
        link=_integers(draw, topology.links, len(ends)),
        certificate=Certificate(_numbers(draw, topology.links), draw(st.floats(0, 1e9))),
        fractional_time=draw(st.floats(0, 1e9)),
        method=draw(st.text(max_size=5)),
    )
