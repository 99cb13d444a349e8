"""What joins the hosts of a cluster: copies of a topology, whose links are dealt out to NICs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.topology import Topology
from alltoall.topologies.hosts import Places, gbit_rate
from alltoall.topologies.operators import partner_links
from alltoall.topologies.parts import check_size, require
from alltoall.topologies.spec import build, sized

Mask = NDArray[np.bool_]

RAIL = "rail"
"""The outside that is a switch for the NICs of each number."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A copy of the outside: what it is called, and which NICs each of its terminals has.

    The NICs of a terminal are `count` from `first` on, and its switches begin at `first_switch`.
    """

    label: str
    graph: Topology
    first: Ints
    count: Ints
    first_switch: int


@dataclass(frozen=True, eq=False)
class Cables:
    """Links outside: each from a NIC or a switch to another one; switches follow the NICs."""

    tail: Ints
    head: Ints
    capacity: Floats

    def passable(self, place: Places) -> Mask:
        """Whether each NIC has more than one neighbour outside, or several GPUs of its own."""
        ends = np.concatenate(
            (np.stack((self.tail, self.head)), np.stack((self.head, self.tail))), axis=1
        )
        pairs = np.unique(ends, axis=1)
        neighbours = np.bincount(pairs[0], minlength=place.nics)[: place.nics]
        shared = [host.nics < host.gpus and host.attach == "gpu" for host in place.hosts]
        return np.asarray((neighbours > 1) | np.repeat(shared, np.diff(place.nic)))


def planes_of(name: str, place: Places, outside: str, over: str) -> list[Plane]:
    """Return the copies of the outside."""
    first, count = place.nic[:-1], np.diff(place.nic)
    if over == "rails":
        require(
            np.ptp(count) == 0,
            name,
            f"hosts have {count.min()} to {count.max()} NICs; expected as many of every host for "
            "over=rails",
        )
        firsts = [first + rail for rail in range(int(count[0]))]
    else:
        firsts = [np.arange(place.nics) if over == "nics" else first]
    graph = _outside(name, outside, len(firsts[0]), "NICs" if over == "nics" else "hosts")
    check_size(name, len(firsts) * graph.nodes, len(firsts) * graph.links)
    switches = graph.nodes - len(graph.terminals)
    each = count if over == "hosts" else np.ones(len(firsts[0]), dtype=np.int64)
    return [
        Plane(
            f"rail{number}" if over == "rails" else "outside", graph, nics, each, number * switches
        )
        for number, nics in enumerate(firsts)
    ]


def _outside(name: str, outside: str, terminals: int, what: str) -> Topology:
    """Build the outside, with a terminal for each of the hosts, or of the NICs."""
    graph = build(sized("switch" if outside == RAIL else outside, terminals))
    require(
        len(graph.terminals) == terminals,
        name,
        f"the outside {graph.name} has {len(graph.terminals)} terminals; expected {terminals}, "
        f"one for each of the {what}",
    )
    return graph


def _dealt_out(plane: Plane, place: Places) -> Cables:
    """Deal the links of a plane out to the NICs of its terminals."""
    graph = plane.graph
    leaves = _rank_among(graph.tail)
    # A cable has both directions on one NIC, so it is dealt out by the way out at either end.
    arrives = leaves[partner_links(graph)] if graph.bidirectional else _rank_among(graph.head)
    copies = _copies(plane)
    copy = np.tile(np.arange(copies), graph.links)
    link = np.repeat(np.arange(graph.links), copies)
    tail = _dealt(plane, place, graph.tail[link], leaves[link] * copies + copy)
    head = _dealt(plane, place, graph.head[link], arrives[link] * copies + copy)
    rate = np.minimum(_share(place, tail), _share(place, head))
    return Cables(tail, head, _limited(graph, link, rate, float(place.rates.max())))


def _limited(graph: Topology, link: Ints, rate: Floats, fastest: float) -> Floats:
    """Return the rates of cables: of links with a unit no more than that, else times capacity."""
    capacity, unit = graph.capacity[link], gbit_rate(graph)
    if unit is not None:
        return np.minimum(rate, capacity * unit)
    return np.asarray(np.where(np.isinf(rate), fastest, rate) * capacity)


def _copies(plane: Plane) -> int:
    """Return how often every link is there: as often as the NICs of all terminals allow."""
    graph = plane.graph
    degree = np.maximum(graph.out_degree, graph.in_degree)[graph.terminals]
    return max(1, int((plane.count // np.maximum(degree, 1)).min()))


def _dealt(plane: Plane, place: Places, node: Ints, slot: Ints) -> Ints:
    """Return the NIC or switch at the end of links: at a terminal, its NICs take turns."""
    graph = plane.graph
    others = np.cumsum(graph.position < 0) - 1
    position = graph.position[node]
    nic = plane.first[position] + slot % plane.count[position]
    return np.where(position < 0, place.nics + plane.first_switch + others[node], nic)


def _share(place: Places, end: Ints) -> Floats:
    """Return what each link may carry at one of its ends: a share of the NIC's rate, or all."""
    ports = np.bincount(end, minlength=place.nics)
    rates = np.concatenate((place.rates, np.full(max(0, len(ports) - place.nics), np.inf)))
    return np.asarray(rates[end] / ports[end])


def _rank_among(node: Ints) -> Ints:
    """Return for each link how many earlier ones have the same node."""
    order = np.argsort(node, kind="stable")
    rank = np.empty(len(node), dtype=np.int64)
    rank[order] = inner_index(np.bincount(node))
    return rank


def cables_of(name: str, planes: Sequence[Plane], place: Places) -> Cables:
    """Return the links of all planes between NICs and switches."""
    cables = [_dealt_out(plane, place) for plane in planes]
    tail, head, capacity = (
        np.concatenate([getattr(each, key) for each in cables])
        for key in ("tail", "head", "capacity")
    )
    found = Cables(tail, head, capacity)
    _check_cables(name, place, found)
    return found


def _check_cables(name: str, place: Places, cables: Cables) -> None:
    """Refuse an outside that leaves a host out."""
    used = np.unique(cables.tail[cables.tail < place.nics])
    reached = np.isin(np.arange(place.nics), used)
    for index in range(len(place.hosts)):
        require(
            bool(reached[place.nic[index] : place.nic[index + 1]].any()),
            name,
            f"host {index} has no cable out; expected an outside that joins all hosts",
        )
