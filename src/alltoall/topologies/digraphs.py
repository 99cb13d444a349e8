"""Digraphs given by arithmetic: circulant, de Bruijn and Kautz, and both of any size."""

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, listed
from alltoall.topologies.parts import check_size, from_arcs, from_pairs, power, require, shape_name


def circulant(n: int, jumps: tuple[int, ...], directed: bool = False) -> Topology:
    """Build the circulant graph: node v has links to v + j modulo n for every jump j.

    Links go both ways, a jump of n/2 giving one link each way, unless `directed` asks for
    the forward links only. If n and the jumps share a factor the result is not connected.
    Elspas and Turner, "Graphs with circulant adjacency matrices", J. Comb. Theory 1970.
    """
    name = f"circulant:n={n},jumps={shape_name(jumps)}" + (",directed=true" if directed else "")
    require(n >= 2, name, f"n is {n}; expected 2 or more")
    largest = n - 1 if directed else n // 2
    require(
        len(set(jumps)) == len(jumps) > 0 and 1 <= min(jumps) <= max(jumps) <= largest,
        name,
        f"the jumps are {shape_name(jumps)}; expected distinct numbers from 1 to {largest}",
    )
    check_size(name, n, n * len(jumps) * (1 if directed else 2))
    tail = np.repeat(np.arange(n, dtype=np.int64), len(jumps))
    step = np.tile(np.array(jumps, dtype=np.int64), n)
    head = (tail + step) % n
    if directed:
        return from_arcs(name, n, tail, head)
    once = (2 * step < n) | (tail < head)
    return from_pairs(name, n, tail[once], head[once])


def debruijn(d: int, k: int) -> Topology:
    """Build the de Bruijn digraph B(d, k) on the d^k words of k letters from an alphabet of d.

    A word has links to the words made by dropping its first letter and appending any letter:
    v -> d v + a modulo d^k for a = 0..d-1. The d self-loops, at the words of one repeated
    letter, are dropped with a note; `gendebruijn` can use their ports. De Bruijn, "A combinatorial
    problem", 1946.
    """
    name = f"debruijn:d={d},k={k}"
    require(d >= 2 and k >= 1, name, "expected d of 2 or more and k of 1 or more")
    nodes = power(d, k)
    check_size(name, nodes, nodes * d)
    tail, letter = np.divmod(np.arange(nodes * d, dtype=np.int64), d)
    head = (d * tail + letter) % nodes
    return _settle_loops(name, nodes, tail, head, f"gendebruijn:n={nodes},d={d},rewire=true")


def gendebruijn(n: int, d: int, rewire: bool = False) -> Topology:
    """Build the generalized de Bruijn digraph on any number of nodes, of any degree.

    Node v has links to d v + a modulo n for a = 0..d-1, so the diameter is at most the least k with
    d^k >= n; for n = d^k it is `debruijn`. Parallel links stay and self-loops are dropped or, with
    `rewire`, their ports used, as in `genkautz`. Imase and Itoh, "Design to minimize diameter on
    building-block network", IEEE Trans. Comput. 1981; Reddy, Pradhan and Kuhl, "Directed graphs
    with minimum diameter and maximal connectivity", 1980.
    """
    name = f"gendebruijn:n={n},d={d}" + (",rewire=true" if rewire else "")
    require(n >= 2 and d >= 1, name, "expected n of 2 or more and d of 1 or more")
    check_size(name, n, n * d)
    tail, choice = np.divmod(np.arange(n * d, dtype=np.int64), d)
    return _settle_loops(name, n, tail, (d * tail + choice) % n, "rewire=true", rewire)


def kautz(d: int, k: int) -> Topology:
    """Build the Kautz digraph K(d, k): degree d, diameter k, d^k + d^(k-1) nodes.

    Nodes are the words of k letters from an alphabet of d + 1 in which neighbouring letters
    differ, in lexicographic order; a word has links to the words made by dropping its first
    letter and appending any letter but its last. Kautz, "Bounds on directed (d, k) graphs", 1968.
    """
    name = f"kautz:d={d},k={k}"
    require(d >= 1 and k >= 1, name, "expected d and k of 1 or more")
    block = power(d, k - 1)
    nodes = (d + 1) * block
    check_size(name, nodes, nodes * d)
    tail, letter = np.divmod(np.arange(nodes * d, dtype=np.int64), d)
    if k == 1:
        return from_arcs(name, nodes, tail, letter + (letter >= tail))
    # A word is its first letter followed by k - 1 digits below d: each is the rank of the next
    # letter among the d that differ from the one before.
    first, digits = np.divmod(tail, block)
    rank, rest = np.divmod(digits, block // d)
    second = rank + (rank >= first)
    return from_arcs(name, nodes, tail, second * block + rest * d + letter)


def genkautz(n: int, d: int, rewire: bool = False) -> Topology:
    """Build the generalized Kautz digraph on any number of nodes, of any degree.

    Node v has links to -(d v + a) modulo n for a = 1..d, so every in-degree and out-degree is d.
    Where two of a node's d links have the same head, which is the rule for n < d, they stay
    parallel links. Self-loops carry no traffic and are dropped with a note, unless `rewire`
    asks that their ports be used: the looped nodes are then linked with one another, and where
    one node has more loops than all the others together, each loop left over is spliced into
    a link a -> b elsewhere, which becomes a -> v -> b. Every degree is then exactly d again. For
    n = 64 and d = 4 that is 256 links in place of 252, and an optimum of 45.33 in place of 46.07.
    Imase and Itoh, "A design for directed graphs with minimum diameter", IEEE Trans. Comput. 1983.
    """
    name = f"genkautz:n={n},d={d}" + (",rewire=true" if rewire else "")
    require(n >= 2 and d >= 1, name, "expected n of 2 or more and d of 1 or more")
    check_size(name, n, n * d)
    tail, choice = np.divmod(np.arange(n * d, dtype=np.int64), d)
    return _settle_loops(name, n, tail, -(d * tail + choice + 1) % n, "rewire=true", rewire)


def _settle_loops(
    name: str, n: int, tail: Ints, head: Ints, cure: str, rewire: bool = False
) -> Topology:
    """Build a digraph without self-loops: rewire them, or drop them and note the cure."""
    keep = tail != head
    if keep.all():
        return from_arcs(name, n, tail, head)
    if rewire:
        tail, head, note = _rewire(tail[keep], head[keep], tail[~keep])
        return from_arcs(name, n, tail, head, notes=(note,))
    degree = np.bincount(tail[keep], minlength=n)
    notes = (
        f"dropped {_describe(tail[~keep])}; out-degrees are now {degree.min()} to {degree.max()}",
        f"{cure} uses their ports: {len(tail)} links in place of {keep.sum()}",
    )
    return from_arcs(name, n, tail[keep], head[keep], notes=notes)


def _describe(loops: Ints) -> str:
    where = np.unique(loops)
    nodes = counted(len(where), "node")
    return f"{counted(len(loops), 'self-loop')} at {nodes} ({listed(where)})"


def _rewire(tail: Ints, head: Ints, loops: Ints) -> tuple[Ints, Ints, str]:
    """Turn the self-loops at the nodes `loops` into links; return all links and a note."""
    count = np.bincount(loops)
    busiest = int(count.argmax())
    excess = max(0, 2 * int(count[busiest]) - len(loops))
    # Links away from the busiest node, first those that make no parallel link with it. There are
    # always enough: all degrees are d, so they are at least (n - 2) d more than the loops.
    away = np.flatnonzero((tail != busiest) & (head != busiest))
    into, out_of = tail[head == busiest], head[tail == busiest]
    parallel: NDArray[np.bool_] = np.isin(tail[away], into) | np.isin(head[away], out_of)
    spliced = away[np.argsort(parallel, kind="stable")[:excess]]
    # The other looped nodes are linked with one another. Sorted, equal nodes lie together in runs
    # of at most half the length, so the longest run further on is always a different node.
    others = np.sort(np.delete(loops, np.flatnonzero(loops == busiest)[:excess]))
    longest = int(np.bincount(others, minlength=1).max())
    new_tail = np.concatenate([tail, np.full(excess, busiest, dtype=np.int64), others])
    new_head = np.concatenate([head, head[spliced], np.roll(others, -longest)])
    new_head[spliced] = busiest
    into = "into links between them"
    if excess:
        into = f"{len(others)} {into}, {excess} by splicing node {busiest} into other links"
    return new_tail, new_head, f"rewired {_describe(loops)}{': ' if excess else ' '}{into}"
