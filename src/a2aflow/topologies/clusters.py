"""Clusters: hosts with a fabric of their own, NICs, and a fabric outside that joins the hosts.

GPUs are the terminals. Inside a host they are joined by any topology; its links carry `link` each,
in the unit of the NICs' rate, which is Gbit/s in all presets. The outside is any topology too, and
its terminals are, by `over`,

- `hosts`: the hosts. The cables of a host are dealt out to its NICs in turn, so with degree 4 and
  8 NICs every cable is there twice, and with degree 4 and 2 NICs every NIC has two.
- `rails`: the NICs of one number, one in every host; there is a copy of the outside for each
  number. The outside `rail` is a switch for each of them.
- `nics`: all NICs, host by host.

A NIC that has several cables shares its rate out to them, and a cable is as fast as its slower end.
Cables between switches are as fast as the fastest NIC.

A NIC is linked, at its rate, to the GPUs that are nearest (`attach=gpu`, over PCIe): with as many
NICs as GPUs to the one of its number, with fewer to as many GPUs as share it. NICs pass nothing on:
what comes in from outside has to reach a GPU before it leaves again, and GPUs that share a NIC do
not talk through it. So a NIC with more than one neighbour on either side, which else could, has a
node for each direction, `host0:nic1` for what is sent and `host0:nic1/in` for what is received.
`forward=nic` links the second to the first, for NICs that forward by themselves. With
`attach=switch` NICs are linked to a switch of the inside, which then forwards for them too.

Nodes are the GPUs, host by host, then the switches and NICs of every host, then the switches
outside. Their names keep the hierarchy: `host3:gpu5`, `host3:switch`, `host3:nic1`, `rail1:switch`.
"""

import math
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import TopologyError
from a2aflow.ir.arrays import Floats, Ints, inner_index
from a2aflow.ir.topology import MAX_NODES, Topology
from a2aflow.topologies.cables import partner_links
from a2aflow.topologies.parts import check_size, counted, from_arcs, require
from a2aflow.topologies.spec import build, sized

OVERS, ATTACHES, FORWARDS = ("hosts", "rails", "nics"), ("gpu", "switch"), ("host", "nic")

Mask = NDArray[np.bool_]

RAIL = "rail"
"""The outside that is a switch for the NICs of each number."""


@dataclass(frozen=True)
class Host:
    """A kind of host: GPUs, the topology that joins them, and NICs of a rate."""

    gpus: int
    inside: str
    nics: int
    rate: float
    link: float = 1.0
    attach: str = "gpu"

    @cached_property
    def fabric(self) -> Topology:
        """The topology inside; its terminals are the GPUs."""
        return replace(build(sized(self.inside, self.gpus)), notes=())

    @property
    def switches(self) -> int:
        """The nodes inside that are no GPUs."""
        return self.fabric.nodes - self.gpus


DGX_H100 = Host(gpus=8, inside="nvswitch:3600", nics=8, rate=400.0)
MI300X = Host(gpus=8, inside="complete", nics=8, rate=400.0, link=512.0)

HOSTS = {"dgxh100": DGX_H100, "mi300x": MI300X}
"""Kinds of hosts by name; where their numbers are from is said at the families."""


def cluster(
    hosts: int,
    gpus: int = 8,
    inside: str = "nvswitch:3600",
    nics: str = "8x400",
    outside: str = RAIL,
    over: str = "",
    link: float = 1.0,
    attach: str = "gpu",
    forward: str = "host",
) -> Topology:
    """Build a cluster: hosts with a fabric inside, NICs, and a fabric outside that joins them.

    A SPEC of several arguments within this one is put in parentheses. The outside is over the
    hosts unless it is `rail` or `over` says otherwise.
    """
    count, rate = _nics(nics)
    host = Host(gpus, _bare(inside), count, rate, link, attach)
    name = f"cluster:hosts={hosts},gpus={gpus},inside={_nested(host.inside)},nics={nics}"
    options = {"link": f"{link:g}", "attach": attach}
    defaults = {"link": "1", "attach": "gpu"}
    name += "".join(f",{key}={value}" for key, value in options.items() if value != defaults[key])
    return _repeated(name, host, hosts, outside, over, forward)


def dgxh100(hosts: int, outside: str = RAIL, over: str = "") -> Topology:
    """Build a cluster of DGX H100 hosts: 8 GPUs behind NVSwitch, and a NIC for each of them.

    In Gbit/s. Every GPU has 18 NVLinks of 25 GB/s each way to the NVSwitches, 450 GB/s = 3600, and
    these do not block, so they are one switch here. Eight ConnectX-7 of 400 are for the compute
    fabric, each on the PCIe switch of one GPU. NVIDIA, "DGX H100/H200 user guide", 2023.
    """
    return _repeated(f"dgxh100:hosts={hosts}", DGX_H100, hosts, outside, over)


def mi300x(hosts: int, outside: str = RAIL, over: str = "") -> Topology:
    """Build a cluster of MI300X hosts: 8 GPUs that are all linked, and a NIC for each of them.

    In Gbit/s. Every two GPUs have an Infinity Fabric link of 64 GB/s each way = 512; AMD, "Instinct
    MI300X platform" data sheet, 2023 (128 GB/s both ways, 7 links per GPU). The eight NICs of 400,
    one on the PCIe switch of each GPU, are those of AMD's cluster reference guide.
    """
    return _repeated(f"mi300x:hosts={hosts}", MI300X, hosts, outside, over)


def _repeated(
    name: str, host: Host, hosts: int, outside: str, over: str, forward: str = "host"
) -> Topology:
    """Build a cluster of one kind of host, with what joins them in its name."""
    options = {"over": over, "forward": "" if forward == "host" else forward}
    name += f",outside={_nested(_bare(outside))}"
    name += "".join(f",{key}={value}" for key, value in options.items() if value)
    require(hosts >= 2, name, f"there are {hosts} hosts; expected 2 or more")
    require(
        hosts * max(host.gpus, 1) <= MAX_NODES,
        name,
        f"{hosts} hosts of {host.gpus} GPUs; at most {MAX_NODES:,} nodes are supported",
    )
    return compose(name, [host] * hosts, _bare(outside), over, forward)


def compose(
    name: str, hosts: Sequence[Host], outside: str, over: str = "", forward: str = "host"
) -> Topology:
    """Join hosts of any kinds by what is outside; see the module for how."""
    over = over or ("rails" if outside == RAIL else "hosts")
    _check(name, hosts, over, forward)
    place = Places(tuple(hosts))
    planes = _planes(name, place, outside, over)
    cables = _joined([_cables(plane, place) for plane in planes])
    _check_cables(name, place, cables)
    return _assembled(name, place, planes, cables, forward == "nic")


@dataclass(frozen=True, eq=False)
class Places:
    """Which number GPUs, switches inside and NICs have; NICs are counted apart from the nodes."""

    hosts: tuple[Host, ...]
    gpu: Ints = field(init=False)
    switch: Ints = field(init=False)
    nic: Ints = field(init=False)

    def __post_init__(self) -> None:
        for key, counts in (
            ("gpu", [host.gpus for host in self.hosts]),
            ("switch", [host.switches for host in self.hosts]),
            ("nic", [host.nics for host in self.hosts]),
        ):
            object.__setattr__(self, key, np.concatenate(([0], np.cumsum(counts))))

    @property
    def nics(self) -> int:
        """The number of NICs of all hosts."""
        return int(self.nic[-1])

    @cached_property
    def rates(self) -> Floats:
        """The rate of every NIC."""
        return np.repeat([host.rate for host in self.hosts], [host.nics for host in self.hosts])


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


def _planes(name: str, place: Places, outside: str, over: str) -> list[Plane]:
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


def _cables(plane: Plane, place: Places) -> Cables:
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
    fastest = float(place.rates.max())
    return Cables(tail, head, np.where(np.isinf(rate), fastest, rate) * graph.capacity[link])


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


def _joined(cables: Sequence[Cables]) -> Cables:
    tail, head, capacity = (
        np.concatenate([getattr(each, key) for each in cables])
        for key in ("tail", "head", "capacity")
    )
    return Cables(tail, head, capacity)


def _assembled(
    name: str,
    place: Places,
    planes: Sequence[Plane],
    cables: Cables,
    forwarding: bool,
) -> Topology:
    """Give all nodes their numbers and put all links together."""
    split = cables.passable(place)
    gpus, inner = int(place.gpu[-1]), int(place.switch[-1])
    # NICs follow the switches inside; one that is split is followed by its way in.
    way_out = gpus + inner + np.arange(place.nics) + np.cumsum(split) - split
    way_in = way_out + split
    outer = gpus + inner + place.nics + int(split.sum())
    switches = sum(plane.graph.nodes - len(plane.graph.terminals) for plane in planes)
    node_out = np.concatenate((way_out, outer + np.arange(switches)))
    node_in = np.concatenate((way_in, outer + np.arange(switches)))
    passing = np.flatnonzero(split & forwarding)
    parts = [
        (node_out[cables.tail], node_in[cables.head], cables.capacity),
        (way_in[passing], way_out[passing], place.rates[passing]),
        *(_inside(place, index, gpus) for index in range(len(place.hosts))),
        *(_attached(place, index, way_out, way_in, gpus) for index in range(len(place.hosts))),
    ]
    tail, head, capacity = (np.concatenate(column) for column in zip(*parts, strict=True))
    nodes = outer + switches
    check_size(name, nodes, len(tail))
    built = from_arcs(
        name, nodes, tail, head, capacity, np.arange(gpus), notes=_notes(place, planes, cables)
    )
    return replace(built, names=_names(place, planes, split))


def _inside(place: Places, index: int, gpus: int) -> tuple[Ints, Ints, Floats]:
    """Return the links of the fabric inside one host."""
    host = place.hosts[index]
    fabric = host.fabric
    others = gpus + place.switch[index] + np.cumsum(fabric.position < 0) - 1
    node = np.where(fabric.position < 0, others, place.gpu[index] + fabric.position)
    return node[fabric.tail], node[fabric.head], fabric.capacity * host.link


def _attached(
    place: Places, index: int, way_out: Ints, way_in: Ints, gpus: int
) -> tuple[Ints, Ints, Floats]:
    """Return the links between the NICs of one host and its GPUs, or a switch inside."""
    host = place.hosts[index]
    nic, near = (axis.ravel() for axis in np.indices((host.nics, host.gpus)))
    if host.attach == "switch":
        nic = np.arange(host.nics)
        end = gpus + place.switch[index] + nic % host.switches
    else:
        close = np.where(
            host.nics < host.gpus,
            near * host.nics // host.gpus == nic,
            nic * host.gpus // host.nics == near,
        )
        nic, end = nic[close], place.gpu[index] + near[close]
    own = place.nic[index] + nic
    tail, head = np.concatenate((end, way_in[own])), np.concatenate((way_out[own], end))
    return tail, head, np.full(len(tail), host.rate)


def _names(place: Places, planes: Sequence[Plane], split: Mask) -> tuple[str, ...]:
    numbered = list(enumerate(place.hosts))
    names = [f"host{index}:gpu{gpu}" for index, host in numbered for gpu in range(host.gpus)]
    for index, host in numbered:
        names += _switch_names(f"host{index}", host.switches)
    for index, host in numbered:
        for nic in range(host.nics):
            names.append(f"host{index}:nic{nic}")
            names += [f"host{index}:nic{nic}/in"] if split[place.nic[index] + nic] else []
    for plane in planes:
        names += _switch_names(plane.label, plane.graph.nodes - len(plane.graph.terminals))
    return tuple(names)


def _switch_names(owner: str, count: int) -> list[str]:
    if count == 1:
        return [f"{owner}:switch"]
    return [f"{owner}:switch{number}" for number in range(count)]


def _notes(place: Places, planes: Sequence[Plane], cables: Cables) -> tuple[str, ...]:
    """Say what the outside had to say, and which NICs have no cable."""
    unused = place.nics - len(np.unique(cables.tail[cables.tail < place.nics]))
    said = [f"outside: {note}" for note in planes[0].graph.notes]
    if unused:
        said.append(f"{counted(unused, 'NIC')} of {place.nics} without a cable out")
    return tuple(said)


def _check(name: str, hosts: Sequence[Host], over: str, forward: str) -> None:
    for key, value, known in (("over", over, OVERS), ("forward", forward, FORWARDS)):
        _check_word(name, key, value, known)
    require(len(hosts) >= 2, name, f"there are {len(hosts)} hosts; expected 2 or more")
    for host in dict.fromkeys(hosts):
        _check_host(name, host)
    nodes = sum(host.fabric.nodes + 2 * host.nics for host in hosts)
    check_size(name, nodes, sum(host.fabric.links + 2 * host.nics for host in hosts))


def _check_host(name: str, host: Host) -> None:
    _check_word(name, "attach", host.attach, ATTACHES)
    require(
        2 <= host.gpus <= MAX_NODES and 1 <= host.nics <= MAX_NODES,
        name,
        f"a host of {host.gpus} GPUs and {host.nics} NICs; expected 2 or more GPUs and a NIC, "
        f"and at most {MAX_NODES:,} of either",
    )
    for key, value in (("link", host.link), ("rate of the NICs", host.rate)):
        require(
            math.isfinite(value) and value > 0,
            name,
            f"the {key} is {value:g}; expected a positive number",
        )
    found = len(host.fabric.terminals)
    require(
        found == host.gpus,
        name,
        f"the inside {host.fabric.name} has {found} terminals; expected {host.gpus}, the GPUs",
    )
    require(
        host.attach != "switch" or host.switches > 0,
        name,
        f"attach=switch, and the inside {host.fabric.name} has none; expected attach=gpu",
    )


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


def _check_word(name: str, key: str, value: str, known: tuple[str, ...]) -> None:
    require(
        value in known,
        name,
        f"{key} is {reprlib.repr(value)}; expected {' or '.join(known)}",
    )


def _nics(text: str) -> tuple[int, float]:
    """Return number and rate of NICs that are written like 8x400."""
    found = re.fullmatch(r"([0-9]{1,7})x([0-9]{1,9}(?:\.[0-9]{1,9})?)", text)
    if not found:
        raise TopologyError(
            f"cluster: nics is {reprlib.repr(text)}; expected a number and a rate, such as 8x400"
        )
    return int(found[1]), float(found[2])


def _bare(spec: str) -> str:
    """Return a SPEC within another one without its parentheses."""
    return spec[1:-1] if spec.startswith("(") and spec.endswith(")") else spec


def _nested(spec: str) -> str:
    """Write a SPEC within another one: in parentheses if it has commas."""
    return f"({spec})" if "," in spec else spec
