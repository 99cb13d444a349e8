"""The forwarding tables that OpenSM loads, `opensm -R file -U FILE`, for an InfiniBand fabric.

For each switch a header with its GUID, then a line per destination with its LID, the port to leave
through, and the GUID by which OpenSM finds the destination's actual LID. GUIDs and ports are those
of the ibsim netlist of the same topology; see docs/integrations/opensm.md.

A switch forwards by destination alone, and the file engine has one service level. So all routes to
a destination that meet at a switch must continue together, and be free of deadlocks in one layer.

The reader takes our tables and OpenSM's own dump, and follows them over a topology. A destination
is known by its GUID, as in OpenSM, which finds its LID by that. The tables have the egress ports of
switches; only a topology tells where those lead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from alltoall.errors import FormatError, LimitError, TopologyError, VerificationError
from alltoall.ir.arrays import Ints, rows, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.tables.routed_file import (
    RoutedFile,
    in_file_order,
    most_routes,
    pair_name,
    ports_of,
)
from alltoall.topologies.formats.ibsim import (
    ADAPTER_GUID,
    ADAPTER_PORT,
    MAX_PORTS,
    SWITCH_GUID,
    adapter_guid,
    switch_guid,
    switch_ports,
)

SIGN = "# alltoall opensm/1"
"""Beginning of the first line of our own files, with the number of switches and adapters."""
ONE_LAYER = "# free of deadlocks in one layer"
ADAPTER, SWITCH = "Channel Adapter", "Switch"
LARGEST_LID = 0xBFFF
"""The largest unicast LID."""

NO_LINK = NO_PORT = -1
"""Placeholders of a link or port without an entry for a destination."""

ADVICE = (
    "route again with --method deadlock-free:destination-based, which gives one port per "
    "destination in one layer on any connected network of cables"
)
"""The command that always leads to a file."""


def emit_opensm(routes: Routes, _: Options) -> str:
    """Return the tables of destination-based routes in at most one layer."""
    topology = routes.problem.topology
    if topology.nodes + len(topology.terminals) > LARGEST_LID:
        raise LimitError(
            f"{topology.name}: {topology.nodes} switches and {len(topology.terminals)} adapters, "
            f"but a subnet has at most {LARGEST_LID} LIDs; use a smaller fabric"
        )
    table = next_links(routes)
    if routes.layers not in (None, 1):
        raise LimitError(
            f"these routes are free of deadlocks in {routes.layers} layers, but OpenSM's file "
            f"engine has one service level; {ADVICE}"
        )
    header = [
        first_line(topology.nodes, len(topology.terminals)),
        f"# name {one_line(topology.name)}",
        *([ONE_LAYER] if routes.layers == 1 else []),
    ]
    return "".join(f"{line}\n" for line in (*header, *_switches(topology, table)))


def first_line(switches: int, adapters: int) -> str:
    """Return the first comment of our files."""
    return f"{SIGN} switches={switches} adapters={adapters}"


def next_links(routes: Routes) -> Ints:
    """Return the next link from each node to each terminal, or `NO_LINK`.

    Raise if a pair has several routes, or a node several links towards one terminal.
    """
    topology = routes.problem.topology
    ordered, _ = in_file_order(routes)
    found, ends = most_routes(ordered)
    if found > 1:
        raise LimitError(f"{found} routes {ends}, but a switch has one port to send on; {ADVICE}")
    route = ordered.path_of_link
    node, destination = topology.tail[ordered.link], ordered.destination[route]
    table = np.full((topology.nodes, len(topology.terminals)), NO_LINK, dtype=np.int64)
    table[node, destination] = ordered.link
    for hop in np.flatnonzero(table[node, destination] != ordered.link)[:1]:
        heads = topology.head[[ordered.link[hop], table[node[hop], destination[hop]]]]
        here, mine, other = map(topology.node_name, (int(node[hop]), *heads.tolist()))
        raise LimitError(
            f"the route {pair_name(ordered, int(route[hop]))} goes from node {here} on to {mine}, "
            f"and another one to the same node there to {other}, but a switch forwards by "
            f"destination alone; {ADVICE}"
        )
    return table


def _switches(topology: Topology, table: Ints) -> Iterator[str]:
    """Yield the lines of every switch; a route to an adapter is one to its switch too."""
    port = switch_ports(topology)
    terminals = len(topology.terminals)
    lids = topology.nodes + terminals
    for node in range(topology.nodes):
        out = np.where(table[node] == NO_LINK, NO_PORT, port[table[node]])
        out[topology.position[node] if topology.position[node] >= 0 else []] = ADAPTER_PORT
        known = np.flatnonzero(out != NO_PORT)
        # Adapters have the first LIDs, switches the next.
        guid = f"guid 0x{switch_guid(node):016x} ('S{node}'):"
        yield f"Unicast lids [0-{lids}] of switch Lid {terminals + 1 + node} {guid}"
        adapters = list(rows(known, topology.terminals[known], out[known]))
        for each, host, way in adapters:
            yield _row(each + 1, way, ADAPTER, adapter_guid(each), f"H{host}")
        ports = {host: way for _, host, way in adapters} | {node: 0}
        for other, way in sorted(ports.items()):
            yield _row(terminals + 1 + other, way, SWITCH, switch_guid(other), f"S{other}")
        yield f"{lids} lids dumped"


def _row(lid: int, port: int, kind: str, guid: int, name: str) -> str:
    return f"0x{lid:04x} {port:03} # {kind} portguid 0x{guid:016x}: '{name}'"


_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ForwardingFile(RoutedFile):
    """Forwarding tables of switches, which become routes on a topology.

    Row i says that the switch of node `at[i]` forwards to terminal `goal[i]`, by position, through
    port `through[i]`.
    """

    switches: int = 0
    at: Ints = field(default_factory=lambda: _NONE)
    goal: Ints = field(default_factory=lambda: _NONE)
    through: Ints = field(default_factory=lambda: _NONE)
    one_layer: bool = False

    def on(self, problem: Problem) -> RoutedFile:
        """Follow the tables from every source to every destination with a demand."""
        topology, terminals = problem.topology, problem.demand.terminals
        source, destination = np.divmod(np.arange(terminals * terminals), terminals)
        used = problem.demand.of(source, destination) > 0
        source, destination = source[used], destination[used]
        pair, link = self._hops(problem, source, destination)
        order = np.argsort(pair, kind="stable")
        return RoutedFile(
            kind=self.kind,
            name=self.name,
            source=topology.terminals[source],
            destination=topology.terminals[destination],
            start=starts_of(np.bincount(pair, minlength=len(source))),
            node=topology.tail[link[order]],
            port=ports_of(topology)[link[order]],
            weight=np.ones(len(source)),
            layer=np.zeros(len(source), dtype=np.int64) if self.one_layer else None,
            shares=True,
            facts=self.facts,
        )

    def _hops(self, problem: Problem, source: Ints, destination: Ints) -> tuple[Ints, Ints]:
        """Return the pair and the link of every hop, the first ones of all pairs first."""
        topology, table = problem.topology, self._table(problem.topology)
        goal = topology.terminals[destination]
        pair, node = np.arange(len(source)), topology.terminals[source]
        pairs, links = [_NONE], [_NONE]
        for _ in range(topology.nodes):
            link = table[node, destination[pair]]
            stuck = pair[link == NO_LINK]
            if len(stuck):
                self._refuse(topology, source, destination, stuck, "ends at a switch without it")
            pairs.append(pair)
            links.append(link)
            on = topology.head[link] != goal[pair]
            pair, node = pair[on], topology.head[link][on]
        if len(pair):
            self._refuse(topology, source, destination, pair, "goes round in a circle")
        return np.concatenate(pairs), np.concatenate(links)

    def _table(self, topology: Topology) -> Ints:
        adapters = int(self.goal.max(initial=-1)) + 1
        if (self.switches, adapters) != (topology.nodes, len(topology.terminals)):
            self._wrong(
                f"tables of {self.switches} switches with {adapters} adapters; {topology.name} "
                f"has {topology.nodes} with {len(topology.terminals)}"
            )
        try:
            port = switch_ports(topology)
        except TopologyError as error:
            self._wrong(str(error))
        link_at = np.full((topology.nodes, MAX_PORTS + 1), NO_LINK, dtype=np.int64)
        link_at[topology.tail, port] = np.arange(topology.links)
        link, home = link_at[self.at, self.through], self.at == topology.terminals[self.goal]
        wrong = np.where(home, self.through != ADAPTER_PORT, link == NO_LINK)
        for row in np.flatnonzero(wrong)[:1]:
            self._wrong(
                f"switch S{self.at[row]} sends what is for adapter "
                f"H{topology.terminals[self.goal[row]]} through port {self.through[row]}, where "
                f"{'it is not' if home[row] else 'no other switch is'}"
            )
        if home.sum() != len(topology.terminals):
            self._wrong("some switch has no entry for its own adapter")
        table = np.full((topology.nodes, len(topology.terminals)), NO_LINK, dtype=np.int64)
        table[self.at[~home], self.goal[~home]] = link[~home]
        return table

    def _refuse(
        self, topology: Topology, source: Ints, destination: Ints, wrong: Ints, words: str
    ) -> NoReturn:
        ends = [int(topology.terminals[each[wrong[0]]]) for each in (source, destination)]
        names = " to ".join(f"node {topology.node_name(node)}" for node in ends)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        self._wrong(f"the route from {names} {words}{more}")

    def _wrong(self, words: str) -> NoReturn:
        raise VerificationError(self.name, [words])


HEADER = re.compile(
    r"Unicast lids \[0-([0-9]{1,5})\] of switch Lid ([0-9]{1,5}) guid 0x([0-9a-f]{16}) \('.*'\):"
)
ROW = re.compile(
    rf"0x([0-9a-f]{{4}}) ([0-9]{{3}}) # ({ADAPTER}|{SWITCH}) portguid 0x([0-9a-f]{{16}}): '.*'"
)
END = re.compile(r"([0-9]{1,5}) lids dumped")


def read_opensm(text: str, where: str) -> ForwardingFile:
    """Read the tables strictly; a topology turns them into routes."""
    tables, lines = _Tables(where), text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("#"):
            tables.take(line, f"{where}: line {number}")
    file = tables.finished(ONE_LAYER in lines[:3])
    stated = first_line(file.switches, len(np.unique(file.goal)))
    if lines[0].startswith(SIGN) and lines[0] != stated:
        raise FormatError(f"{where}: line 1: is {lines[0][:80]!r}; its tables make it {stated!r}")
    return file


class _Tables:
    """Tables under construction, line by line."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._node: int | None = None  # the switch whose table is being read
        self._most = 0
        self._nodes: set[int] = set()
        self._rows: dict[tuple[int, int], int] = {}
        self._guid_of: dict[int, int] = {}

    def take(self, line: str, here: str) -> None:
        """Take the next line."""
        if self._node is None:
            self._begin(line, here)
        elif found := ROW.fullmatch(line):
            guid = int(found[4], 16)
            self._add(guid, int(found[1], 16), int(found[2]), found[3] == ADAPTER, here)
        elif (found := END.fullmatch(line)) and int(found[1]) == self._most:
            self._node = None
        else:
            row = "0xLID PORT # TYPE portguid 0xGUID: 'NAME'"
            expected = f"expected a row `{row}`, or `{self._most} lids dumped`"
            raise FormatError(f"{here}: is {line[:60]!r}; {expected}")

    def _begin(self, line: str, here: str) -> None:
        found = HEADER.fullmatch(line)
        if found is None:
            header = "Unicast lids [0-LID] of switch Lid N guid 0xGUID ('NAME'):"
            raise FormatError(f"{here}: is {line[:60]!r}; expected `{header}`")
        self._most, self._node = int(found[1]), self._switch(int(found[3], 16), here)
        if self._most > LARGEST_LID:
            raise FormatError(f"{here}: LID {self._most}; expected at most {LARGEST_LID}")
        if self._node in self._nodes:
            raise FormatError(f"{here}: switch S{self._node} has a table already")
        self._nodes.add(self._node)

    def _add(self, guid: int, lid: int, port: int, adapter: bool, here: str) -> None:
        if not 1 <= lid <= self._most or port > MAX_PORTS:
            expected = f"expected 1 to {self._most}, and 0 to {MAX_PORTS}"
            raise FormatError(f"{here}: LID {lid} and port {port}; {expected}")
        if self._guid_of.setdefault(lid, guid) != guid:
            raise FormatError(f"{here}: LID {lid} has another GUID, 0x{guid:x}, than before")
        if self._node is None or (self._node, guid) in self._rows:
            raise FormatError(f"{here}: the destination is there twice")
        if adapter and (guid < ADAPTER_GUID or guid % 2 == 0 or guid >= SWITCH_GUID):
            raise FormatError(f"{here}: GUID 0x{guid:x} is none that ibsim gives to an adapter")
        if not adapter and (self._switch(guid, here) == self._node) != (port == 0):
            expected = "expected 0 for the switch itself, and it alone"
            raise FormatError(f"{here}: port {port}; {expected}")
        self._rows[self._node, guid] = port

    def _switch(self, guid: int, here: str) -> int:
        if not SWITCH_GUID <= guid < SWITCH_GUID + LARGEST_LID:
            raise FormatError(f"{here}: GUID 0x{guid:x} is none that ibsim gives to a switch")
        return guid - SWITCH_GUID

    def finished(self, one_layer: bool) -> ForwardingFile:
        """Return all tables."""
        if self._node is not None or not self._nodes:
            raise FormatError(f"{self._where}: ends within a table; the file may be truncated")
        for missing in sorted({*range(max(self._nodes))} - self._nodes)[:1]:
            raise FormatError(f"{self._where}: switch S{missing} has no table")
        rows = [(*key, port) for key, port in self._rows.items() if key[1] < SWITCH_GUID]
        at, guid, through = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        no_routes = (_NONE, _NONE, np.zeros(1, dtype=np.int64), _NONE, _NONE, np.zeros(0), None)
        return ForwardingFile(
            "opensm",
            self._where,
            *no_routes,
            switches=len(self._nodes),
            at=at,
            goal=(guid - ADAPTER_GUID) // 2,
            through=through,
            one_layer=one_layer,
        )
