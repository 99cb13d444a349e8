"""Clusters: hosts with an internal fabric, NICs, and an outside fabric that joins the hosts.

GPUs are the terminals, and all rates are in Gbit/s. Any topology can join the GPUs of a host; its
links of capacity 1 carry `link`, or the rate that the topology itself states. The outside is any
topology too, and `over` selects its terminals:

- `hosts`: the hosts. The cables of a host are dealt to its NICs in turn: with degree 4 and 8 NICs
every cable is doubled, with degree 4 and 2 NICs every NIC has two cables.
- `rails`: the NICs of one number, one in every host; each number has its own copy of the outside.
The outside `rail` is one switch per number.
- `nics`: all NICs, host by host.

A NIC with several cables divides its rate among them, and a cable is as fast as its slower end.
Cables between switches are as fast as the fastest NIC. Capacities of the outside multiply these
rates, unless they are rates themselves: then a cable is no faster than that.

A NIC is linked, at its rate, to its nearest GPUs over PCIe (`attach=gpu`): one GPU each if there
are as many NICs as GPUs, else the GPUs that share it. NICs do not forward: outside traffic must
reach a GPU before it leaves again, and GPUs that share a NIC do not talk through it. A NIC with
several neighbours on one side therefore has a node per direction, `host0:nic1` to send and
`host0:nic1/in` to receive. `forward=nic` joins the two, for NICs that forward. With `attach=switch`
NICs are linked to a switch of the host, which then forwards for them.

A single host is its inside alone, without an outside or NICs.

Nodes are the GPUs, host by host, then the switches and NICs of every host, then the switches
outside. Their names keep the hierarchy: `host3:gpu5`, `host3:switch`, `host3:nic1`, `rail1:switch`.
"""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import MAX_NODES, Topology
from alltoall.ir.words import counted
from alltoall.topologies.hosts import DGX_H100, MI300X, Host, Places, check_host, check_word
from alltoall.topologies.outsides import RAIL, Cables, Mask, Plane, cables_of, planes_of
from alltoall.topologies.parts import check_size, from_arcs, require

OVERS, FORWARDS = ("hosts", "rails", "nics"), ("host", "nic")
"""Choices of the outside's terminals, and of the node that forwards incoming traffic."""


def cluster(
    hosts: int,
    gpus: int = 8,
    inside: str = "nvswitch:3600",
    nics: str = "8x400",
    outside: str = RAIL,
    over: str = "",
    link: float | None = None,
    attach: str = "gpu",
    forward: str = "host",
) -> Topology:
    """Build a cluster: hosts with a fabric inside, NICs, and a fabric outside that joins them.

    Rates are in Gbit/s. A SPEC of several arguments within this one is put in parentheses. The
    outside is over the hosts unless it is `rail` or `over` says otherwise.
    """
    match = re.fullmatch(r"([0-9]{1,7})x([0-9]{1,9}(?:\.[0-9]{1,9})?)", nics)
    if not match:
        expected = "expected a number and a rate, such as 8x400"
        raise TopologyError(f"cluster: nics is {reprlib.repr(nics)}; {expected}")
    host = Host(gpus, _unwrap(inside), int(match[1]), float(match[2]), link, attach)
    name = f"cluster:hosts={hosts},gpus={gpus},inside={_wrap(host.inside)},nics={nics}"
    name += "" if link is None else f",link={link:g}"
    name += "" if attach == "gpu" else f",attach={attach}"
    return _repeat(name, host, hosts, outside, over, forward)


def dgxh100(hosts: int = 1, outside: str = RAIL, over: str = "") -> Topology:
    """Build DGX H100 hosts, in Gbit/s, joined by rails or by any topology.

    In Gbit/s. Every GPU has 18 NVLinks of 25 GB/s each way to the NVSwitches, 450 GB/s = 3600, and
    these do not block, so they are one switch here. Eight ConnectX-7 of 400 are for the compute
    fabric, each on the PCIe switch of one GPU. NVIDIA, "DGX H100/H200 user guide", 2023.
    """
    return _repeat(f"dgxh100:hosts={hosts}", DGX_H100, hosts, outside, over)


def mi300x(hosts: int = 1, outside: str = RAIL, over: str = "") -> Topology:
    """Build MI300X hosts, in Gbit/s, joined by rails or by any topology.

    In Gbit/s. Every two GPUs have an Infinity Fabric link of 64 GB/s each way = 512; AMD, "Instinct
    MI300X platform" data sheet, 2023 (128 GB/s both ways, 7 links per GPU). The eight NICs of 400,
    one on the PCIe switch of each GPU, follow AMD, "Instinct MI300 series cluster reference guide",
    2024.
    """
    return _repeat(f"mi300x:hosts={hosts}", MI300X, hosts, outside, over)


def _repeat(
    name: str, host: Host, hosts: int, outside: str, over: str, forward: str = "host"
) -> Topology:
    """Build a cluster of identical hosts, and add the outside to its name."""
    outside, alone = _unwrap(outside), (hosts, outside) == (1, RAIL)
    name += "" if alone else f",outside={_wrap(outside)}"
    name += f",over={over}" if over else ""
    name += "" if forward in ("", "host") else f",forward={forward}"
    require(hosts >= 1, name, f"there are {hosts} hosts; expected 1 or more")
    limit = f"at most {MAX_NODES:,} nodes are supported"
    fits = hosts * max(host.gpus, 1) <= MAX_NODES
    require(fits, name, f"{hosts} hosts of {host.gpus} GPUs; {limit}")
    return compose(name, [host] * hosts, outside, over, forward)


def compose(
    name: str, hosts: Sequence[Host], outside: str, over: str = "", forward: str = "host"
) -> Topology:
    """Join hosts of any kinds by the outside fabric."""
    over = over or ("rails" if outside == RAIL else "hosts")
    check_word(name, "over", over, OVERS)
    check_word(name, "forward", forward, FORWARDS)
    require(len(hosts) >= 1, name, "there are 0 hosts; expected 1 or more")
    for host in dict.fromkeys(hosts):
        check_host(name, host)
    nodes = sum(host.fabric.nodes + host.nics for host in hosts)
    check_size(name, nodes, sum(host.fabric.links + 2 * host.nics for host in hosts))
    if len(hosts) == 1:
        # Build the inside of a lone host, whose NICs lead nowhere.
        host = hosts[0]
        require(
            outside == RAIL,
            name,
            f"there is 1 host, which the outside {outside} cannot join to others; expected 2 or "
            "more hosts, or no outside",
        )
        place = Places((replace(host, nics=0),))
        links = _inside_links(place, place.hosts[0], host.gpus)
        notes = ("a single host: its NICs are left out", *_assumed_rates(place))
        built = from_arcs(name, host.fabric.nodes, *links, np.arange(host.gpus), notes=notes)
        return replace(built, names=_names(place, (), np.zeros(0, dtype=np.bool_)))
    place = Places(tuple(hosts))
    planes = planes_of(name, place, outside, over)
    return _assemble(name, place, planes, cables_of(name, planes, place), forward == "nic")


def _assemble(
    name: str, place: Places, planes: Sequence[Plane], cables: Cables, forwarding: bool
) -> Topology:
    """Give all nodes their numbers and collect all links."""
    split = cables.passable(place)
    gpus, inner = int(place.gpu[-1]), int(place.switch[-1])
    # NICs follow the switches inside; one that is split is followed by its way in.
    way_out = gpus + inner + np.arange(place.nics) + np.cumsum(split) - split
    way_in = way_out + split
    outer = gpus + inner + place.nics + int(split.sum())
    switches = outer + np.arange(sum(plane.switches for plane in planes))
    node_out, node_in = (np.concatenate((way, switches)) for way in (way_out, way_in))
    passing = np.flatnonzero(split & forwarding)
    parts = [
        (node_out[cables.tail], node_in[cables.head], cables.capacity),
        (way_in[passing], way_out[passing], place.rates[passing]),
        *(_inside_links(place, host, gpus) for host in place.kinds),
        *(_nic_links(place, host, way_out, way_in, gpus) for host in place.kinds),
    ]
    tail, head, capacity = (np.concatenate(column) for column in zip(*parts, strict=True))
    nodes, notes = outer + len(switches), [f"outside: {note}" for note in planes[0].graph.notes]
    unused = place.nics - len(np.unique(cables.tail[cables.tail < place.nics]))
    if unused:
        notes.append(f"{counted(unused, 'NIC')} of {place.nics} without a cable out")
    notes += _assumed_rates(place)
    check_size(name, nodes, len(tail))
    built = from_arcs(name, nodes, tail, head, capacity, np.arange(gpus), notes=tuple(notes))
    return replace(built, names=_names(place, planes, split))


def _inside_links(place: Places, host: Host, gpus: int) -> tuple[Ints, Ints, Floats]:
    """Return the links of the fabrics inside all hosts of a kind."""
    fabric, index = host.fabric, place.of_kind(host)
    others = gpus + place.switch[index] + np.cumsum(fabric.position < 0) - 1
    node = np.where(fabric.position < 0, others, place.gpu[index] + fabric.position)
    capacity = np.tile(fabric.capacity * host.link_rate, len(index))
    return node[:, fabric.tail].ravel(), node[:, fabric.head].ravel(), capacity


def _nic_links(
    place: Places, host: Host, way_out: Ints, way_in: Ints, gpus: int
) -> tuple[Ints, Ints, Floats]:
    """Return the links between the NICs of all hosts of a kind and their GPUs or switches."""
    index = place.of_kind(host)
    every = np.arange(max(host.nics, host.gpus) if host.attach == "gpu" else host.nics)
    if host.attach == "switch":
        nic, end = every, gpus + place.switch[index] + every % host.switches
    else:
        nic = every * host.nics // len(every)
        end = place.gpu[index] + every * host.gpus // len(every)
    own, end = (place.nic[index] + nic).ravel(), end.ravel()
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
        names += _switch_names(plane.label, plane.switches)
    return tuple(names)


def _switch_names(owner: str, count: int) -> list[str]:
    if count == 1:
        return [f"{owner}:switch"]
    return [f"{owner}:switch{number}" for number in range(count)]


def _assumed_rates(place: Places) -> list[str]:
    """Note the inside links whose rate is assumed."""
    return [
        f"links of the inside {host.fabric.name} are taken as 1 Gbit/s; link=RATE sets another"
        for host in place.kinds
        if host.link is None and host.fabric.bytes_per_second is None
    ]


def _unwrap(spec: str) -> str:
    """Strip the parentheses of a SPEC within another one."""
    return spec[1:-1] if spec.startswith("(") and spec.endswith(")") else spec


def _wrap(spec: str) -> str:
    """Put a SPEC with commas in parentheses, to stand within another one."""
    return f"({spec})" if "," in spec else spec
