"""What may fail: links and nodes, one by one or together, and what is left of a problem then."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from alltoall.errors import AlltoallError, FormatError, UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.text import read_text
from alltoall.ir.names import DASH, distinct_stems
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.ir.without import demand_without
from alltoall.topologies.operators import remove_links, remove_nodes

LINKS, NODES = "links:1", "nodes:1"
"""Every single link (cable, where links come in pairs), and every single node."""


@dataclass(frozen=True)
class Failure:
    """Links, by their ends, and nodes that fail together.

    `name` is for people, and `file` is the name of a file, without suffix.
    """

    links: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()
    name: str = field(default="", compare=False)
    file: str = field(default="", compare=False)

    def left_of(self, problem: Problem) -> Problem:
        """Return the problem on what is left."""
        topology = remove_nodes(remove_links(problem.topology, self.links), self.nodes)
        return Problem(topology, demand_without(problem, np.array(self.nodes, dtype=np.int64)))

    def numbers_of_links(self, topology: Topology) -> Ints:
        """Return the numbers of the links that fail: of both ways, where links come in pairs."""
        ends = set(self.links)
        ends |= {(v, u) for u, v in ends} if topology.bidirectional else set()
        pairs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
        return np.array([link for link, pair in enumerate(pairs) if pair in ends], dtype=np.int64)


def failures_of(topology: Topology, text: str) -> list[Failure]:
    """Return the failures of `links:1`, `nodes:1`, or a file with one a line, such as `3-4, 7`.

    Nodes are names or numbers, and what stands on a line fails together. Names and files are those
    of the nodes.
    """
    found = _failures(topology, text)
    stems = distinct_stems(_file(topology, each) for each in found)
    return [
        replace(each, name=_name(topology, each), file=stem)
        for each, stem in zip(found, stems, strict=True)
    ]


def _name(topology: Topology, failure: Failure) -> str:
    """Say what fails."""
    links = [topology.cable_name(u, v) for u, v in failure.links]
    return " and ".join([*links, *(f"node {topology.node_name(each)}" for each in failure.nodes)])


def _file(topology: Topology, failure: Failure) -> str:
    """Return what a file of a failure is called after."""
    name, mark = topology.node_name, "-" if topology.names is None else DASH
    links = [f"link-{name(u)}{mark}{name(v)}" for u, v in failure.links]
    return "_".join([*links, *(f"node-{name(each)}" for each in failure.nodes)])


def _failures(topology: Topology, text: str) -> list[Failure]:
    """Return the failures, without names."""
    if text == LINKS:
        pairs = sorted(set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)))
        both = topology.bidirectional
        return [Failure(links=((u, v),)) for u, v in pairs if u < v or not both]
    if text == NODES:
        return [Failure(nodes=(node,)) for node in range(topology.nodes)]
    path = Path(text)
    if not path.exists():
        raise UsageError(f"--survive {text}; expected {LINKS}, {NODES}, or a file of failures")
    lines = [line.split("#")[0].strip() for line in read_text(path).splitlines()]
    found = [
        _failure(topology, line, f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line
    ]
    if not found:
        raise FormatError(f"{path}: no failures; expected one a line, such as 3-4 or 7")
    return found


def _failure(topology: Topology, line: str, where: str) -> Failure:
    """Return what fails together by a line: nodes and links, by names or numbers."""
    links, nodes = [], []
    try:
        for word in line.replace(",", " ").split():
            if "-" in word and not topology.has_node(word):
                links.append(topology.ends_of(word))
            else:
                nodes.append(topology.node_of(word))
        remove_nodes(remove_links(topology, links), nodes)
    except AlltoallError as error:  # What is not there cannot fail, and is refused by name.
        raise FormatError(f"{where}: {error}") from None
    return Failure(tuple(links), tuple(nodes))
