"""DOR: dimension-ordered routing on meshes and tori.

Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
Trans. Comput. 1987: correct the coordinates one dimension after the other, each the shorter way
round. Half-way round a ring of even size both ways are as short; the pair then has two routes of
half the weight, one that goes up in every such dimension and one that goes down. What a dimension's
links carry depends on nothing but the way that is taken in it, so two routes split the load of
every dimension evenly, and a torus of equal sides and capacities runs at its distance bound.
"""

import math
import re

import numpy as np
from numba import njit

from a2aflow.errors import InputError
from a2aflow.flows.certificate import certify
from a2aflow.ir.arrays import Ints, starts_of
from a2aflow.ir.paths import Paths
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.routes.weights import routes_from_weights
from a2aflow.settings import RouteSettings


def route_dor(problem: Problem, _: RouteSettings) -> Routes:
    """Return the dimension-ordered routes of a whole torus or mesh."""
    topology = problem.topology
    wraps, dims = grid_of(topology)
    source, destination = problem.demand.pairs()
    begin, end = topology.terminals[source], topology.terminals[destination]
    offset, halfway = _offsets(wraps, dims, begin, end)
    tied = np.flatnonzero(halfway.any(axis=1))
    pair = np.concatenate((np.arange(len(source)), tied))
    moves = np.concatenate((offset, np.where(halfway, -offset, offset)[tied]))
    weight = problem.demand.of(source, destination)
    weight[tied] /= 2
    order = np.argsort(pair, kind="stable")
    pair, moves = pair[order], moves[order]
    start = starts_of(np.abs(moves).sum(axis=1))
    link = np.empty(int(start[-1]), dtype=np.int64)
    _walk(begin[pair], moves, np.array(dims), _step_links(topology, dims), start, link)
    _require_links(topology, link)
    paths = Paths(source[pair], destination[pair], start, link)
    return routes_from_weights(problem, paths, weight[pair], certify(problem, []), "dor")


def grid_of(topology: Topology) -> tuple[bool, tuple[int, ...]]:
    """Return whether the grid that the topology is named after wraps around, and its sides."""
    named = re.fullmatch(r"(torus|mesh):([0-9]+(?:x[0-9]+)*)", topology.name)
    if named is None:
        raise _not_a_grid(topology, f"it is named {topology.name!r}")
    dims = tuple(int(side) for side in named[2].split("x"))
    if math.prod(dims) != topology.nodes:
        found = f"{topology.nodes} nodes where the name says {math.prod(dims)}"
        raise _not_a_grid(topology, found)
    return named[1] == "torus", dims


def _not_a_grid(topology: Topology, found: str) -> InputError:
    return InputError(
        f"{topology.name}: {found}; dimension-ordered routing is defined for a whole torus:AxBxC "
        "or mesh:AxB only, choose another method"
    )


def _offsets(wraps: bool, dims: tuple[int, ...], begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return signed hops per pair and dimension, and where the other way is as short."""
    side = np.array(dims)
    here, there = (np.stack(np.unravel_index(node, dims), axis=1) for node in (begin, end))
    offset = (there - here).astype(np.int64)
    if not wraps:
        return offset, np.zeros_like(offset, dtype=np.bool_)
    up = offset % side
    # With two nodes on a line, up and down are one link.
    return np.where(2 * up > side, up - side, up), (2 * up == side) & (side > 2)


def _step_links(topology: Topology, dims: tuple[int, ...]) -> Ints:
    """Return the link one step down and up from each node in each dimension, or -1 for none.

    Shape [nodes, dimensions, 2]. Of parallel links the first one is taken.
    """
    keys = topology.tail * topology.nodes + topology.head
    known, first = np.unique(keys, return_index=True)
    grid = np.arange(topology.nodes).reshape(dims)
    table = np.empty((topology.nodes, len(dims), 2), dtype=np.int64)
    for axis in range(len(dims)):
        for way, shift in enumerate((1, -1)):
            wanted = (grid * topology.nodes + np.roll(grid, shift, axis)).ravel()
            place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            table[:, axis, way] = np.where(known[place] == wanted, first[place], -1)
    return table


def _require_links(topology: Topology, link: Ints) -> None:
    if (link < 0).any():
        raise _not_a_grid(topology, f"{int((link < 0).sum())} hops of its routes have no link")


@njit(cache=True)
def _walk(begin: Ints, moves: Ints, side: Ints, step: Ints, start: Ints, link: Ints) -> None:
    """Fill in the links of the paths that make these moves, one dimension after the other."""
    for path in range(len(begin)):
        node, place = begin[path], start[path]
        stride = len(step)
        for axis in range(len(side)):
            stride //= side[axis]
            way = 1 if moves[path, axis] > 0 else 0
            for _ in range(abs(moves[path, axis])):
                link[place] = step[node, axis, way]
                place += 1
                here = node // stride % side[axis]
                node += ((here + 2 * way - 1) % side[axis] - here) * stride
