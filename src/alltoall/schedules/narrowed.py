"""Links no wider than what can come to them, so that a step loads them evenly.

Six links behind a NIC that four of them fill are never all busy. An optimal schedule may still have
three of them full in one step and the others in the next; but a NIC, or TCP, shares itself evenly
among whatever is under way, and the full ones end late. Narrow links leave only schedules that load
them as a NIC does.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, reachable
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


def narrowed(problem: Problem) -> Problem:
    """Return the problem with links that get their share of what a switch or NIC can pass on.

    The problem itself, if that is all that they have.
    """
    capacity = _shares(problem.topology)
    if np.all(capacity >= problem.topology.capacity * (1 - 1e-9)):
        return problem
    narrow = problem.topology.changed("links are as wide as what comes to them", capacity=capacity)
    return replace(problem, topology=narrow)


def _shares(topology: Topology) -> Floats:
    """Return what a link carries if both its ends share out evenly what they can pass on.

    Links that are on no path between terminals take no share, and keep their capacity.
    """
    nodes, capacity = topology.nodes, topology.capacity
    used = _on_paths(topology)
    entering = np.bincount(topology.head, capacity * used, nodes)
    leaving = np.bincount(topology.tail, capacity * used, nodes)
    passed = np.minimum(entering, leaving)
    # Terminals make and take what they send: nothing has to pass them.
    passing = topology.position < 0
    out, into = np.ones(nodes), np.ones(nodes)
    np.divide(passed, leaving, out=out, where=passing & (leaving > 0))
    np.divide(passed, entering, out=into, where=passing & (entering > 0))
    # The wider of both shares: one end may have fewer links to share with.
    share: Floats = np.maximum(
        np.where(passing[topology.tail], out[topology.tail], 0.0),
        np.where(passing[topology.head], into[topology.head], 0.0),
    )
    ends = passing[topology.tail] | passing[topology.head]
    return np.where(ends & used, share, 1.0) * capacity


def _on_paths(topology: Topology) -> NDArray[np.bool_]:
    """Return a mask of the links from where a terminal can be reached, and that one reaches."""
    nodes, tail, head = topology.nodes, topology.tail, topology.head
    begun = reachable(nodes, tail, head, topology.terminals)
    ended = reachable(nodes, head, tail, topology.terminals)
    return np.asarray(begun[tail] & ended[head])
