"""Is there a better graph than the generalized Kautz graph? Often: it wastes ports on self-loops.

    python examples/kautz_or_better.py [NODES] [DEGREE]

The free ports of its nodes are joined in a ring. Then the heads of two links are swapped, again and
again, whenever all nodes together come no further apart. What is left is solved, and certified.
"""

import sys

import numpy as np

import alltoall
from alltoall.flows.bounds import regular_bound

SWAPS = 3000


def filled(nodes: int, degree: int) -> tuple[list[int], list[int]]:
    """Return the links of the generalized Kautz graph, with the ports of its self-loops in use."""
    kautz = alltoall.topology(f"genkautz:n={nodes},d={degree}")
    tail, head = kautz.tail.tolist(), kautz.head.tolist()
    free = [node for node in range(nodes) for _ in range(degree - tail.count(node))]
    return tail + free, head + free[1:] + free[:1]


def hops(nodes: int, tail: list[int], head: list[int]) -> float:
    """Return the distances between all nodes, summed: what they prove of the time, times links."""
    reach = np.eye(nodes, dtype=bool)
    step = reach.copy()
    step[tail, head] = True
    total = 0.0
    while not reach.all():
        total += nodes * nodes - reach.sum()
        further = reach @ step
        if (further == reach).all():
            return np.inf
        reach = further
    return total


def improved(nodes: int, tail: list[int], head: list[int]) -> list[int]:
    """Return heads after many swaps, none of which made the sum of distances larger."""
    random = np.random.default_rng(1)
    best = hops(nodes, tail, head)
    for _ in range(SWAPS):
        a, b = random.integers(len(tail), size=2)
        trial = list(head)
        trial[a], trial[b] = head[b], head[a]
        if tail[a] == trial[a] or tail[b] == trial[b]:
            continue
        found = hops(nodes, tail, trial)
        if found <= best:
            best, head = found, trial
    return head


def main(nodes: int, degree: int) -> None:
    """Compare the generalized Kautz graph with what swaps make of it."""
    kautz = alltoall.solve(f"genkautz:n={nodes},d={degree}")
    tail, head = filled(nodes, degree)
    head = improved(nodes, tail, head)
    links = [(u, v, 1.0) for u, v in zip(tail, head, strict=True)]
    better = alltoall.solve(alltoall.Topology.from_links("swapped", nodes, links))
    print(f"bound for any graph {float(regular_bound(nodes, degree)):8.4f}")
    print(f"generalized Kautz   {kautz.time:8.4f}, certified {kautz.bound:.4f}")
    print(f"after swaps         {better.time:8.4f}, certified {better.bound:.4f}")
    print("better" if better.time < kautz.bound else "not better")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]) if len(sys.argv) == 3 else (16, 4))
