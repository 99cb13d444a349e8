"""The PCIe tree of a machine, from the distances between GPUs in `nvidia-smi topo -m`.

GPUs that are PIX share a PCIe switch, PXB a switch above it, PHB a host bridge, NODE a NUMA node,
and SYS the interconnect of the sockets. So the matrix describes a tree: each set of GPUs within one
of these is a switch, and its uplink has the rate of the slowest part on it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from alltoall.errors import FormatError, TopologyError
from alltoall.ir.arrays import Floats, rows
from alltoall.ir.topology import Topology
from alltoall.topologies.formats.edge_lines import quote, read_rate

Pair = tuple[int, int]
SWITCH = "NVSwitch"
"""The name of the one switch."""

ELSEWHERE = "write json, which holds every topology"


def require(topology: Topology, holds: bool, found: str) -> None:
    """Raise unless a condition holds; `found` is the message."""
    if not holds:
        raise TopologyError(f"{topology.name}: {found}; {ELSEWHERE}")


def whole_links(topology: Topology) -> Counter[Pair]:
    """Return the links between GPUs 0..n-1 and perhaps a switch n, parallel ones summed."""
    gpus = len(topology.terminals)
    others = topology.nodes - gpus
    require(topology, others <= 1, f"{others} nodes are not terminals; expected at most one switch")
    in_front = np.array_equal(topology.terminals, np.arange(gpus))
    require(topology, in_front, "a node that is no terminal precedes one; expected the switch last")
    for hub in range(gpus, topology.nodes):
        linked = bool(topology.out_degree[hub] + topology.in_degree[hub])
        name = topology.node_name(hub)
        require(topology, linked, f"node {name} has no links; expected a switch of GPUs")
    links: Counter[Pair] = Counter()
    for u, v, capacity in rows(topology.tail, topology.head, topology.capacity):
        expected = "expected whole numbers of NVLinks"
        require(topology, capacity.is_integer(), f"a capacity of {capacity}; {expected}")
        links[u, v] += int(capacity)
    require(topology, bool(links), "no links; expected at least one NVLink")
    for u, v in (pair for pair in list(links) if gpus in pair):
        require_both_ways(topology, links, u, v)
    return links


def require_both_ways(topology: Topology, links: Counter[Pair], u: int, v: int) -> None:
    """Raise unless as many links lead from v to u as from u to v."""
    ends = f"{topology.node_name(u)} -> {topology.node_name(v)}"
    found = f"{links[u, v]} links {ends} and {links[v, u]} back; expected as many either way"
    require(topology, links[v, u] == links[u, v], found)


LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
OLD_NAMES = {"SOC": "SYS"}
"""Names of levels in older drivers."""

PCIE, NVLINK = "PCIe", "NVLink"
RATES = {PCIE: LEVELS[:3], "NODE": ("NODE",), "SYS": ("SYS",), NVLINK: (NVLINK,)}
"""Names in lines such as `# rate PCIe: 32GB/s`, and the levels that have this rate."""

_RATE = re.compile(r"#\s*rate\s+(\w+)\s*:\s*(.*)", re.IGNORECASE)

Edge = tuple[int, int, float]


def read_rates(lines: Sequence[str], where: str) -> dict[str, float]:
    """Return the bytes per second of levels and NVLinks that a file states."""
    found: dict[str, float] = {}
    for number, line in enumerate(lines, start=1):
        match = _RATE.fullmatch(line.strip())
        if match is None:
            continue
        place = f"{where}: line {number}"
        name = next((name for name in RATES if name.lower() == match[1].lower()), None)
        if name is None:
            raise FormatError(f"{place}: a rate of {quote(match[1])}; expected {', '.join(RATES)}")
        found |= dict.fromkeys(RATES[name], read_rate(match[2], place))
    return found


def level_of(cell: str, place: str) -> float:
    """Return the level of a cell, infinite if it has none."""
    name = OLD_NAMES.get(cell, cell)
    if name in LEVELS:
        return float(LEVELS.index(name))
    if cell == "X" or cell.startswith("NV"):
        return np.inf
    raise FormatError(
        f"{place} has a cell {quote(cell)}; expected {', '.join(LEVELS)} or NVk, as "
        "`nvidia-smi topo -m` prints them"
    )


def close_levels(level: Floats, gpus: Sequence[str], where: str) -> Floats:
    """Fill in pairs without a level from the others; refuse levels that form no tree."""
    closed = np.minimum(level, level.T)
    np.fill_diagonal(closed, -1.0)
    for middle in range(len(closed)):
        np.minimum(closed, np.maximum.outer(closed[:, middle], closed[middle]), out=closed)
    np.fill_diagonal(level, -1.0)
    for u, v in np.argwhere(np.isfinite(level) & (level != closed))[:1]:
        raise FormatError(
            f"{where}: {gpus[u]} shows {LEVELS[int(level[u, v])]} to {gpus[v]}, but by way of "
            f"others they are {LEVELS[int(closed[u, v])]}; expected a symmetric matrix of a tree "
            "of PCIe switches, check that the file is complete"
        )
    return closed


def tree_edges(
    level: Floats, rates: Mapping[str, float], where: str
) -> tuple[list[Edge], list[str]]:
    """Return the edges, in bytes per second or of capacity 1, and the names of the switches."""
    gpus = len(level)
    top, height = list(range(gpus)), [-1] * gpus
    edges: list[Edge] = []
    names: list[str] = []
    for rank, name in enumerate(LEVELS):
        found: dict[int, set[int]] = {}
        for each, label in zip(top, np.argmax(level <= rank, axis=1).tolist(), strict=True):
            found.setdefault(label, set()).add(each)
        joined = [sorted(members) for members in found.values() if len(members) > 1]
        for number, members in enumerate(joined):
            switch = gpus + len(names)
            edges += [(each, switch, _width(height[each], rank, rates, where)) for each in members]
            names.append(f"{name}{number}")
            height.append(rank)
            top = [switch if each in members else each for each in top]
    return edges, names


def _width(below: int, above: int, rates: Mapping[str, float], where: str) -> float:
    """Return the capacity of a link between two levels: that of its slowest part."""
    crossed = LEVELS[below + 1 : above + 1]
    if not rates:
        return 1.0
    known = [rates[name] for name in crossed if name in rates]
    if not known:
        raise FormatError(
            f"{where}: lines state rates, but none for {crossed[-1]}; add a line such as "
            f"`# rate {crossed[-1] if crossed[-1] in RATES else PCIE}: 32GB/s`"
        )
    return min(known)
