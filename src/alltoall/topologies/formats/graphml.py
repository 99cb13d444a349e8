"""GraphML, as networkx and igraph write it: `capacity` on edges, `terminal` on nodes."""

import reprlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

import networkx as nx

from alltoall.errors import AlltoallError, FormatError
from alltoall.ir.files.xml import local_name, parse_xml
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, one_line
from alltoall.topologies.formats.networkx_graph import from_networkx, to_networkx


def read(text: str, where: str, name: str, capacity: str | None = None) -> Topology:
    """Read GraphML; `name` is for unnamed graphs, `capacity` as in `from_networkx`."""
    root = parse_xml(text, where)
    if local_name(root) != "graphml":
        raise FormatError(f"{where}: the root is <{local_name(root)}>; expected <graphml>")
    graphs = [child for child in root if local_name(child) == "graph"]
    if len(graphs) != 1:
        raise FormatError(f"{where}: holds {len(graphs)} graphs; expected exactly one <graph>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = _parse(text, where, graphs[0])
    topology = from_networkx(graph, str(graph.graph.get("name") or name), capacity)
    remarks = dict.fromkeys(f"GraphML: {warning.message}" for warning in caught)
    return replace(topology, notes=(*topology.notes, *remarks))


def write(topology: Topology) -> str:
    """Return the GraphML of a topology; edge ids are link indices."""
    graph = to_networkx(topology)
    graph.graph["name"] = one_line(topology.name)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _parse(text: str, where: str, element: Element) -> "nx.Graph[Any]":
    """Parse the text by networkx, after `parse_xml` has checked it."""
    found: dict[str, int] = {}
    for number, node in _children(element, "node"):
        label = node.get("id")
        if label is None:
            raise FormatError(f"{where}: node without an id: the {number}. <node>; give it one")
        if found.setdefault(label, number) != number:
            raise FormatError(
                f"{where}: the {found[label]}. and the {number}. <node> have the id "
                f"{reprlib.repr(label)}; expected different ids"
            )
    labels = list(found)
    edges = _check_edges(element, set(labels), where)
    numbered = all(label.isascii() and label.isdecimal() for label in labels)
    try:
        graph: nx.Graph[Any] = nx.parse_graphml(
            text, node_type=int if numbered else str, force_multigraph=True
        )
    except AlltoallError:
        raise
    except Exception as error:  # a broken file makes this parser raise nearly anything
        problem = f"not the GraphML that networkx reads: {_describe(error)}"
        raise FormatError(f"{where}: {problem}") from None
    if (graph.number_of_nodes(), graph.number_of_edges()) != (len(labels), edges):
        raise FormatError(
            f"{where}: {len(labels)} nodes and {edges} edges, of which networkx distinguishes "
            f"{graph.number_of_nodes()} and {graph.number_of_edges()}; expected every edge to end "
            "at declared nodes, and parallel edges to have different ids"
        )
    return graph


def _children(element: Element, name: str) -> Iterator[tuple[int, Element]]:
    return enumerate((child for child in element if local_name(child) == name), start=1)


def _check_edges(element: Element, labels: set[str], where: str) -> int:
    """Return the number of edges; raise unless the ends of each are nodes.

    Undirected edges that name a pair in both orders are refused.
    """
    number, ends = 0, set()
    for number, edge in _children(element, "edge"):
        for key in ("source", "target"):
            end = edge.get(key)
            if end is None:
                problem = f"edge without a {key}: the {number}. <edge>; give it one"
                raise FormatError(f"{where}: {problem}")
            if end not in labels:
                raise FormatError(
                    f"{where}: the {number}. <edge> has the {key} {reprlib.repr(end)}; "
                    "expected every edge to end at declared nodes"
                )
        ends.add((edge.get("source"), edge.get("target")))
    both = [(u, v) for u, v in ends if u != v and (v, u) in ends]
    if both and element.get("edgedefault") == "undirected":
        raise FormatError(
            f"{where}: undirected edges name {counted(len(both) // 2, 'pair')} in both orders, "
            f"such as {' '.join(map(reprlib.repr, min(both)))}; a cable that is listed from both "
            'ends would count twice; leave out one of the two, or write edgedefault="directed" if '
            "each is one direction, or name both cables of a pair in one order"
        )
    return number


def _describe(error: Exception) -> str:
    """Explain a parser's error to the author of the file."""
    if isinstance(error, nx.NetworkXException):
        return one_line(str(error))
    if isinstance(error, KeyError):
        word = reprlib.repr(error.args[0]) if error.args else "of an attribute"
        return f"it does not know the type or the value {word}; expected a type such as double"
    if isinstance(error, ValueError):
        return f"a <data> does not fit the type of its <key> ({one_line(str(error))})"
    return "an element lacks an attribute or has a wrong one; compare it with a file that is read"
