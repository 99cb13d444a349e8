"""msccl-tools topology JSON: `links[dst][src]` bandwidths, and switches over groups of links.

A switch `[sources, destinations, bandwidth, name]` limits the total rate of all links from its
sources to its destinations. Switches become hubs if that is exact, else they are refused.

Switch k becomes two nodes, in(k) -> out(k), with its bandwidth between them, and a link s -> d
becomes the path from s through the switches that it is under to d. Any flow over hubs splits into
such paths, so the model is exact if

- every path from one GPU over hubs to another is the path of a link, and
- the link's own bandwidth holds: some arc of the path belongs to this link alone and has that
  bandwidth, or some switch on the path is no wider than the link.

Both are checked. A hub with one link in or out is then merged into its neighbour, so that a switch
with one source or destination becomes a single node.
"""

import json
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from alltoall.errors import FormatError, TopologyError
from alltoall.ir.files.json.values import STRINGS, parse_json, take
from alltoall.ir.names import checked_names, distinct_names, is_name
from alltoall.ir.topology import Topology

Pair = tuple[int, int]
Links = dict[Pair, float]
# A node of the model: a GPU's rank, or `nodes + 2k` for in(k) and `nodes + 2k + 1` for out(k).
Arc = tuple[int, int, float]

WAYS = ("in", "out")
"""The two hubs of a switch."""

MAX_COVERED = 20_000_000


@dataclass(frozen=True)
class Switch:
    """A limit on the total rate of all links from `sources` to `destinations`."""

    sources: frozenset[int]
    destinations: frozenset[int]
    bandwidth: float
    name: str


def expand(
    nodes: int, links: Links, switches: list[Switch], where: str
) -> tuple[list[str], list[Arc]]:
    """Return the names of the hubs, and all arcs between GPUs and hubs by tail and head."""
    # All links pass their switches in one order, from those that gather few sources to those that
    # serve few destinations, so there are no cycles.
    surplus = [len(one.sources) - len(one.destinations) for one in switches]
    order = sorted(range(len(switches)), key=surplus.__getitem__)
    if sum(len(one.sources) * len(one.destinations) for one in switches) > MAX_COVERED:
        raise FormatError(f"{where}: the switches cover more than {MAX_COVERED:,} links")
    passed: dict[Pair, list[int]] = {link: [] for link in links}
    for k in order:
        for source in switches[k].sources:
            for destination in switches[k].destinations:
                if (source, destination) in passed:
                    passed[source, destination] += (nodes + 2 * k, nodes + 2 * k + 1)
    paths = {(source, head): [source, *passed[source, head], head] for source, head in links}
    users: dict[Pair, list[Pair]] = defaultdict(list)
    for link, path in paths.items():
        for arc in pairwise(path):
            users[arc].append(link)
    _check_paths(nodes, links, users, switches, where)
    for link, path in paths.items():
        own_arc = any(len(users[arc]) == 1 for arc in zip(path[::2], path[1::2], strict=True))
        on_path = [switches[(hub - nodes) // 2] for hub in path[1:-1:2]]
        if not own_arc:
            # Raise if a link without an arc of its own is narrower than all its switches.
            bandwidth = links[link]
            narrowest = min(on_path, key=lambda switch: switch.bandwidth)
            if narrowest.bandwidth > bandwidth:
                raise FormatError(
                    f"{where}: link {link[0]} -> {link[1]} of bandwidth {bandwidth:g} is "
                    f"narrower than switch {narrowest.name!r} of bandwidth {narrowest.bandwidth:g} "
                    "with several sources and destinations, and hubs cannot hold both limits; "
                    "expected links at least as wide as such a switch"
                )
    arcs = [(*arc, _width(nodes, arc, links, users[arc], switches)) for arc in users]
    # Give the remaining hubs dense ids behind the GPUs, and names, and sort the arcs.
    arcs = _merge_hubs(nodes, arcs)
    hubs = sorted({end for arc in arcs for end in arc[:2] if end >= nodes})
    ids = {node: node for node in range(nodes)} | {hub: nodes + i for i, hub in enumerate(hubs)}
    names = [f"{switches[(hub - nodes) // 2].name}/{WAYS[(hub - nodes) % 2]}" for hub in hubs]
    return names, sorted((ids[tail], ids[head], width) for tail, head, width in arcs)


def _check_paths(
    nodes: int, links: Links, users: dict[Pair, list[Pair]], switches: list[Switch], where: str
) -> None:
    """Raise if hubs open a path between GPUs that is no link's."""
    successors: dict[int, list[int]] = defaultdict(list)
    for tail, head in users:
        successors[tail].append(head)
    for source in range(nodes):
        seen: set[int] = set()
        for path in _walks(source, successors, nodes):
            head = path[-1]
            if head in seen or (source, head) not in links:
                names = ", ".join(repr(switches[(hub - nodes) // 2].name) for hub in path[2:-1:2])
                problem = "twice" if head in seen else "though there is no such link"
                raise FormatError(
                    f"{where}: hubs for the switches {names} would let node {source} reach node "
                    f"{head} {problem}; expected a switch to cover all links between its sources "
                    "and destinations, and switches not to cross each other"
                )
            seen.add(head)


def _walks(source: int, successors: dict[int, list[int]], nodes: int) -> Iterator[list[int]]:
    """Yield all paths over hubs from a GPU to the others."""
    stack = [[source]]
    while stack:
        path = stack.pop()
        for head in successors[path[-1]]:
            if head >= nodes:
                stack.append([*path, head])
            elif head != source:
                yield [*path, head]


def _width(nodes: int, arc: Pair, links: Links, users: list[Pair], switches: list[Switch]) -> float:
    """Return an arc's capacity: that of its switch, else its link, else its neighbours."""
    ends = [(end - nodes) // 2 for end in arc if end >= nodes]
    within = len(ends) == 2 and ends[0] == ends[1]
    if len(users) == 1 and not within:
        return links[users[0]]
    return min(switches[end].bandwidth for end in ends)


def _merge_hubs(nodes: int, arcs: list[Arc]) -> list[Arc]:
    """Merge into its neighbour every in(k) with one link in, and out(k) with one link out."""
    ways_in = Counter(head for _, head, _ in arcs)
    ways_out = Counter(tail for tail, _, _ in arcs)
    single = {hub for hub in ways_out if hub >= nodes and ways_in[hub] == ways_out[hub] == 1}
    through = {tail: (head, width) for tail, head, width in arcs if tail in single}
    merged = []
    for arc in arcs:
        tail, head, width = arc
        while head in through:
            head, narrow = through[head]
            width = min(width, narrow)
        if tail not in through:
            merged.append((tail, head, width))
    return merged


MAX_MATRIX_NODES = 8192
"""Most nodes of a file, whose dense matrix then has a hundred megabytes."""


def read(text: str, where: str, name: str) -> Topology:
    """Read a topology that msccl-tools saved; GPUs are terminals, switches become hubs."""
    obj = parse_json(text, where)
    if not isinstance(obj, dict) or obj.get("msccl_type") != "topology":
        expected = 'expected an object with "msccl_type": "topology", as msccl-tools saves it'
        raise FormatError(f"{where}: {expected}")
    links, nodes = _links(obj.get("links"), where)
    listed = obj.get("switches", [])
    if not isinstance(listed, list):
        raise FormatError(f"{where}: switches must be an array")
    switches = [_switch(row, nodes, f"switches[{k}]", where) for k, row in enumerate(listed)]
    title = obj.get("name")
    name = title if isinstance(title, str) and title else name
    hubs, rows = expand(nodes, links, switches, where)
    notes = [f"{len(hubs)} hub nodes stand for {len(switches)} switches"] if switches else []
    gpus: Sequence[str] | None = list(map(str, range(nodes))) if hubs else None
    if "names" in obj:  # which alltoall adds and msccl-tools ignores
        gpus = checked_names(where, nodes, take(obj, "names", STRINGS, where))
    names = None if gpus is None else distinct_names([*gpus, *hubs])
    return Topology.from_links(name, nodes + len(hubs), rows, range(nodes), notes, names)


def write(topology: Topology) -> str:
    """Return the JSON of a topology without switches, with parallel links summed."""
    if len(topology.terminals) != topology.nodes:
        raise TopologyError(
            f"{topology.name}: {topology.nodes - len(topology.terminals)} nodes are not terminals, "
            "which msccl-tools cannot express; write the alltoall JSON form instead"
        )
    if topology.nodes > MAX_MATRIX_NODES:
        raise TopologyError(
            f"{topology.name}: {topology.nodes} nodes are too many for the dense matrix of "
            f"msccl-tools; expected at most {MAX_MATRIX_NODES}"
        )
    matrix = np.zeros((topology.nodes, topology.nodes))
    np.add.at(matrix, (topology.head, topology.tail), topology.capacity)
    rows = [[int(cell) if cell.is_integer() else cell for cell in row] for row in matrix.tolist()]
    obj: dict[str, Any] = {"msccl_type": "topology", "name": topology.name, "switches": []}
    obj |= {"links": rows} | ({} if topology.names is None else {"names": topology.names})
    return json.dumps(obj, separators=(",", ":"), allow_nan=False) + "\n"


def _links(value: object, where: str) -> tuple[Links, int]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_MATRIX_NODES:
        expected = f"a square matrix, 1 to {MAX_MATRIX_NODES} rows of numbers"
        raise FormatError(f"{where}: links must be {expected}")
    links: Links = {}
    for head, row in enumerate(value):
        if not isinstance(row, list) or len(row) != len(value):
            raise FormatError(f"{where}: links[{head}] is not a row of {len(value)} numbers")
        for tail, cell in enumerate(row):
            bandwidth = _number(cell, f"links[{head}][{tail}]", where)
            if bandwidth and head == tail:
                place = f"links[{head}][{head}]"
                raise FormatError(f"{where}: {place} links a node to itself; set it to 0")
            if bandwidth:
                links[tail, head] = bandwidth
    return links, len(value)


def _switch(row: object, nodes: int, place: str, where: str) -> Switch:
    if not isinstance(row, list) or len(row) != 4:
        raise FormatError(f"{where}: {place} must be [sources, destinations, bandwidth, name]")
    sources, destinations = (_ranks(ranks, nodes, place, where) for ranks in row[:2])
    bandwidth = _number(row[2], f"the bandwidth of {place}", where)
    if bandwidth == 0:
        raise FormatError(f"{where}: {place} has bandwidth 0; leave out its links instead")
    label = str(row[3])[:80].strip()
    return Switch(sources, destinations, bandwidth, label if is_name(label) else "switch")


def _ranks(value: object, nodes: int, place: str, where: str) -> frozenset[int]:
    if not isinstance(value, list) or not value:
        raise FormatError(f"{where}: {place} must list its sources and its destinations")
    for rank in value:
        if type(rank) is not int or not 0 <= rank < nodes:
            found = f"{place} names node {reprlib.repr(rank)}"
            raise FormatError(f"{where}: {found}; expected 0..{nodes - 1}")
    return frozenset(value)


def _number(value: object, place: str, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    raise FormatError(f"{where}: {place} is {reprlib.repr(value)}; expected a number of 0 or more")
