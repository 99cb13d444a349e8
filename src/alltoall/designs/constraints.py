"""Constraints on a wiring, in TOML: fixed links, panels, prices, a network to expand.

nodes = 64                  # unless given by [fixed] or [expand]

[fixed]                     # cables that stay
topology = "mesh:4x4x4"     # a SPEC or a file
copies = 2

[ports]                     # cables to place: the ports of each node,
degree = 6                  # including fixed cables,
panel = 64                  # on panels of at most so many ports

[[panels]]                  # or, instead of [ports], the node of each port of a panel:
ports = [0, 3, 64, 67]      # any port joined to any,
[[panels]]
first = [3, 67]             # or only ports of one side to ports of the other
second = [0, 64]

[prices]                    # the price of a cable by its length
positions = [[0, 0], [1, 0]]
classes = [[2, 30], [50, 200]]
budget = 9000

[expand]                    # instead of all others: a network that gets more nodes
topology = "old.json"
nodes = 4
moved = 8                   # cables that may be unplugged; as few as can be if left out
"""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.designs.wiring import MOST_NODES, Wiring, wiring_of
from alltoall.errors import FormatError, UsageError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.files.fields import Json, take_int, take_ints, take_list, take_object, take_text
from alltoall.ir.files.text import read_text
from alltoall.ir.topology import Topology
from alltoall.topologies.given import load_topology

MAX_BYTES = 16 << 20
"""The largest file of constraints."""

MOST_PORTS = 1 << 20
"""The most ports of a panel."""

DRAWS = 1000
"""The most exchanges of each port until no cable has both ends at one node."""

KNOWN = {"nodes", "fixed", "ports", "panels", "prices", "expand"}
"""The keys of a file."""


def read_constraints(path: Path, seed: int = 0) -> Wiring:
    """Return the wiring of a file, with its free cables joined at random."""
    where = str(path)
    try:
        table = tomllib.loads(read_text(path, MAX_BYTES))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{where}: not TOML: {error}") from None
    others = sorted(table.keys() - KNOWN)
    if others:
        known = ", ".join(sorted(KNOWN))
        raise FormatError(f"{where}: unknown {others[0]!r}; expected some of {known}")
    rng = np.random.default_rng(seed)
    if "expand" in table:
        return _read_expansion(take_object(table["expand"], f"{where}: expand"), where, rng)
    nodes, fixed = _read_fixed(table, where)
    panels, sided = _panels(table, nodes, fixed, where)
    wiring = _join_panels(nodes, fixed, panels, sided, rng)
    return _set_prices(wiring, table, where)


def _read_fixed(table: Json, where: str) -> tuple[int, Ints]:
    """Return the number of nodes, and the fixed cables."""
    here = f"{where}: fixed"
    if "fixed" not in table:
        return take_int(table, "nodes", where, MOST_NODES, 2), np.zeros((0, 2), dtype=np.int64)
    said = take_object(table["fixed"], here)
    board = _load_cables(take_text(said, "topology", here))
    copies = take_int({"copies": 1} | said, "copies", here, MOST_NODES, 1)
    nodes = board.nodes * copies
    if nodes > MOST_NODES:
        raise UsageError(f"{here}: {nodes} nodes; expected at most {MOST_NODES}")
    ends = wiring_of(board, directed=False).ends
    return nodes, np.concatenate([ends + copy * board.nodes for copy in range(copies)])


def _load_cables(spec: str) -> Topology:
    topology = load_topology(spec)
    if not topology.bidirectional or len(topology.terminals) < topology.nodes:
        raise UsageError(f"{spec}: expected cables, which go both ways, and no switches")
    return topology


Panel = tuple[list[int], list[int]]
"""The nodes of the ports of a panel: of one side and the other, or of all and none."""


def _panels(table: Json, nodes: int, fixed: Ints, where: str) -> tuple[list[Panel], bool]:
    """Return the ports of every panel, and whether panels have two sides."""
    if ("ports" in table) == ("panels" in table):
        raise FormatError(f"{where}: expected either [ports] or [[panels]]")
    if "ports" in table:
        here = f"{where}: ports"
        said = take_object(table["ports"], here)
        degree = take_int(said, "degree", here, nodes - 1, 1)
        free = degree - np.bincount(fixed.ravel(), minlength=nodes)
        if free.min() < 0:
            raise UsageError(
                f"{here}: node {int(free.argmin())} has {degree - int(free.min())} fixed cables; "
                f"expected a degree of at least as many, found {degree}"
            )
        # The free ports of all nodes, dealt round by round.
        ports = [node for round_ in range(degree) for node in range(nodes) if free[node] > round_]
        most = take_int({"panel": len(ports)} | said, "panel", here, MOST_PORTS, 2)
        return [(ports[begin : begin + most], []) for begin in range(0, len(ports), most)], False
    found: list[Panel] = []
    for number, each in enumerate(take_list(table, "panels", where, MOST_NODES)):
        here = f"{where}: panel {number}"
        said = take_object(each, here)
        sides = ("ports",) if "ports" in said else ("first", "second")
        first, *second = (_ports(said, side, nodes, here) for side in sides)
        found.append((first, second[0] if second else []))
    sided = {bool(second) for _, second in found}
    if len(sided) > 1:
        raise FormatError(f"{where}: panels with and without sides; expected one kind")
    return found, sided == {True}


def _ports(said: Json, key: str, nodes: int, here: str) -> list[int]:
    ports = take_ints(said, key, here, MOST_PORTS)
    if any(port >= nodes for port in ports):
        raise FormatError(f"{here}: {key} has node {max(ports)}; expected 0 to {nodes - 1}")
    return ports


def _join_panels(
    nodes: int, fixed: Ints, panels: list[Panel], sided: bool, rng: np.random.Generator
) -> Wiring:
    """Join the ports of every panel at random, no node to itself."""
    taken = _both_ways(fixed.tolist())
    ends: list[Ints] = []
    for number, (first, second) in enumerate(panels):
        if (sided and len(first) != len(second)) or (not sided and len(first) % 2):
            raise UsageError(
                f"panel {number} has {len(first)} and {len(second)} ports; expected as many on "
                "either side, or an even number of them on one"
            )
        half = len(first) // 2
        left, right = (first, second) if sided else (first[:half], first[half:])
        ends.append(_join_ports(number, left, right, sided, taken, rng))
    panel = np.repeat(np.arange(len(ends)), [len(each) for each in ends])
    every = np.concatenate(ends) if ends else np.zeros((0, 2), dtype=np.int64)
    return Wiring(nodes, every, False, fixed, panel, sided)


def _join_ports(
    number: int,
    left: list[int],
    right: list[int],
    sided: bool,
    taken: set[tuple[int, int]],
    rng: np.random.Generator,
) -> Ints:
    """Join two rows of ports: exchange random places until no node is joined to itself.

    Parallel cables are accepted only if nothing else is found.
    """
    pairs = [list(pair) for pair in zip(left, right, strict=True)]

    def unfit(pair: list[int], strict: bool) -> bool:
        again = sum(each in (pair, pair[::-1]) for each in pairs) > 1
        return pair[0] == pair[1] or (strict and (again or (pair[0], pair[1]) in taken))

    for draw in range(DRAWS * (len(pairs) + 1)):
        strict = 2 * draw < DRAWS * len(pairs)
        bad = [at for at, pair in enumerate(pairs) if unfit(pair, strict)]
        if not bad:
            break
        at, other = bad[0], int(rng.integers(len(pairs)))
        side = 1 if sided else int(rng.integers(2))
        pairs[at][1], pairs[other][side] = pairs[other][side], pairs[at][1]
    else:
        raise UsageError(
            f"panel {number}: no way was found to join its ports without joining a node to itself; "
            "give it ports of more nodes"
        )
    taken |= _both_ways(pairs)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _both_ways(pairs: list[list[int]]) -> set[tuple[int, int]]:
    return {(u, v) for a, b in pairs for u, v in ((a, b), (b, a))}


def _set_prices(wiring: Wiring, table: Json, where: str) -> Wiring:
    """Give the cables their prices, by the distance of their ends."""
    if "prices" not in table:
        return wiring
    here = f"{where}: prices"
    said = take_object(table["prices"], here)
    places = _numbers(said, "positions", here, wiring.nodes)
    classes = _numbers(said, "classes", here, None)
    if classes.shape[1] != 2 or (np.diff(classes[:, 0]) <= 0).any():
        wanted = "pairs of a length and a price, lengths rising"
        raise FormatError(f"{here}: classes; expected {wanted}")
    length = np.linalg.norm(places[:, None] - places, axis=2)
    which = np.searchsorted(classes[:, 0], length - 1e-9)
    beyond = np.append(classes[:, 1], classes[-1, 1] * 1e3)  # No cable is that long.
    budget = said.get("budget")
    if not isinstance(budget, int | float) or not budget > 0:
        raise FormatError(f"{here}: budget is {budget!r}; expected a positive number")
    return replace(wiring, price=beyond[which], budget=float(budget))


def _numbers(said: Json, key: str, here: str, rows: int | None) -> Floats:
    try:
        found = np.array(take_list(said, key, here), dtype=np.float64)
    except (ValueError, TypeError):
        found = np.zeros(0)
    if found.ndim != 2 or not np.isfinite(found).all() or (rows not in (None, len(found))):
        wanted = "rows" if rows is None else f"{rows} rows"
        raise FormatError(f"{here}: {key}; expected {wanted} of as many numbers each")
    return found


def _read_expansion(said: Json, where: str, rng: np.random.Generator) -> Wiring:
    """Return a network with new nodes spliced into random cables."""
    here = f"{where}: expand"
    old = _load_cables(take_text(said, "topology", here))
    added = take_int(said, "nodes", here, MOST_NODES - old.nodes, 1)
    degree, ends = int(old.out_degree.max()), wiring_of(old, directed=False).ends
    if degree % 2 or (old.out_degree != degree).any():
        raise UsageError(
            f"{here}: degrees {int(old.out_degree.min())} to {degree}; expected one even degree, "
            "so that a new node takes the place of whole cables"
        )
    least = added * degree // 2
    if least > len(ends):
        raise UsageError(f"{here}: {added} new nodes of degree {degree} are too many to splice in")
    moved = take_int({"moved": least} | said, "moved", here, len(ends), least)
    nodes = old.nodes + added
    price = np.ones((nodes, nodes))  # Old cables are free, new ones cost 1.
    price[ends[:, 0], ends[:, 1]] = price[ends[:, 1], ends[:, 0]] = 0.0
    spliced = _splice(ends, old.nodes, added, degree, rng)
    return Wiring(nodes, spliced, False, price=price, budget=float(least + moved))


def _splice(ends: Ints, nodes: int, added: int, degree: int, rng: np.random.Generator) -> Ints:
    """Splice every new node into cables without a common node."""
    left = ends[rng.permutation(len(ends))].tolist()
    spliced: list[Any] = []
    for node in range(nodes, nodes + added):
        near: set[int] = set()
        for a, b in [pair for pair in left if max(pair) < nodes]:
            if len(near) < degree and not near & {a, b}:
                near |= {a, b}
                left.remove([a, b])
                spliced += [(a, node), (node, b)]
        if len(near) < degree:
            raise UsageError(f"{added} new nodes of degree {degree} are too many to splice in")
    return np.array([*map(tuple, left), *spliced], dtype=np.int64)
