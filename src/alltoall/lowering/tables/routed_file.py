"""Common part of all files of routes: order, ports, and the reconstruction of `Routes`.

Routes are written by source, then destination, in the order in which they came; their number within
a pair is the route id. The egress port of a link is its position among the links that leave its
node, in link-index order, from 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, InputError, LimitError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index, run_starts, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted

SAME = 1e-6
"""Relative difference within which the weights of a route and of its file are equal."""


@dataclass(frozen=True, eq=False)
class RoutedFile:
    """The contents of a file: the ends of each route, and the node and port of each hop.

    Ends are nodes; route r has the hops `start[r]` to `start[r + 1] - 1` in `node` and `port`. It
    carries `weight[r]` shards, or that share of its pair's demand if `shares`. It has a `layer`, or
    one per hop in `hop_layer`, or neither. `problem` and `certificate` are None unless the file has
    them; `facts` are further fields for a check to print.
    """

    kind: str
    name: str
    source: Ints
    destination: Ints
    start: Ints
    node: Ints
    port: Ints
    weight: Floats
    layer: Ints | None
    hop_layer: Ints | None = None
    shares: bool = False
    denominator: int | None = None
    problem: Problem | None = None
    certificate: Certificate | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def on(self, _: Problem) -> "RoutedFile":
        """Return the file with its routes, if they depend on the topology."""
        return self

    def route(self, index: int, topology: Topology | None = None) -> str:
        """Name a route for a message; the topology names its ends, the file only numbers them."""
        found = self.problem.topology if topology is None and self.problem else topology
        ends = (int(self.source[index]), int(self.destination[index]))
        source, destination = map(str, ends) if found is None else map(found.node_name, ends)
        return f"route {index} from node {source} to node {destination}"


def in_file_order(routes: Routes, rank: Ints | None = None) -> tuple[Routes, Ints]:
    """Sort routes by the ranks of source and destination; return also their former indices."""
    ends = (routes.destination, routes.source)
    order = np.lexsort(ends if rank is None else (rank[ends[0]], rank[ends[1]]))
    return routes.select(order), order


def pair_sizes(source: Ints, destination: Ints) -> Ints:
    """Return the number of routes of each pair, of routes in file order."""
    return np.diff(np.append(np.flatnonzero(run_starts(source, destination)), len(source)))


def pair_name(routes: Routes, route: int) -> str:
    """Name the ends of a route for a message."""
    ends = int(routes.source[route]), int(routes.destination[route])
    return routes.problem.topology.pair_name(*ends)


def ports_of(topology: Topology) -> Ints:
    """Return the egress port of every link."""
    order = np.argsort(topology.tail, kind="stable")
    port = np.empty(topology.links, dtype=np.int64)
    port[order] = inner_index(topology.out_degree)
    return port


def require_layers(routes: Routes) -> None:
    """Refuse routes without layers."""
    if routes.layers is None:
        raise InputError(
            f"the routes on {routes.problem.topology.name} have no layers; "
            "route again with the default layering"
        )


def one_layer_each(routes: Routes, fabric: str) -> Ints:
    """Return the layer of each route, for a fabric without layer changes."""
    require_layers(routes)
    if routes.layer is None:
        changing = np.flatnonzero(routes.changes_layer)
        raise LimitError(
            f"{counted(len(changing), 'route')} change layer on the way, the first "
            f"{pair_name(routes, int(changing[0]))}, but {fabric} has one layer per route; route "
            "again without change=true, or lower with --to routes"
        )
    return routes.layer


def check_room(routes: Routes, most: int) -> None:
    """Refuse more routes per pair than the fabric's tables hold."""
    found, ends = most_routes(routes)
    if found > most:
        # Deadlock-free layers only survive a cut in chunks.
        option = "--chunks" if routes.method == "deadlock-free" else "--max-routes"
        raise LimitError(
            f"{found} routes {ends}, but the fabric takes at "
            f"most {most} routes per destination; route again with {option} {most}, or, if "
            f"it takes more, lower with --to TARGET:max-routes={found}"
        )


def most_routes(routes: Routes) -> tuple[int, str]:
    """Return the largest number of routes of a pair, in file order, and the pair's name."""
    sizes = pair_sizes(routes.source, routes.destination)
    worst = int(np.argmax(sizes))
    return int(sizes[worst]), pair_name(routes, int(sizes[:worst].sum()))


def rebuild(file: RoutedFile, problem: Problem, certificate: Certificate | None) -> Routes:
    """Return the routes of a file on a topology.

    Hops that are no ports of the topology, or do not lead to the next one, are violations.
    """
    topology, file = problem.topology, file.on(problem)
    position = topology.position
    for each in (file.source, file.destination):
        wrong = (each >= len(position)) | (position[each % len(position)] < 0)
        for route in np.flatnonzero(wrong)[:1].tolist():
            fault = f"node {topology.node_name(int(each[route]))} is no terminal of the topology"
            raise VerificationError(file.name, [f"{file.route(route, topology)}: {fault}"])
    first = starts_of(topology.out_degree)
    by_node = np.argsort(topology.tail, kind="stable")
    known = file.node < topology.nodes
    node = np.where(known, file.node, 0)
    known &= file.port < topology.out_degree[node]
    link: Ints = by_node[first[node] + np.where(known, file.port, 0)]
    violations = list(_wrong_hops(file, topology, link, known))
    if violations:
        raise VerificationError(file.name, violations)
    ends = (topology.position[file.source], topology.position[file.destination])
    return Routes(
        problem=problem,
        source=ends[0],
        destination=ends[1],
        start=file.start,
        link=link,
        weight=file.weight * problem.demand.of(*ends) if file.shares else file.weight,
        certificate=certificate or Certificate(np.ones(topology.links), 0.0),
        method=file.kind,
        layer=file.layer,
        hop_layer=file.hop_layer,
        denominator=file.denominator,
    )


def _wrong_hops(
    file: RoutedFile, topology: Topology, link: Ints, known: NDArray[np.bool_]
) -> Iterator[str]:
    """Yield the first hop of each kind that is wrong, and how many there are."""
    follows = np.append(file.node[1:], 0)
    follows[file.start[1:] - 1] = file.destination
    heads = topology.head[link]
    for wrong in (~known, known & (heads != follows)):
        found = np.flatnonzero(wrong)
        more = f" (and {counted(len(found) - 1, 'more hop')})" if len(found) > 1 else ""
        for at in found[:1].tolist():
            route = int(np.searchsorted(file.start, at, side="right")) - 1
            ends = (int(end[at]) for end in (file.node, heads, follows))
            node, to, wanted = map(topology.node_name, ends)
            words = f"leads to node {to}; expected the next node, {wanted}"
            words = words if known[at] else "does not exist"
            port = f"hop {at - file.start[route]}: port {file.port[at]} of node {node}"
            yield f"{file.route(route, topology)}, {port} {words}{more}"
    for first in np.flatnonzero(file.node[file.start[:-1]] != file.source)[:1].tolist():
        yield f"{file.route(first, topology)} does not start at its source"


def differences(found: Routes, wanted: Routes) -> Iterator[str]:
    """Yield the difference between routes in file order and the saved routes."""
    ordered, _ = in_file_order(wanted)
    if found.count != ordered.count:
        yield f"{found.count} routes; expected the {ordered.count} of the saved routes"
        return
    hops = np.diff(found.start)
    wrong = (found.source != ordered.source) | (found.destination != ordered.destination)
    wrong |= hops != np.diff(ordered.start)
    if not wrong.any():
        other = found.link != ordered.link
        mine, saved = found.layer_of_link, ordered.layer_of_link
        if mine is not None and saved is not None:
            other |= mine != saved
        wrong[found.path_of_link[other]] = True
        wrong |= np.abs(found.weight - ordered.weight) > SAME * ordered.weight
    for route in np.flatnonzero(wrong)[:1]:
        yield (
            f"{int(wrong.sum())} routes differ from the saved ones; the first is route {route}, "
            f"{pair_name(found, int(route))}"
        )


def by_node(file: RoutedFile) -> RoutedFile:
    """Sort the routes of a file by the nodes at their ends."""
    order = np.lexsort((file.destination, file.source))
    hops = np.diff(file.start)[order]
    entries = np.repeat(file.start[:-1][order], hops) + inner_index(hops)
    changes: dict[str, Any] = {"start": starts_of(hops)}
    for which, keys in (
        (order, ("source", "destination", "weight", "layer")),
        (entries, ("node", "port", "hop_layer")),
    ):
        present = (key for key in keys if getattr(file, key) is not None)
        changes |= {key: getattr(file, key)[which] for key in present}
    return replace(file, **changes)


def require_order(file: RoutedFile, ids: Ints, where: str) -> None:
    """Refuse routes out of order, or whose ids do not count from 0 within their pair."""
    if not len(file.source):
        raise FormatError(f"{where}: has no routes; expected at least one")
    key = file.source * (int(file.destination.max()) + 1) + file.destination
    for route in np.flatnonzero(np.diff(key) < 0)[:1].tolist():
        expected = "expected routes by source and then by destination"
        raise FormatError(f"{where}: {file.route(route + 1)} is out of order; {expected}")
    expected_ids = inner_index(pair_sizes(file.source, file.destination))
    for route in np.flatnonzero(ids != expected_ids)[:1].tolist():
        problem = f"{file.route(route)} has id {ids[route]}"
        raise FormatError(f"{where}: {problem}; expected 0, 1, 2, ... within its pair")
