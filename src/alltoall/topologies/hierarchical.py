"""Complete and complete bipartite graphs, stars, Dragonfly, Megafly, the three-level fat tree."""

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import check_size, from_arcs, from_pairs, require, shape_name


def complete(n: int) -> Topology:
    """Build the complete graph: a link from every node to every other."""
    name = f"complete:{n}"
    require(n >= 1, name, f"there are {n} nodes; expected 2 or more")
    check_size(name, n, n * (n - 1))
    low, high = np.triu_indices(n, 1)
    return from_pairs(name, n, low.astype(np.int64), high.astype(np.int64))


def bipartite(parts: tuple[int, ...]) -> Topology:
    """Build the complete bipartite graph: every node of either part is linked to all of the other.

    The nodes of the first part come first.
    """
    name = f"bipartite:{shape_name(parts)}"
    expected = "expected two sizes of 1 or more, such as 4x4"
    sound = len(parts) == 2 and min(parts) >= 1
    require(sound, name, f"the parts are {shape_name(parts)}; {expected}")
    first, second = parts
    check_size(name, first + second, 2 * first * second)
    low, high = (axis.ravel() for axis in np.indices((first, second)))
    return from_pairs(name, first + second, low, first + high)


def switch(n: int, rate: float = 1.0) -> Topology:
    """Build a switch: `n` terminals, each with a link of `rate` to the one node between them."""
    return star(f"switch:n={n}" + (f",rate={rate:g}" if rate != 1 else ""), n, rate)


def star(name: str, n: int, rate: float) -> Topology:
    """Build terminals around one switch, which is the last node."""
    require(n >= 1, name, f"there are {n} terminals; expected 2 or more")
    check_size(name, n + 1, 2 * n)
    leaf = np.arange(n, dtype=np.int64)
    return from_pairs(name, n + 1, leaf, np.full(n, n), rate, terminals=leaf)


def dragonfly(a: int, h: int, g: int | None = None) -> Topology:
    """Build Dragonfly: `g` groups of `a` routers, each router with `h` global links.

    The routers are the terminals; router r of group i is node i a + r. The routers of a group
    are linked completely. The a h global ports of a group, port p at router p // h, follow the
    palm-tree arrangement: port p of group i goes to group i + 1 + (p mod (g - 1)) modulo g, and
    its far end is the port that leads back. The default g = a h + 1 joins every two groups by
    one link and has diameter 3; with fewer groups a h must be a multiple of g - 1, and every two
    are joined that many times. Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable
    Dragonfly topology", ISCA 2008; the arrangement is that of Camarero, Vallejo and Beivide,
    "Topological characterization of Hamming and Dragonfly networks and its implications on
    routing", ACM TACO 2014, with the groups counted upwards.
    """
    groups = a * h + 1 if g is None else g
    name = f"dragonfly:a={a},h={h},g={groups}"
    require(a >= 1 and h >= 1, name, "expected a and h of 1 or more")
    _require_groups(name, groups, a * h)
    check_size(name, a * groups, a * groups * (a - 1 + h))
    group, near, far = (axis.ravel() for axis in np.indices((groups, a, a)))
    global_tail, global_head = palm_tree(groups, a * h)
    tail = np.concatenate([(group * a + near)[near != far], global_tail // h])
    head = np.concatenate([(group * a + far)[near != far], global_head // h])
    return from_arcs(name, a * groups, tail, head)


def megafly(leaves: int, spines: int, h: int, g: int | None = None) -> Topology:
    """Build Megafly, or Dragonfly+: groups of leaf and spine switches; leaves are the terminals.

    Within a group every leaf switch is linked to every spine switch. The leaves, to which hosts are
    attached, are the terminals: leaf r of group i is node i leaves + r, and the spines follow in
    the same order. Global links join the spines of groups in the palm-tree arrangement, as in
    `dragonfly`. The default g = spines h + 1 joins every two groups once; leaves are at most 3
    hops apart. Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, "Dragonfly+: low cost
    topology for scaling datacenters", HiPINEB 2017; Flajslik, Borch and Parker, "Megafly: a
    topology for exascale systems", ISC 2018.
    """
    groups = spines * h + 1 if g is None else g
    name = f"megafly:leaves={leaves},spines={spines},h={h},g={groups}"
    require(min(leaves, spines, h) >= 1, name, "expected leaves, spines and h of 1 or more")
    _require_groups(name, groups, spines * h)
    check_size(name, (leaves + spines) * groups, spines * groups * (2 * leaves + h))
    group, leaf, spine = (axis.ravel() for axis in np.indices((groups, leaves, spines)))
    near, far = (groups * leaves + port // h for port in palm_tree(groups, spines * h))
    left = np.concatenate([group * leaves + leaf, near[near < far]])
    right = np.concatenate([groups * leaves + group * spines + spine, far[near < far]])
    terminals = np.arange(groups * leaves, dtype=np.int64)
    return from_pairs(name, (leaves + spines) * groups, left, right, terminals=terminals)


def fattree(k: int) -> Topology:
    """Build the three-level fat tree of switches with `k` ports; the hosts are the terminals.

    There are k pods of k/2 edge and k/2 aggregation switches. An edge switch has k/2 hosts and a
    link to every aggregation switch of its pod; aggregation switch j of every pod is linked to
    the core switches j k/2 .. j k/2 + k/2 - 1. Nodes are numbered hosts first, then edge,
    aggregation and core switches. Al-Fares, Loukissas and Vahdat, "A scalable, commodity data
    center network architecture", SIGCOMM 2008.
    """
    name = f"fattree:k={k}"
    require(k >= 2 and k % 2 == 0, name, f"k is {k}; expected an even number of 2 or more")
    half = k // 2
    hosts, layer = k * half * half, k * half
    nodes = hosts + 2 * layer + half * half
    check_size(name, nodes, 6 * hosts)
    pod, switch, port = (axis.ravel() for axis in np.indices((k, half, half)))
    edge = hosts + pod * half + switch
    aggregation = edge + layer
    terminals = np.arange(hosts, dtype=np.int64)
    left = np.concatenate([terminals, edge, aggregation])
    pods, cores = hosts + layer + pod * half + port, hosts + 2 * layer + switch * half + port
    return from_pairs(name, nodes, left, np.concatenate([edge, pods, cores]), terminals=terminals)


def _require_groups(name: str, groups: int, ports: int) -> None:
    expected = "expected g of 2 or more such that g - 1 divides them"
    sound = groups >= 2 and ports % (groups - 1) == 0
    require(sound, name, f"a group has {ports} global links; {expected}")


def palm_tree(groups: int, ports: int) -> tuple[Ints, Ints]:
    """Return the two ends of all links between groups; port p of group i is number i ports + p.

    Port p of group i goes to group i + 1 + (p mod (groups - 1)) modulo groups, and its far end is
    the port that leads back. Ports beyond the last full lap stay free.
    """
    used = ports // (groups - 1) * (groups - 1) if groups > 1 else 0
    group, port = (axis.ravel() for axis in np.indices((groups, used)))
    lap, offset = np.divmod(port, max(groups - 1, 1))
    far_group = (group + 1 + offset) % groups
    # Seen from there this group is 1 + offset behind, or groups - 1 - offset ahead.
    far_port = lap * (groups - 1) + (groups - 2 - offset)
    return group * ports + port, far_group * ports + far_port
