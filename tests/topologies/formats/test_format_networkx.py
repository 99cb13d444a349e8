"""networkx graphs and GraphML."""

import contextlib
import re
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alltoall
from alltoall.errors import AlltoallError, FormatError, TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import graphml
from alltoall.topologies.formats.networkx_graph import from_networkx, to_networkx


@st.composite
def multidigraphs(draw: st.DrawFn) -> Topology:
    """Draw a directed multigraph in which links come in any order."""
    nodes = draw(st.integers(2, 7))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=20))
    links = [(u, v, draw(st.floats(1e-9, 1e12))) for u, v in pairs]
    terminals = draw(st.sets(st.integers(0, nodes - 1), min_size=2))
    return Topology.from_links("drawn graph", nodes, links, terminals)


@given(multidigraphs())
def test_networkx_round_trip_is_exact(topology: Topology) -> None:
    """Links come back in their order, whatever the order of the graph's adjacency."""
    graph = to_networkx(topology)
    assert graph.number_of_edges() == topology.links
    found = from_networkx(graph)
    assert found == topology
    assert (found.name, found.notes) == (topology.name, ())


@given(multidigraphs())
def test_graphml_round_trip_is_exact(topology: Topology) -> None:
    """GraphML keeps order, capacities, terminals and the name."""
    found = graphml.read(graphml.write(topology), "g.graphml", "g")
    assert found == topology
    assert found.name == topology.name


def test_every_kind_of_graph_is_taken() -> None:
    """Undirected kinds become links either way, directed ones keep their direction."""
    edges = [(0, 1), (1, 2), (2, 0)]
    both = Topology.from_edges("g", 3, edges)
    one_way = Topology.from_links("g", 3, edges)
    assert from_networkx(nx.Graph(edges), "g") == both
    assert from_networkx(nx.MultiGraph(edges), "g") == both
    assert from_networkx(nx.DiGraph(edges), "g") == one_way
    assert from_networkx(nx.MultiDiGraph(edges), "g") == one_way
    assert from_networkx(nx.MultiGraph([(0, 1), (0, 1)]), "g").links == 4


def test_integer_labels_keep_their_ids() -> None:
    """The order in which nodes were added does not matter if the labels are ids."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from([2, 0, 1])
    graph.add_edge(2, 0, capacity=4)
    found = from_networkx(graph)
    assert found.tail.tolist() == [0, 2]
    assert found.notes == ()


def test_other_labels_are_numbered_and_become_names() -> None:
    """Labels become ids in the graph's order, and what the nodes are called."""
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_node("a")
    graph.add_node("sw", terminal=False)
    graph.add_node("b")
    graph.add_edge("a", "sw", bw=2)
    graph.add_edge("sw", "b")
    found = from_networkx(graph, "named", capacity="bw")
    assert found.terminals.tolist() == [0, 2]
    assert found.capacity.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert found.names == ("a", "sw", "b")
    assert found.notes == ("no bw on 1 of 2 edges, taken as 1",)


def test_a_capacity_that_is_no_number_is_refused() -> None:
    """The message names the edge."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edge(0, 1, capacity="fast")
    with pytest.raises(TopologyError, match="edge 0 -> 1 has capacity 'fast'"):
        from_networkx(graph)


def weighted(**attributes: float) -> "nx.Graph[int]":
    """Return a triangle, one edge of which has some attributes."""
    graph: nx.Graph[int] = nx.Graph([(0, 1), (1, 2)])
    graph.add_edge(0, 2, **attributes)
    return graph


def test_a_weight_is_not_silently_left_out() -> None:
    """Whether it is a capacity only its author knows; the message says how to say so."""
    with pytest.raises(TopologyError, match=r"edge 0 -> 2 has the weight 5.*--capacity-attribute"):
        from_networkx(weighted(weight=5))
    assert from_networkx(weighted(weight=5), capacity="weight").capacity.max() == 5
    assert from_networkx(weighted(weight=5, capacity=3)).capacity.max() == 3
    assert from_networkx(weighted(weight=1)).capacity.max() == 1  # either way the same


def test_the_advice_for_a_weight_can_be_followed() -> None:
    """Whatever function the graph is given to, the words of the message lead to an answer."""
    graph = weighted(weight=5)
    with pytest.raises(TopologyError) as caught:
        alltoall.solve(graph)
    advice = re.search(r"in Python (alltoall\.topology\(.*?\));", str(caught.value))
    assert advice is not None
    topology = eval(advice[1], {"alltoall": alltoall, "graph": graph})
    assert alltoall.solve(topology).problem.topology.capacity.max() == 5


def test_an_attribute_that_no_edge_has_is_refused() -> None:
    """A misspelt name must not become a capacity of 1 everywhere."""
    with pytest.raises(TopologyError, match=r"the attribute 'width'.*found bw, name"):
        from_networkx(weighted(bw=2, name=1), capacity="width")
    with pytest.raises(TopologyError, match="found none"):
        from_networkx(weighted(), capacity="capacity")


@pytest.mark.parametrize(
    ("graph", "notes"),
    [
        (weighted(), ()),
        (weighted(bandwidth=1, fast=True), ()),
        (weighted(weight=1), ()),
        (weighted(capacity=2), ("no capacity on 2 of 3 edges, taken as 1",)),
        (
            weighted(speed=7, bw=2.5),
            ("no capacity on 3 of 3 edges, taken as 1; not used: bw, speed",),
        ),
        (nx.cycle_graph(3), ()),
    ],
)
def test_a_capacity_that_is_assumed_is_noted(
    graph: "nx.Graph[int]", notes: tuple[str, ...]
) -> None:
    """Other numbers in its place, or capacities elsewhere, make a 1 worth a word."""
    assert from_networkx(graph).notes == notes
    text = "\n".join(nx.generate_graphml(graph))
    assert graphml.read(text, "g.graphml", "g").notes == notes


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="c" for="edge" attr.name="capacity" attr.type="double"/>
  <key id="t" for="node" attr.name="terminal" attr.type="boolean"><default>true</default></key>
  <graph id="G" edgedefault="undirected">
    <node id="n0"/>
    <node id="n1"><data key="t">false</data></node>
    <node id="n2"/>
    <edge source="n0" target="n1"><data key="c">2.5</data></edge>
    <edge source="n2" target="n1"/>
  </graph>
</graphml>
"""

BOMB = """<?xml version="1.0"?>
<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<graphml><graph edgedefault="directed"><node id="&c;"/></graph></graphml>
"""


def test_graphml_of_another_program_is_read() -> None:
    """Named nodes, default values and a missing capacity are understood."""
    found = graphml.read(GRAPHML, "g.graphml", "g")
    expected = Topology.from_edges("g", 3, [(0, 1, 2.5), (2, 1)], terminals=[0, 2])
    assert found == expected
    assert found.name == "g"
    assert found.names == ("n0", "n1", "n2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "document type or entities"),
        (GRAPHML[:300], "not well-formed XML"),
        (
            GRAPHML.replace("?>", '?><!DOCTYPE graphml SYSTEM "file:///etc/passwd">'),
            "document type",
        ),
        ("<a>" * 5000, "nested deeper than 100"),
        ("<html/>", "the root is <html>; expected <graphml>"),
        ("<graphml/>", "holds 0 graphs"),
        (GRAPHML.replace('target="n1"/>', "/>"), "edge without a target: the 2. <edge>"),
        (GRAPHML.replace('source="n2"', 'source="n9"'), "expected every edge to end at declared"),
        (GRAPHML.replace('target="n1"/>', 'target="n1" directed="true"/>'), "that networkx reads"),
        (GRAPHML.replace("2.5", "wide"), "a <data> does not fit the type of its <key>"),
        (GRAPHML.replace('"double"', '"complex"'), "does not know the type or the value 'complex'"),
        (GRAPHML.replace(">false<", ">perhaps<"), "does not know the type or the value 'perhaps'"),
        (GRAPHML.replace(' id="n2"', ""), "node without an id: the 3. <node>"),
        (GRAPHML.replace(' id="n2"', ' id="n0"'), "the 1. and the 3. <node> have the id 'n0'"),
        (GRAPHML.replace('source="n0"', ""), "edge without a source: the 1. <edge>"),
        (
            GRAPHML.replace("</graph>", '<edge source="n1" target="n0"/></graph>'),
            "name 1 pair in both orders, such as 'n0' 'n1'; a cable that is listed from both ends",
        ),
        ("", "not well-formed XML"),
    ],
)
def test_bad_graphml_is_refused(text: str, message: str) -> None:
    """Bombs, broken files and files of another kind end in a FormatError with the file's name."""
    with pytest.raises(FormatError, match=message) as caught:
        graphml.read(text, "g.graphml", "g")
    assert "g.graphml" in str(caught.value)
    assert "Error" not in str(caught.value)


def test_edges_that_networkx_would_merge_are_refused() -> None:
    """Two parallel edges of one id would silently become one."""
    edge = '<edge id="e" source="n0" target="n1"/>'
    text = GRAPHML.replace("</graph>", edge * 2 + "</graph>")
    with pytest.raises(FormatError, match="parallel edges to have different ids"):
        graphml.read(text, "g.graphml", "g")


@given(st.integers(0, len(GRAPHML)), st.integers(0, 20), st.text(max_size=5))
def test_damaged_graphml_is_read_or_refused(start: int, length: int, patch: str) -> None:
    """No damage makes the reader fail in another way than by its own errors."""
    text = GRAPHML[:start] + patch + GRAPHML[start + length :]
    with contextlib.suppress(AlltoallError):
        graphml.read(text, "g.graphml", "g")
