"""Read SimGrid platforms with routes as strictly as they are written.

A platform says which links a route takes, and not where a link is: that is for a topology to tell.
"""

import math
from dataclasses import dataclass, field
from typing import NoReturn
from xml.etree.ElementTree import Element

import numpy as np

from a2aflow.errors import FormatError, VerificationError
from a2aflow.ir.arrays import Floats, Ints, starts_of
from a2aflow.ir.files.fields import short, take_text
from a2aflow.ir.files.xml import parse_xml, require_element
from a2aflow.ir.problem import Problem
from a2aflow.lowering.tables.routed_file import RoutedFile, ports_of
from a2aflow.lowering.tables.simgrid.emit import ROUTING
from a2aflow.topologies.formats.simgrid import HEAD, SHARED, SPEED, VERSION, node_id

ATTRIBUTES = {
    "platform": ("version",),
    "zone": ("id", "routing"),
    "host": ("id", "speed"),
    "router": ("id",),
    "link": ("id", "bandwidth", "latency", "sharing_policy"),
    "route": ("src", "dst", "symmetrical"),
    "link_ctn": ("id",),
}
"""The attributes of each element, all of them required."""

PARTS = (("host", "router"), ("link",), ("route",))
"""What a zone has in it, in this order."""

SAME = 1e-9
"""How far bandwidths may be from being in proportion to capacities."""

_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PlatformFile(RoutedFile):
    """Routes by the numbers of their links; it has nodes and ports once it is on a topology.

    `names` are those of all nodes in their order, `hosts` the nodes that are hosts, and `link` are
    the links of all routes.
    """

    names: tuple[str, ...] = ()
    hosts: Ints = field(default_factory=lambda: _NONE)
    bandwidth: Floats = field(default_factory=lambda: np.zeros(0))
    link: Ints = field(default_factory=lambda: _NONE)

    def on(self, problem: Problem) -> RoutedFile:
        """Return the routes with the nodes that they leave, if the topology is that of the file."""
        topology = problem.topology
        found = (len(self.names), len(self.bandwidth))
        if found != (topology.nodes, topology.links):
            self._wrong(
                f"{found[0]} nodes and {found[1]} links; {topology.name} has {topology.nodes} and "
                f"{topology.links}"
            )
        for node, name in enumerate(self.names):
            if name != node_id(topology, node):
                self._wrong(
                    f"node {node} is called {short(name)}; {topology.name} calls it "
                    f"{short(node_id(topology, node))}"
                )
        if not np.array_equal(self.hosts, topology.terminals):
            self._wrong(f"its hosts are not the terminals of {topology.name}")
        rate = self.bandwidth / topology.capacity
        for link in np.flatnonzero(np.abs(rate - rate[0]) > SAME * rate[0])[:1]:
            self._wrong(
                f"link-{link} has {self.bandwidth[link]:g} bytes per second; expected "
                f"{rate[0] * topology.capacity[link]:g}, as link-0 in proportion to the capacity"
            )
        return RoutedFile(
            kind=self.kind,
            name=self.name,
            source=self.source,
            destination=self.destination,
            start=self.start,
            node=topology.tail[self.link],
            port=ports_of(topology)[self.link],
            weight=self.weight,
            layer=None,
            shares=True,
        )

    def _wrong(self, words: str) -> NoReturn:
        raise VerificationError(self.name, [words])


def read_simgrid(text: str, where: str) -> PlatformFile:
    """Read a platform of one Full zone; its links are for a topology to place."""
    lines = text.split("\n", len(HEAD))
    if tuple(lines[: len(HEAD)]) != HEAD or len(lines) <= len(HEAD):
        raise FormatError(f"{where}: does not begin with the lines {HEAD[0]} and {HEAD[1]}")
    # Types of documents are refused in XML that comes from elsewhere; this one was just compared.
    root = parse_xml("\n" * len(HEAD) + lines[-1], where)
    _check(root, "platform", where)
    take_text(root.attrib, "version", where, (VERSION,))
    if len(root) != 1:
        raise FormatError(f"{where}: {len(root)} zones; expected one")
    zone = root[0]
    _check(zone, "zone", where)
    take_text(zone.attrib, "routing", where, (ROUTING,))
    nodes, links, routes = _parts(zone, where)
    return _file(nodes, links, routes, where)


def _parts(zone: Element, where: str) -> list[list[Element]]:
    """Return the elements of a zone: nodes, then links, then routes."""
    parts, rest = [], list(zone)
    for tags in PARTS:
        count = next((at for at, each in enumerate(rest) if each.tag not in tags), len(rest))
        parts.append(rest[:count])
        rest = rest[count:]
        for number, each in enumerate(parts[-1]):
            _check(each, each.tag, f"{where}: {each.tag} {number}")
        if not count:
            raise FormatError(f"{where}: has no {tags[0]} where one is expected")
    if rest:
        raise FormatError(
            f"{where}: found <{rest[0].tag[:60]}> among the routes, which are to come last"
        )
    return parts


def _file(
    nodes: list[Element], links: list[Element], routes: list[Element], where: str
) -> PlatformFile:
    names = tuple(each.attrib["id"] for each in nodes)
    if len(set(names)) != len(names):
        raise FormatError(f"{where}: two nodes have the same id; expected one each")
    hosts = {each.attrib["id"]: node for node, each in enumerate(nodes) if each.tag == "host"}
    for each in nodes:
        if each.tag == "host":
            take_text(each.attrib, "speed", where, (SPEED,))
    bandwidth = _bandwidths(links, where)
    link = {each.attrib["id"]: number for number, each in enumerate(links)}
    ends, paths = [], []
    for number, route in enumerate(routes):
        here = f"{where}: route {number}"
        take_text(route.attrib, "symmetrical", here, ("NO",))
        ends.append([_known(route, key, hosts, here) for key in ("src", "dst")])
        paths.append(_path(route, link, here))
    source, destination = np.array(ends, dtype=np.int64).T
    file = PlatformFile(
        kind="simgrid",
        name=where,
        source=source,
        destination=destination,
        start=starts_of([len(path) for path in paths]),
        node=_NONE,
        port=_NONE,
        weight=np.ones(len(paths)),
        layer=None,
        names=names,
        hosts=np.array(list(hosts.values()), dtype=np.int64),
        bandwidth=bandwidth,
        link=np.array([link for path in paths for link in path], dtype=np.int64),
    )
    for before in np.flatnonzero(np.diff(source * len(names) + destination) <= 0)[:1]:
        raise FormatError(
            f"{where}: {file.route(int(before) + 1)} is out of order, or there twice; expected one "
            "of each pair, by source and then by destination"
        )
    return file


def _known(element: Element, key: str, known: dict[str, int], here: str) -> int:
    """Return the number of what an attribute names."""
    name = element.attrib[key]
    if name not in known:
        what = "a link" if element.tag == "link_ctn" else "a host"
        raise FormatError(f"{here}: {key} is {short(name)}; expected the id of {what}")
    return known[name]


def _path(route: Element, links: dict[str, int], here: str) -> list[int]:
    """Return the links of a route."""
    for each in route:
        _check(each, "link_ctn", here)
    if not len(route):
        raise FormatError(f"{here}: has no links; expected at least one")
    return [_known(each, "id", links, here) for each in route]


def _bandwidths(links: list[Element], where: str) -> Floats:
    """Return the bandwidth of every link; their latency is one and the same."""
    found = []
    for number, link in enumerate(links):
        here = f"{where}: link {number}"
        take_text(link.attrib, "id", here, (f"link-{number}",))
        take_text(link.attrib, "sharing_policy", here, (SHARED,))
        take_text(link.attrib, "latency", here, (links[0].attrib["latency"],))
        _quantity(link, "latency", "s", here)
        found.append(_quantity(link, "bandwidth", "Bps", here))
    if 0.0 in found:
        raise FormatError(f"{where}: link {found.index(0.0)}: has no bandwidth; expected some")
    return np.array(found)


def _quantity(link: Element, key: str, unit: str, here: str) -> float:
    """Return a number that is written as Python writes it, with a unit behind it."""
    word = link.attrib[key]
    try:
        value = float(word.removesuffix(unit))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or word != f"{value!r}{unit}":
        raise FormatError(f"{here}: {key} is {short(word)}; expected a number and {unit}")
    return value


def _check(element: Element, tag: str, here: str) -> None:
    leaf = tag not in ("platform", "zone", "route")
    require_element(element, tag, here, ATTRIBUTES[tag], leaf=leaf)
