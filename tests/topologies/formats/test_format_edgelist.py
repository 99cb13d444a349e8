"""Edge lists."""

import contextlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import AlltoallError, FormatError
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import edgelist


def read(text: str, directed: bool = False) -> Topology:
    """Read an edge list from a made-up file."""
    return edgelist.read(text, "net.edges", "net", directed)


@st.composite
def digraphs(draw: st.DrawFn) -> Topology:
    """Draw a directed multigraph with capacities and some nodes that are not terminals."""
    nodes = draw(st.integers(2, 7))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=20))
    widths = st.floats(1e-300, 1e300, allow_nan=False)
    links = [(u, v, draw(widths)) for u, v in pairs]
    terminals = draw(st.sets(st.integers(0, nodes - 1), min_size=2))
    return Topology.from_links("drawn graph", nodes, links, terminals)


def test_undirected_edges_become_links_either_way() -> None:
    """Comments, blank lines, tabs and a capacity are understood."""
    found = read("# a triangle\n\n0 1\n1\t2  2.5  # wide\r\n2 0\n")
    expected = Topology.from_edges("net", 3, [(0, 1), (1, 2, 2.5), (2, 0)])
    assert found == expected
    assert found.name == "net"


def test_undirected_parallel_edges_have_the_order_of_from_edges() -> None:
    """Ties between parallel edges are broken as in the constructor."""
    edges = [(1, 0, 5.0), (0, 1, 3.0), (1, 0, 4.0)]
    text = "\n".join(f"{u} {v} {c}" for u, v, c in edges)
    assert edgelist.read(text, "net.edges", "net", parallel=True) == Topology.from_edges(
        "net", 2, edges, parallel=True
    )


@pytest.mark.parametrize("text", ["# Directed\n0 1 2\n1 0 3\n", "# DIRECTED \n0 1 2\n1 0 3"])
def test_directed_header(text: str) -> None:
    """A header comment makes every line one link."""
    assert read(text) == Topology.from_links("net", 2, [(0, 1, 2), (1, 0, 3)])


def test_directed_option() -> None:
    """The option does what the header does."""
    assert read("0 1\n1 2\n2 0\n", directed=True).links == 3


def test_terminals_header() -> None:
    """Nodes that are not listed forward only."""
    assert read("# Terminals: 0, 2\n0 1\n1 2\n").terminals.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n2 3\n", "node 0, .* ids must start at 0"),
        ("0 1\n1 3\n", "no edge at node 2, though ids go up to 3"),
        ("0 1\n1\n", "line 2: '1' is not an edge"),
        ("0 1 2 3\n", "line 1: .* is not an edge"),
        ("0 -1\n", "line 1: '-1' is no node"),
        ("0 1.5\n", "'1.5' is no node"),
        ("0 99999999999999999999\n", "above the limit of 1,000,000 nodes"),
        ("0 1 fast\n", "'fast' is not a capacity"),
        ("0 1 -2\n", "'-2' is not a capacity"),
        ("0 1 nan\n", "'nan' is not a capacity"),
        ("0 1 inf\n", "'inf' is not a capacity"),
        ("0 1\n1 1\n", "line 2: an edge from 1 to itself"),
        ("# nodes: many\n0 1\n", "line 1: 'many' is not an integer"),
        ("", "holds no edge"),
    ],
)
def test_malformed_lines_are_named(text: str, message: str) -> None:
    """A message names the file, the line, and what was expected."""
    with pytest.raises(FormatError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith("net.edges: ")


@given(digraphs())
def test_round_trip_is_exact(topology: Topology) -> None:
    """What is written is read back the same, isolated nodes and the name included."""
    found = read(edgelist.write(topology))
    assert found == topology
    assert found.name == topology.name


def test_names_cannot_inject_lines() -> None:
    """A name with a newline stays within its comment."""
    topology = Topology.from_links("evil\n0 1 5", 2, [(0, 1), (1, 0)])
    assert read(edgelist.write(topology)) == topology


@given(st.text(alphabet="01 2\n#-.edirctnos:x\t", max_size=60) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in another way than by its own errors."""
    with contextlib.suppress(AlltoallError):
        read(text)


@given(rate=st.floats(1e-3, 1e15), digraph=digraphs())
def test_what_capacity_1_is_comes_back(rate: float, digraph: Topology) -> None:
    """To the last digit, in a comment that says so."""
    again = read(edgelist.write(replace(digraph, bytes_per_second=rate)))
    assert (again, again.bytes_per_second) == (digraph, rate)
    assert again.notes == (f"capacity 1 is {rate_in_words(rate)}",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# capacity 1: fast\n0 1\n", "line 1: bandwidth 'fast'; expected a positive number"),
        ("# capacity 1: 1Gbps\n0 1 2Gbps\n", "such as '2Gbps', and a comment or the header says"),
    ],
)
def test_what_capacity_1_cannot_be(text: str, words: str) -> None:
    """No rate, or another one than that of the lines."""
    with pytest.raises(FormatError, match=re.escape(words)):
        read(text)
