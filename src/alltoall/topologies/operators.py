"""Changes to a topology: pure functions that each add a note."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import TopologyError, UsageError
from alltoall.ir.arrays import Ints, connected_pairs, reachable, rows
from alltoall.ir.names import distinct_names
from alltoall.ir.problem import without_links, without_nodes
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, listed
from alltoall.topologies.parts import require


def partner_links(topology: Topology) -> Ints:
    """Return the reverse link of every link, on the same cable.

    Parallel links of one capacity are paired in the order of their indices.
    """
    if not topology.bidirectional:
        raise TopologyError(
            f"{topology.name}: some link has no partner of the same capacity in the other "
            "direction; expected a bidirectional topology, add the missing links"
        )
    partner = np.empty(topology.links, dtype=np.int64)
    forth = np.lexsort((topology.capacity, topology.head, topology.tail))
    partner[forth] = np.lexsort((topology.capacity, topology.tail, topology.head))
    return partner


def cable_links(topology: Topology) -> Ints:
    """Return one link per cable: the one from the lower node if bidirectional, else every link."""
    if topology.bidirectional:
        return np.flatnonzero(topology.tail < topology.head).astype(np.int64)
    return np.arange(topology.links, dtype=np.int64)


def both_ways(topology: Topology) -> Topology:
    """Take every link for a cable: add the missing links back, and sort by tail and head.

    Links present in both directions must have equal capacities, since either may be the right one.
    """
    if topology.bidirectional:
        return topology
    keys = topology.tail * topology.nodes + topology.head
    alone = np.flatnonzero(~np.isin(topology.head * topology.nodes + topology.tail, keys))
    tail = np.concatenate([topology.tail, topology.head[alone]])
    head = np.concatenate([topology.head, topology.tail[alone]])
    order = np.lexsort((head, tail))
    result = topology.changed(
        f"taken as undirected: {counted(len(alone), 'link')} added",
        tail=tail[order],
        head=head[order],
        capacity=np.concatenate([topology.capacity, topology.capacity[alone]])[order],
    )
    if not result.bidirectional:
        raise TopologyError(
            f"{topology.name}: some links lead both ways with different capacities; expected one "
            "direction of each cable, or both alike, to take it as undirected"
        )
    return result


MAX_DRAWS = 1000

Pair = tuple[int, int]
Mask = NDArray[np.bool_]


def drop_links(topology: Topology, count: int, seed: int) -> Topology:
    """Remove `count` random links, or cables if bidirectional, and keep the terminals connected."""
    cables = cable_links(topology)
    _check_count(topology, count, len(cables), "cables" if topology.bidirectional else "links")

    def remove(drawn: Ints) -> Topology:
        words = f"dropped {_name_links(topology, drawn)} at random (seed {seed})"
        back = partner_links(topology)[drawn] if topology.bidirectional else drawn[:0]
        return without_links(topology, np.concatenate([drawn, back]), words)

    return _draw(topology, cables, count, seed, remove)


def drop_nodes(topology: Topology, count: int, seed: int) -> Topology:
    """Remove `count` random terminals, keep the others connected, and renumber the nodes."""
    _check_count(topology, count, len(topology.terminals) - 2, "terminals besides the last two")

    def remove(drawn: Ints) -> Topology:
        words = f"dropped {_name_nodes(topology, drawn)} at random (seed {seed}) and renumbered"
        return without_nodes(topology, drawn, words)

    return _draw(topology, topology.terminals, count, seed, remove)


def remove_links(topology: Topology, pairs: Iterable[Pair]) -> Topology:
    """Remove all links from u to v for every pair (u, v), and from v to u if bidirectional."""
    links = links_between(topology, pairs)
    if not len(links):
        return topology
    shown = links[topology.tail[links] < topology.head[links]] if topology.bidirectional else links
    return without_links(topology, links, f"removed {_name_links(topology, shown)}")


def links_between(topology: Topology, pairs: Iterable[Pair]) -> Ints:
    """Return all links from u to v for every pair (u, v), and from v to u if bidirectional."""
    chosen = np.zeros(topology.links, dtype=np.bool_)
    for u, v in pairs:
        chosen |= _links_from_to(topology, u, v)
        if topology.bidirectional:
            chosen |= _links_from_to(topology, v, u)
    return np.flatnonzero(chosen).astype(np.int64)


def remove_nodes(topology: Topology, nodes: Iterable[int]) -> Topology:
    """Remove the named nodes with their links, and renumber the others densely in order."""
    gone = np.array(sorted(set(nodes)), dtype=np.int64)
    for node in gone.tolist():
        _check_node(topology, node)
    if not len(gone):
        return topology
    return without_nodes(topology, gone, f"removed {_name_nodes(topology, gone)} and renumbered")


def scale_capacities(topology: Topology, factor: float) -> Topology:
    """Multiply every capacity by `factor`."""
    _check_positive(topology, "factor", factor)
    note = f"scaled all capacities by {factor:g}"
    return topology.changed(note, capacity=topology.capacity * factor)


def set_capacities(topology: Topology, capacities: Mapping[Pair, float]) -> Topology:
    """Give every link from u to v the capacity `capacities[u, v]`, in that direction only."""
    changed = np.array(topology.capacity)
    for (u, v), value in capacities.items():
        _check_positive(topology, f"capacity of {_arc(topology, u, v)}", value)
        changed[_links_from_to(topology, u, v)] = value
    shown = (f"{_arc(topology, *pair)} to {value:g}" for pair, value in capacities.items())
    return topology.changed(f"set the capacity of {listed(shown)}", capacity=changed)


def with_host_bandwidth(topology: Topology, bandwidth: float) -> Topology:
    """Model a host-to-NIC bottleneck: all traffic through a terminal passes its host.

    Terminal number i keeps its id as the host, and gets the NIC halves in = nodes + i and
    out = nodes + terminals + i, which are not terminals. A link u -> v becomes out(u) -> in(v)
    with its index and capacity; behind those come the links in(u) -> u of all terminals and then
    the links u -> out(u), all of capacity `bandwidth`. Switches are not split. Where nodes have
    names, the halves of `a` are called `a/nic-in` and `a/nic-out`.
    """
    _check_positive(topology, "host bandwidth", bandwidth)
    hosts = topology.terminals
    halves = topology.nodes + np.arange(2 * len(hosts), dtype=np.int64)
    nic_in, nic_out = halves[: len(hosts)], halves[len(hosts) :]
    sends, receives = np.arange(topology.nodes), np.arange(topology.nodes)
    sends[hosts], receives[hosts] = nic_out, nic_in
    unit = topology.bytes_per_second
    rate = "" if unit is None else f" ({rate_in_words(bandwidth * unit)})"
    split = f"{len(hosts)} terminals split into host and NIC halves"
    names = topology.names
    if names is not None:
        whole = [names[host] for host in hosts.tolist()]
        halves_of = (f"{host}/nic-{way}" for way in ("in", "out") for host in whole)
        names = distinct_names((*names, *halves_of))
    return topology.changed(
        f"host bandwidth {bandwidth:g}{rate}: {split}",
        nodes=topology.nodes + len(halves),
        tail=np.concatenate([sends[topology.tail], nic_in, hosts]),
        head=np.concatenate([receives[topology.head], hosts, nic_out]),
        capacity=np.concatenate([topology.capacity, np.full(len(halves), float(bandwidth))]),
        names=names,
    )


def _draw(
    topology: Topology, pool: Ints, count: int, seed: int, remove: Callable[[Ints], Topology]
) -> Topology:
    """Return `remove` of the first draw that leaves terminals connected if they were before."""
    if count == 0:
        return topology
    if seed < 0:
        raise UsageError(f"seed {seed}; expected 0 or more")
    generator, whole = np.random.default_rng(seed), _connected(topology)
    for _ in range(MAX_DRAWS):
        drawn = np.sort(generator.choice(pool, count, replace=False))
        result = remove(drawn)
        if _connected(result) or (not whole and _keeps_paths(topology, result, drawn)):
            return result
    raise TopologyError(
        f"{topology.name}: none of {MAX_DRAWS} random draws of {count} out of {len(pool)} "
        f"(seed {seed}) leaves the terminals connected; drop fewer"
    )


def _connected(topology: Topology) -> bool:
    first = int(topology.terminals[0])
    forth = reachable(topology.nodes, topology.tail, topology.head, first)
    back = reachable(topology.nodes, topology.head, topology.tail, first)
    return bool((forth & back)[topology.terminals].all())


def _keeps_paths(topology: Topology, result: Topology, drawn: Ints) -> bool:
    """Return whether remaining terminals that had a path to each other still have one."""
    ends = topology.terminals
    if len(result.terminals) < len(ends):
        ends = ends[~np.isin(ends, drawn)]
    before = connected_pairs(topology.nodes, topology.tail, topology.head, ends)
    after = connected_pairs(result.nodes, result.tail, result.head, result.terminals)
    return bool((after | ~before).all())


def _links_from_to(topology: Topology, u: int, v: int) -> Mask:
    """Return a mask of the links from u to v; raise if there is none."""
    _check_node(topology, u)
    mask: Mask = (topology.tail == u) & (topology.head == v)
    if mask.any():
        return mask
    neighbours = np.unique(topology.head[topology.tail == u])
    raise TopologyError(
        f"{topology.name}: there is no link {_arc(topology, u, v)}; the links from "
        f"{topology.node_name(u)} lead to "
        f"{listed(map(topology.node_name, neighbours.tolist())) or 'no node'}"
    )


def _arc(topology: Topology, u: int, v: int) -> str:
    return f"{topology.node_name(u)} -> {topology.node_name(v)}"


def _check_node(topology: Topology, node: int) -> None:
    expected = f"expected one of 0..{topology.nodes - 1}"
    sound = 0 <= node < topology.nodes
    require(sound, topology.name, f"there is no node {node}; {expected}")


def _check_count(topology: Topology, count: int, available: int, kind: str) -> None:
    most = max(available, 0)
    sound = 0 <= count <= available
    require(sound, topology.name, f"cannot drop {count} of {most} {kind}; expected 0 to {most}")


def _check_positive(topology: Topology, quantity: str, value: float) -> None:
    sound = bool(np.isfinite(value)) and value > 0
    require(sound, topology.name, f"{quantity} is {value:g}; expected a positive finite number")


def _name_links(topology: Topology, links: Ints) -> str:
    arrow, noun = ("-", "cable") if topology.bidirectional else ("->", "link")
    pairs = rows(topology.tail[links], topology.head[links])
    ends = (f"{topology.node_name(u)}{arrow}{topology.node_name(v)}" for u, v in pairs)
    return f"{counted(len(links), noun)} {listed(ends)}"


def _name_nodes(topology: Topology, nodes: Ints) -> str:
    names = map(topology.node_name, nodes.tolist())
    return f"{counted(len(nodes), 'node')} {listed(names)}"
