"""After a failure: new routes, starting from the last ones.

Routes over failed links or nodes must move. Moving only these is a minimal repair, and a poor one
if links were saturated: a node that lost a link is a bottleneck that other routes should avoid. So
the displaced routes take the cheapest paths, and then all routes respond to prices for some passes
(`placing.place`) until their time is within the gap of the bound. Then routes return to their old
paths, one by one, while the time stays within that gap, so that few move. The bound is the best of
the last lengths, which are valid on any graph, of the links at each node that lost one, and of the
prices during the search; if the gap is larger, some steps of the first-order method raise it.

Removed nodes keep the order of the others, so node v of the degraded network was node v + s, where
the shift s grows with v up to the number of removed nodes. A shift is possible if every link of the
node was a link before, for some possible shift of its other end; impossible shifts are struck out
until nothing changes, and if several remain, each is tried in turn.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.flows.exact import by_source
from alltoall.flows.first_order import raise_bound, search_from
from alltoall.flows.guess import Guess
from alltoall.flows.program import certify, whole_program
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import shortest_distances
from alltoall.placing.chunks import Chunks, Table, largest_load, path_room
from alltoall.placing.network import any_path, no_path
from alltoall.placing.place import SETTLED, place
from alltoall.routes.by_destination import METHOD as BY_DESTINATION
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import SolveSettings

NOWHERE = -1
"""The match of a new node or link."""

LEAST_LEFT = 0.5
"""The least share of links that the same network keeps."""

MOST_SHIFTS = 50_000_000
"""The most pairs of shifts of the ends of all links."""

MOST_TRIES = 200
"""The most tries if several shifts remain."""

Shifts = NDArray[np.bool_]
"""Whether each node may be shifted by each number."""


def require_same_network(old: Topology, new: Topology) -> None:
    """Raise unless one network is a large part of the other; capacities may differ."""
    node = matching_nodes(old, new)
    shared = int((matching_links(old, new, node) != NOWHERE).sum())
    if shared < max(min(old.links, new.links), LEAST_LEFT * max(old.links, new.links)):
        raise InputError(
            f"the answer to begin with is for {old.name}, with {old.nodes} nodes and {old.links} "
            f"links; {shared} of these are among the {new.links} of {new.name}, which has "
            f"{new.nodes} nodes. Expected an answer for the same network, before or after some of "
            "its links or nodes failed: give that, or leave it out (--from)"
        )


def matching_nodes(old: Topology, new: Topology) -> Ints:
    """Return the node of `old` for each node of `new`, or NOWHERE.

    Nodes of networks that are not part of one another keep their numbers.
    """
    gone = old.nodes - new.nodes
    every = np.arange(new.nodes, dtype=np.int64)
    if gone == 0:
        return every
    large, small = (old, new) if gone > 0 else (new, old)
    few = (abs(gone) + 1) ** 2 * min(old.links, new.links) <= MOST_SHIFTS
    shift = _find_shifts(large, small, abs(gone)) if few else None
    if gone < 0:
        back = np.full(new.nodes, NOWHERE, dtype=np.int64)
        back[np.arange(old.nodes) + (0 if shift is None else shift)] = np.arange(old.nodes)
        return back
    return every if shift is None else every + shift


def _find_shifts(old: Topology, new: Topology, gone: int) -> Ints | None:
    """Return a shift of each node that maps every link to a link, or None."""
    known = np.unique(old.tail * old.nodes + old.head)
    shift = np.arange(gone + 1)
    tail, head = (ends[:, None] + shift for ends in (new.tail, new.head))
    keys = tail[:, :, None] * old.nodes + head[:, None, :]
    fits = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    sends = [np.isin(np.arange(each.nodes), each.terminals) for each in (old, new)]
    may = sends[0][np.arange(new.nodes)[:, None] + shift] == sends[1][:, None]
    waiting, tries = [may], 0
    while waiting and tries < MOST_TRIES:
        may, tries = waiting.pop(), tries + 1
        if not _strike_out(new, fits, may):
            continue
        open_nodes = np.flatnonzero(may.sum(axis=1) > 1)
        if not len(open_nodes):
            return np.asarray(np.argmax(may, axis=1), dtype=np.int64)
        for each in np.flatnonzero(may[open_nodes[0]])[::-1]:
            only = may.copy()
            only[open_nodes[0]] = shift == each
            waiting.append(only)
    return None


def _strike_out(new: Topology, fits: Shifts, may: Shifts) -> bool:
    """Strike out impossible shifts, in place; return whether each node has one left."""
    while True:
        before = int(may.sum())
        for ends, others, way in (
            (new.tail, new.head, fits),
            (new.head, new.tail, fits.swapaxes(1, 2)),
        ):
            possible = (way & may[others][:, None, :]).any(axis=2)
            np.logical_and.at(may, ends, possible)
        least = np.maximum.accumulate(np.argmax(may, axis=1))
        last = may.shape[1] - 1 - np.argmax(may[:, ::-1], axis=1)
        most = np.minimum.accumulate(last[::-1])[::-1]
        shift = np.arange(may.shape[1])
        may &= (shift >= least[:, None]) & (shift <= most[:, None])
        if not may.any(axis=1).all():
            return False
        if int(may.sum()) == before:
            return True


def matching_links(old: Topology, new: Topology, node: Ints) -> Ints:
    """Return the link of `old` for each link of `new`, or NOWHERE.

    Parallel links match in their order.
    """
    ends = {key: link for link, key in enumerate(_rank_links(old.tail, old.head))}
    found = (ends.get(key, NOWHERE) for key in _rank_links(node[new.tail], node[new.head]))
    return np.fromiter(found, dtype=np.int64, count=new.links)


def _rank_links(tail: Ints, head: Ints) -> list[tuple[int, int, int]]:
    """Return the ends of each link, and the number of earlier links with the same ends."""
    order = np.lexsort((head, tail))
    pairs = np.stack((tail, head), axis=1)[order]
    first = np.flatnonzero(np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1)))
    rank = np.empty(len(tail), dtype=np.int64)
    rank[order] = inner_index(np.diff(np.append(first, len(tail))))
    return list(zip(tail.tolist(), head.tolist(), rank.tolist(), strict=True))


RAISES, STEPS_OF_A_RAISE = 3, 150
"""Most attempts to raise the bound, and the steps of each.

They are so few that no flow is made exact on the way. `benchmarks/scale.py` measures it.
"""

MOST_RAISED = 20_000_000
"""Flow variables up to which steps raise the bound."""

ROUNDING = 1e-9
"""Relative rounding error of sums of loads."""


@dataclass(frozen=True, eq=False)
class Renewed:
    """New routes, and numbers to compare them with.

    `repaired` is the time if only displaced routes move, `unserved` the share of the demand that
    the unchanged routes no longer deliver, and `moved` the number of changed routes.
    """

    routes: Routes
    repaired: float
    unserved: float
    moved: int

    def summary(self) -> dict[str, Any]:
        """Return the losses of the last routes, and how many moved, as plain values."""
        loss = self.repaired / self.routes.bound - 1 if self.routes.bound > 0 else None
        return {"unserved": self.unserved, "repaired_gap": loss, "moved": self.moved}


def renew_routes(problem: Problem, last: Routes, settings: SolveSettings) -> Renewed:
    """Return routes for a problem a little different from the last one."""
    cut, source, destination, table = _carried_over(problem, last, _most_hops(problem))
    proof = certify(problem, _lengths(problem, last))
    displaced, before = table[:, 0] == NOTHING, table.copy()
    repaired, best, proof = _responded(problem, (source, destination), cut, table, proof, settings)
    best = _moved_back(problem.topology, cut, before, best, proof.bound, settings)
    paths = Paths.from_table(source, destination, best)
    paths, weight = paths.merge_equal(cut.size)
    # Routes that move need not go on together where they meet.
    method = "single" if last.method == BY_DESTINATION else last.method
    routes = routes_from_weights(problem, paths, weight, proof, method, last.denominator)
    return Renewed(
        routes,
        repaired=repaired,
        unserved=float(cut.size[displaced].sum() / cut.size.sum()),
        moved=int((before != best).any(axis=1).sum()),
    )


def _moved_back(
    topology: Topology,
    cut: Chunks,
    before: Table,
    table: Table,
    bound: float,
    settings: SolveSettings,
) -> Table:
    """Return paths after moving chunks back to their last paths within the gap.

    No further chunk can move back alone. If the gap is not reached, the time is kept. Chunks with
    most room go first.
    """
    table, used = table.copy(), table != NOTHING
    size = np.repeat(cut.size, used.sum(axis=1))
    load = np.bincount(table[used], size, minlength=topology.links)
    limit = max(bound * (1 + settings.gap), float((load / topology.capacity).max()))
    room = limit * (1 + ROUNDING) * topology.capacity - load
    moved = np.flatnonzero((before != table).any(axis=1) & (before[:, 0] != NOTHING))
    while len(moved) and not settings.out_of_time():
        least = np.where(before[moved] != NOTHING, room[before[moved]], np.inf).min(axis=1)
        moved = moved[np.argsort(-least, kind="stable")]
        stays = np.ones(len(moved), dtype=np.bool_)
        for at, row in enumerate(moved):
            new, old = (each[row][each[row] != NOTHING] for each in (table, before))
            room[new] += cut.size[row]
            stays[at] = (room[old] < cut.size[row]).any()
            room[new if stays[at] else old] -= cut.size[row]
            if not stays[at]:
                table[row] = before[row]
        if stays.all():
            break
        moved = moved[stays]
    return table


def last_places(routes: Routes, last: Routes) -> Ints:
    """Return the index of each route among the last ones, NOTHING for moved ones."""
    old, new = last.problem.topology, routes.problem.topology
    node = matching_nodes(old, new)
    source, destination = (
        old.position[node[new.terminals[each]]] for each in (routes.source, routes.destination)
    )
    link = matching_links(old, new, node)[routes.link]
    _, same = Paths.join([last, Paths(source, destination, routes.start, link)]).equal()
    place = np.full(int(same.max()) + 1, NOTHING, dtype=np.int64)
    place[same[: last.count]] = np.arange(last.count)
    return place[same[last.count :]]


def count_moved(routes: Routes, last: Routes) -> int:
    """Return the number of routes on new paths."""
    return int((last_places(routes, last) == NOTHING).sum())


def _responded(
    problem: Problem,
    ends: tuple[Ints, Ints],
    cut: Chunks,
    table: Table,
    proof: Certificate,
    settings: SolveSettings,
) -> tuple[float, Table, Certificate]:
    """Return the time of the minimal repair, the paths after all respond, and their proof."""

    def report(index: int, time: float) -> None:
        above = time / proof.bound - 1
        settings.report(f"moving routes: pass {index}, {above:.2%} above the bound")

    repaired, network = 0.0, any_path(problem.topology)
    params = replace(SETTLED, threads=settings.workers)
    for _ in range(2):  # Few rounds mostly do; if not, as many follow.
        goal = proof.bound * (1 + settings.gap)
        placed = place(network, cut, goal, params, table, settings.out_of_time, report)
        if placed is None:
            raise no_path(problem.topology)
        table = placed.table
        if not repaired:
            before = Paths.from_table(*ends, placed.repaired)
            repaired = largest_load(problem.topology, before, cut.size)
        # Mean prices over some of the rounds: none is always the best.
        count = len(placed.prices)
        parts = [placed.prices[count * low // 6 : count * (low + 2) // 6] for low in range(5)]
        proof = certify(
            problem, [proof.lengths, *(np.mean(part, axis=0) for part in parts if part)]
        )
        paths = Paths.from_table(*ends, table)
        enough = largest_load(problem.topology, paths, cut.size) / (1 + settings.gap)
        program = whole_program(problem, by_source(problem))
        if proof.bound < enough and program.variables <= MOST_RAISED:
            # Some steps of the first-order method, from these loads and lengths, raise the bound.
            coarse = replace(settings, gap=max(settings.gap, COARSE_BOUND_GAP))
            guess = Guess(program.volumes_of(paths, cut.size), proof.lengths)
            search = search_from(program, coarse, guess)
            for _ in range(RAISES):
                if search.bound >= enough or settings.out_of_time():
                    break
                raise_bound(search, enough, STEPS_OF_A_RAISE)
            proof = Certificate(search.best_lengths, search.bound)
        if enough <= proof.bound:
            break
    return repaired, table, proof


def _carried_over(problem: Problem, last: Routes, hops: int) -> tuple[Chunks, Ints, Ints, Table]:
    """Return a chunk per last route, and per pair without one, with its surviving path.

    They are sorted by their start; a path with a failed link is an empty row.
    """
    new, old = problem.topology, last.problem.topology
    node = matching_nodes(old, new)
    known = np.flatnonzero(node != NOWHERE)
    new_link = _inverse(matching_links(old, new, node), old.links)
    new_node = np.full(old.nodes, NOWHERE, dtype=np.int64)
    new_node[node[known]] = known
    place = _inverse(new.terminals, new.nodes)
    ends = [
        np.where(at != NOWHERE, place[at], NOWHERE)
        for at in (new_node[old.terminals[each]] for each in (last.source, last.destination))
    ]
    wanted = problem.demand.of(np.maximum(ends[0], 0), np.maximum(ends[1], 0))
    stays = np.flatnonzero((ends[0] != NOWHERE) & (ends[1] != NOWHERE) & (wanted > 0))
    size = (last.weight / last.problem.demand.of(last.source, last.destination) * wanted)[stays]
    old_table = last.table()[stays]
    table = np.where(old_table == NOTHING, NOTHING, new_link[old_table])
    table[((table == NOTHING) & (old_table != NOTHING)).any(axis=1)] = NOTHING
    wants, terminals = problem.demand.pairs(), len(new.terminals)
    there = ends[0][stays] * terminals + ends[1][stays]
    without = ~np.isin(wants[0] * terminals + wants[1], there)
    fresh = [each[without] for each in wants]
    source, destination = (np.concatenate((ends[side][stays], fresh[side])) for side in range(2))
    size = np.concatenate((size, problem.demand.of(*fresh)))
    width = old_table.shape[1]  # Those of chunks may pass a switch more than once.
    room = max(width, path_room(max(hops, width), new.nodes - 1))
    whole = np.full((len(source), room), NOTHING, dtype=np.int32)
    whole[: len(stays), :width] = table
    order = np.argsort(new.terminals[source], kind="stable")
    source, destination = source[order], destination[order]
    cut = Chunks(new.terminals[source], new.terminals[destination], size[order])
    return cut, source, destination, whole[order]


def _inverse(forward: Ints, count: int) -> Ints:
    """Return the index of each of `count` numbers in `forward`, or NOWHERE."""
    back = np.full(count, NOWHERE, dtype=np.int64)
    there = np.flatnonzero(forward != NOWHERE)
    back[forward[there]] = there
    return back


def _most_hops(problem: Problem) -> int:
    """Return the hops between the furthest pair; refuse pairs without a path."""
    topology, (source, destination) = problem.topology, problem.demand.pairs()
    starts = topology.terminals[problem.sources]
    hops = shortest_distances(topology, np.ones(topology.links), starts)
    apart = hops[np.searchsorted(problem.sources, source), topology.terminals[destination]]
    lost = np.flatnonzero(~np.isfinite(apart))
    if len(lost):
        ends = (topology.terminal_name(int(each[lost[0]])) for each in (source, destination))
        raise InputError(
            f"{topology.name}: no path from {' to '.join(ends)} any more; expected a topology that "
            "still connects all pairs"
        )
    return int(apart.max())


def _lengths(problem: Problem, last: Routes) -> list[Floats]:
    """Return the last lengths, and lengths of 1 on the links at each node that lost some."""
    new, old = problem.topology, last.problem.topology
    node = matching_nodes(old, new)
    link = matching_links(old, new, node)
    lengths = np.full(new.links, last.certificate.lengths.mean())
    lengths[link != NOWHERE] = last.certificate.lengths[link[link != NOWHERE]]
    known, cuts = node != NOWHERE, [lengths]
    for degree, before, ends in (
        (new.out_degree, old.out_degree, new.tail),
        (new.in_degree, old.in_degree, new.head),
    ):
        fewer = np.flatnonzero(known & (degree < before[np.maximum(node, 0)]))
        cuts += [(ends == each).astype(np.float64) for each in fewer]
    return cuts
