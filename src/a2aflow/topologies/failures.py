"""What may fail: links and nodes, one by one or together, and what is left of a problem then."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from a2aflow.errors import InputError, UsageError
from a2aflow.ir.demand import Demand
from a2aflow.ir.files.text import read_text
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.topologies.operators import remove_links, remove_nodes

LINKS, NODES = "links:1", "nodes:1"
"""Every single link (cable, where links come in pairs), and every single node."""


@dataclass(frozen=True)
class Failure:
    """What fails together: links by their ends, and nodes."""

    links: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What a file of it is called."""
        return "_".join(
            [*(f"link-{u}-{v}" for u, v in self.links), *map("node-{}".format, self.nodes)]
        )

    def left_of(self, problem: Problem) -> Problem:
        """Return the problem on what is left."""
        topology = remove_nodes(remove_links(problem.topology, self.links), self.nodes)
        if not self.nodes or problem.demand.uniform:
            terminals = len(topology.terminals)
            return Problem(topology, problem.demand if not self.nodes else Demand(terminals))
        stays = np.flatnonzero(~np.isin(problem.topology.terminals, self.nodes))
        matrix = problem.demand.of(*np.meshgrid(stays, stays, indexing="ij"))
        return Problem(topology, Demand(len(stays), matrix))


def failures_of(topology: Topology, text: str) -> list[Failure]:
    """Return the failures of `links:1`, `nodes:1`, or a file with one a line, such as `3-4, 7`."""
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
    found = [_failure(line, path) for line in lines if line]
    for each in found:  # What is not there cannot fail, and is refused by name.
        remove_nodes(topology, each.nodes)
        remove_links(topology, each.links)
    return found


def _failure(line: str, path: Path) -> Failure:
    links, nodes = [], []
    for word in line.replace(",", " ").split():
        try:
            ends = tuple(map(int, word.split("-")))
        except ValueError:
            ends = ()
        if len(ends) == 1:
            nodes.append(ends[0])
        elif len(ends) == 2:
            links.append((ends[0], ends[1]))
        else:
            raise InputError(f"{path}: {word!r}; expected a link such as 3-4, or a node such as 7")
    return Failure(tuple(links), tuple(nodes))
