"""msccl-tools topology JSON, and its switches as hubs."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from alltoall.errors import AlltoallError, FormatError, TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import msccl_json
from alltoall.topologies.formats.msccl_json import Arc, Links, Switch, expand

Row = tuple[list[int], list[int], float, str]


def saved(links: list[list[float]], switches: list[Row] | None = None) -> str:
    """Return what msccl-tools would save."""
    return json.dumps(
        {"msccl_type": "topology", "name": "T", "switches": switches or [], "links": links}
    )


def read(text: str) -> Topology:
    """Read the text of a made-up file."""
    return msccl_json.read(text, "t.json", "t")


def full(nodes: int, bandwidth: float = 1) -> list[list[float]]:
    """Return the links of a complete graph."""
    return [[0 if u == v else bandwidth for u in range(nodes)] for v in range(nodes)]


def arcs(topology: Topology) -> list[Arc]:
    """Return the links as tuples."""
    columns = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    return list(zip(*columns, strict=True))


def test_links_are_indexed_by_destination_first() -> None:
    """links[1][0] goes from 0 to 1."""
    found = read(saved([[0, 5], [2, 0]]))
    assert arcs(found) == [(0, 1, 2.0), (1, 0, 5.0)]
    assert found.name == "T"


def test_hub_and_spoke_has_two_hubs_per_gpu() -> None:
    """A switch per source and one per destination are chained: out of i, into j."""
    switches: list[Row] = []
    for node in range(3):
        others = [other for other in range(3) if other != node]
        switches += [([node], others, 1, f"{node}_out"), (others, [node], 2, f"{node}_in")]
    found = read(saved(full(3, 4), switches))
    out, into = [3, 5, 7], [4, 6, 8]
    expected = [
        *((i, out[i], 1.0) for i in range(3)),
        *((out[i], into[j], 4.0) for i in range(3) for j in range(3) if i != j),
        *((into[j], j, 2.0) for j in range(3)),
    ]
    assert arcs(found) == sorted(expected)
    assert found.terminals.tolist() == [0, 1, 2]
    assert found.notes == ("6 hub nodes stand for 6 switches",)


def test_many_to_many_switch_is_a_pair_of_hubs() -> None:
    """Two nodes of two GPUs: what leaves a node shares one bandwidth."""
    switches: list[Row] = [([0, 1], [2, 3], 1, "out"), ([2, 3], [0, 1], 1, "back")]
    found = read(saved(full(4), switches))
    assert found.nodes == 8
    assert (4, 5, 1.0) in arcs(found)
    assert (6, 7, 1.0) in arcs(found)
    assert (0, 4, 1.0) in arcs(found)
    assert (5, 3, 1.0) in arcs(found)
    assert (0, 2, 1.0) not in arcs(found)


def test_distributed_hub_and_spoke_chains_two_many_to_many_switches() -> None:
    """Three copies of two GPUs with a shared way out and in, as msccl-tools builds them."""
    switches: list[Row] = []
    for copy in range(3):
        local = [2 * copy, 2 * copy + 1]
        remote = [rank for rank in range(6) if rank not in local]
        switches += [(local, remote, 1, f"out_{copy}"), (remote, local, 1, f"in_{copy}")]
    found = read(saved(full(6), switches))
    assert found.nodes == 6 + 12
    assert sum(tail < 6 and head < 6 for tail, head, _ in arcs(found)) == 6


def test_a_switch_over_one_link_narrows_it() -> None:
    """No hub is needed."""
    found = read(saved([[0, 5], [2, 0]], [([0], [1], 1, "narrow")]))
    assert arcs(found) == [(0, 1, 1.0), (1, 0, 5.0)]


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        (
            [([0, 1], [2, 3], 2, "wide")],
            "link 0 -> 2 of bandwidth 1 is narrower than switch 'wide'",
        ),
        ([([0], [1, 2], 1, "a"), ([0], [2, 3], 1, "b")], "node 0 reach node 2 twice"),
        ([([0, 1], [2], 1, "a"), ([0], [2, 3], 1, "b")], None),
        ([([0, 1], [2, 4], 1, "a")], r"names node 4; expected 0\.\.3"),
        ([([], [1], 1, "a")], "must list its sources"),
        ([([0], [1], 0, "a")], "bandwidth 0"),
        ([([0], [1], -1, "a")], "expected a number of 0 or more"),
        ([([0], [1])], "must be .sources, destinations"),
    ],
)
def test_switches_that_hubs_cannot_express(switches: list[Row], message: str | None) -> None:
    """What cannot be modelled exactly is refused with the reason."""
    text = saved(full(4), switches)
    if message is None:
        assert read(text).nodes == 6
    else:
        with pytest.raises(FormatError, match=message):
            read(text)


def test_a_many_to_many_switch_must_cover_links_only() -> None:
    """Hubs would invent the link that is missing."""
    links = full(4)
    links[3][0] = 0
    with pytest.raises(FormatError, match="let node 0 reach node 3 though there is no such link"):
        read(saved(links, [([0, 1], [2, 3], 1, "s")]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "expected an object"),
        ('{"msccl_type": "algorithm"}', "expected an object with"),
        ('{"msccl_type": "topology"}', "links must be a square matrix"),
        (saved([[0, 1]]), "not a row of 1 numbers"),
        (saved([[1, 1], [1, 0]]), "links a node to itself"),
        (saved([[0, -1], [1, 0]]), r"links\[0\]\[1\] is -1"),
        ('{"msccl_type": "topology", "links": [[0, "x"], [1, 0]]}', r"links\[0\]\[1\] is 'x'"),
        ('{"msccl_type": "topology", "links": [[0, true], [1, 0]]}', "is True"),
        ('{"msccl_type": "topology", "links": [[0, 1e999], [1, 0]]}', "is inf"),
        (
            '{"msccl_type": "topology", "links": [[0, 1], [1, 0]], "switches": 3}',
            "must be an array",
        ),
        (saved(full(3))[:60], "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_malformed_files_are_refused(text: str, message: str) -> None:
    """A message names the file and the element."""
    with pytest.raises(FormatError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith("t.json: ")


@st.composite
def simple_digraphs(draw: st.DrawFn) -> Topology:
    """Draw a digraph without parallel links, ordered as the reader orders links."""
    nodes = draw(st.integers(2, 6))
    ends = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    pairs = sorted(draw(st.sets(st.sampled_from(ends))))
    links = [(u, v, draw(st.floats(1e-9, 1e12))) for u, v in pairs]
    return Topology.from_links("drawn", nodes, links)


@given(simple_digraphs())
def test_round_trip_is_exact(topology: Topology) -> None:
    """Bandwidths survive bit by bit."""
    found = read(msccl_json.write(topology))
    assert found == topology
    assert found.name == "drawn"


def test_writer_adds_up_parallel_links_and_refuses_switches() -> None:
    """The format has one number per pair, and GPUs only."""
    double = Topology.from_links("d", 2, [(0, 1, 1.5), (0, 1, 1.5), (1, 0, 0.5)])
    assert json.loads(msccl_json.write(double))["links"] == [[0, 0.5], [3, 0]]
    star = Topology.from_edges("star", 3, [(0, 2), (1, 2)], terminals=[0, 1])
    with pytest.raises(TopologyError, match="1 nodes are not terminals"):
        msccl_json.write(star)
    large = Topology.from_edges("large", 9000, [(0, 1)])
    with pytest.raises(TopologyError, match="too many for the dense matrix"):
        msccl_json.write(large)


@st.composite
def switched(draw: st.DrawFn) -> tuple[Links, list[Switch], list[float]]:
    """Draw links between four GPUs, switches over them, and a weight for every link."""
    pairs = [(u, v) for u in range(4) for v in range(4) if u != v]
    wide = st.sampled_from([1.0, 2.0, 3.0])
    links = {pair: draw(wide) for pair in draw(st.sets(st.sampled_from(pairs), min_size=6))}
    group = st.frozensets(st.integers(0, 3), min_size=1, max_size=3)
    made = st.builds(Switch, group, group, wide, st.just("s"))
    weights = draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=12, max_size=12))
    return links, draw(st.lists(made, min_size=1, max_size=3)), weights


def best_by_definition(links: Links, switches: list[Switch], weights: list[float]) -> float:
    """Maximise the weighted bandwidth of links under the limits that the format states."""
    pairs = list(links)
    rows = [
        [float(u in switch.sources and v in switch.destinations) for u, v in pairs]
        for switch in switches
    ]
    limits = [switch.bandwidth for switch in switches]
    bounds = [(0, links[pair]) for pair in pairs]
    cost = [-weights[index] for index in range(len(pairs))]
    result = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds)
    assert result.fun is not None
    return -float(result.fun)


def best_over_hubs(links: Links, modelled: list[Arc], weights: list[float]) -> float:
    """Maximise the same over all paths from GPU to GPU that the hubs allow."""
    weight = dict(zip(links, weights, strict=False))
    stack = [[index] for index, arc in enumerate(modelled) if arc[0] < 4]
    paths: list[list[int]] = []
    while stack:
        path = stack.pop()
        head = modelled[path[-1]][1]
        if head < 4:
            paths.append(path)
        else:
            stack += [[*path, index] for index, arc in enumerate(modelled) if arc[0] == head]
    paths = [path for path in paths if modelled[path[0]][0] != modelled[path[-1]][1]]
    cost = [-weight[modelled[path[0]][0], modelled[path[-1]][1]] for path in paths]
    rows = [[float(index in path) for path in paths] for index in range(len(modelled))]
    result = linprog(cost, A_ub=np.array(rows), b_ub=[arc[2] for arc in modelled])
    assert result.fun is not None
    return -float(result.fun)


@given(switched())
def test_hubs_carry_exactly_what_switches_allow(
    drawn: tuple[Links, list[Switch], list[float]],
) -> None:
    """Where hubs are accepted, both models have the same optimum for any weights."""
    links, switches, weights = drawn
    try:
        _, modelled = expand(4, links, switches, "t.json")
    except AlltoallError:
        assume(False)
    expected = best_by_definition(links, switches, weights)
    assert best_over_hubs(links, modelled, weights) == pytest.approx(expected)
