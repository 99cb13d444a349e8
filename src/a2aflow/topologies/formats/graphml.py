"""GraphML, as networkx and igraph write it: `capacity` on edges, `terminal` on nodes."""

import warnings
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

import networkx as nx

from a2aflow.errors import A2AFlowError, FormatError
from a2aflow.ir.topology import Topology
from a2aflow.topologies.formats.networkx_graph import from_networkx, to_networkx
from a2aflow.topologies.formats.safety import local_name, one_line, parse_xml


def read(text: str, where: str, name: str) -> Topology:
    """Read GraphML; `name` is used if the graph has none."""
    root = parse_xml(text, where)
    if local_name(root) != "graphml":
        raise FormatError(f"{where}: the root is <{local_name(root)}>; expected <graphml>")
    graphs = [child for child in root if local_name(child) == "graph"]
    if len(graphs) != 1:
        raise FormatError(f"{where}: holds {len(graphs)} graphs; expected exactly one <graph>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = _parse(text, where, graphs[0])
    topology = from_networkx(graph, str(graph.graph.get("name") or name))
    remarks = dict.fromkeys(f"GraphML: {warning.message}" for warning in caught)
    return replace(topology, notes=(*topology.notes, *remarks))


def write(topology: Topology) -> str:
    """Return the GraphML of a topology; edge ids are link indices."""
    graph = to_networkx(topology)
    graph.graph["name"] = one_line(topology.name)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _parse(text: str, where: str, element: Element) -> "nx.Graph[Any]":
    """Let networkx read the text, which `parse_xml` has found to be harmless."""
    labels = [child.get("id", "") for child in element if local_name(child) == "node"]
    numbered = all(label.isascii() and label.isdecimal() for label in labels)
    try:
        graph: nx.Graph[Any] = nx.parse_graphml(
            text, node_type=int if numbered else str, force_multigraph=True
        )
    except A2AFlowError:
        raise
    except Exception as error:  # a broken file makes this parser raise nearly anything
        raise FormatError(
            f"{where}: not the GraphML that networkx reads "
            f"({type(error).__name__}: {one_line(str(error))})"
        ) from None
    edges = sum(local_name(child) == "edge" for child in element)
    if (graph.number_of_nodes(), graph.number_of_edges()) != (len(labels), edges):
        raise FormatError(
            f"{where}: {len(labels)} nodes and {edges} edges, of which networkx distinguishes "
            f"{graph.number_of_nodes()} and {graph.number_of_edges()}; expected every edge to end "
            "at declared nodes, and parallel edges to have different ids"
        )
    return graph
