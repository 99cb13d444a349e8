"""The outside of a cluster: copies of a topology whose links are dealt out to NICs."""

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
"""The outside with one switch for all NICs of the same number."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A copy of the outside: its label, and the NICs of each of its terminals.

    The NICs of a terminal are `count` from `first` on, and its switches begin at `first_switch`.
    """

    label: str
    graph: Topology
    first: Ints
    count: Ints
    first_switch: int

    @property
    def switches(self) -> int:
        """The number of nodes that are not terminals."""
        return self.graph.nodes - len(self.graph.terminals)


@dataclass(frozen=True, eq=False)
class Cables:
    """Links outside, between NICs and switches; switches are numbered after the NICs."""

    tail: Ints
    head: Ints
    capacity: Floats

    def passable(self, place: Places) -> Mask:
        """Whether each NIC has several neighbours outside, or several GPUs."""
        ends = np.stack((self.tail, self.head))
        pairs = np.unique(np.concatenate((ends, ends[::-1]), axis=1), axis=1)
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
    terminals, kind = len(firsts[0]), "NICs" if over == "nics" else "hosts"
    graph = build(sized("switch" if outside == RAIL else outside, terminals))
    require(
        len(graph.terminals) == terminals,
        name,
        f"the outside {graph.name} has {len(graph.terminals)} terminals; expected {terminals}, "
        f"one for each of the {kind}",
    )
    check_size(name, len(firsts) * graph.nodes, len(firsts) * graph.links)
    switches = graph.nodes - terminals
    each = count if over == "hosts" else np.ones(terminals, dtype=np.int64)
    labels = [f"rail{n}" if over == "rails" else "outside" for n in range(len(firsts))]
    return [
        Plane(label, graph, nics, each, number * switches)
        for number, (label, nics) in enumerate(zip(labels, firsts, strict=True))
    ]


def _deal_links(plane: Plane, place: Places) -> tuple[Ints, Ints, Floats]:
    """Deal the links of a plane out to the NICs of its terminals, as often as the NICs allow."""
    graph = plane.graph
    leaves = _rank_among(graph.tail)
    # A cable has both directions on one NIC, so it is dealt out by the way out at either end.
    arrives = leaves[partner_links(graph)] if graph.bidirectional else _rank_among(graph.head)
    degree = np.maximum(graph.out_degree, graph.in_degree)[graph.terminals]
    copies = max(1, int((plane.count // np.maximum(degree, 1)).min()))
    link, copy = np.divmod(np.arange(graph.links * copies), copies)
    tail = _pick_ends(plane, place, graph.tail[link], leaves[link] * copies + copy)
    head = _pick_ends(plane, place, graph.head[link], arrives[link] * copies + copy)
    rate = np.minimum(_port_rate(place, tail), _port_rate(place, head))
    capacity, unit = graph.capacity[link], gbit_rate(graph)
    if unit is not None:
        return tail, head, np.minimum(rate, capacity * unit)
    return tail, head, np.where(np.isinf(rate), place.rates.max(), rate) * capacity


def _pick_ends(plane: Plane, place: Places, node: Ints, slot: Ints) -> Ints:
    """Return the NIC or switch at the end of links: at a terminal, its NICs take turns."""
    graph = plane.graph
    others = np.cumsum(graph.position < 0) - 1
    position = graph.position[node]
    nic = plane.first[position] + slot % plane.count[position]
    return np.where(position < 0, place.nics + plane.first_switch + others[node], nic)


def _port_rate(place: Places, end: Ints) -> Floats:
    """Return the rate of each link at one of its ends: a share of the NIC's, or unlimited."""
    ports = np.bincount(end, minlength=place.nics)
    rates = np.concatenate((place.rates, np.full(max(0, len(ports) - place.nics), np.inf)))
    return np.asarray(rates[end] / ports[end])


def _rank_among(node: Ints) -> Ints:
    """Return for each link the number of earlier ones at the same node."""
    order = np.argsort(node, kind="stable")
    rank = np.empty(len(node), dtype=np.int64)
    rank[order] = inner_index(np.bincount(node))
    return rank


def cables_of(name: str, planes: Sequence[Plane], place: Places) -> Cables:
    """Return the links of all planes; refuse an outside that leaves a host out."""
    dealt = zip(*(_deal_links(plane, place) for plane in planes), strict=True)
    cables = Cables(*(np.concatenate(column) for column in dealt))
    used = np.bincount(cables.tail, minlength=place.nics)[: place.nics]
    for index, host in enumerate(np.split(used, place.nic[1:-1])):
        advice = "expected an outside that joins all hosts"
        require(bool(host.any()), name, f"host {index} has no cable out; {advice}")
    return cables
