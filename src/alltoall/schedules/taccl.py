"""TACCL: routing, ordering and contiguity, by two integer programs and a greedy order between.

Shah, Chidambaram, Cowan, Maleki, Musuvathi, Mytkowicz, Nelson, Saarikivi and Singh, "TACCL: Guiding
collective algorithm synthesis using communication sketches", NSDI 2023; here without a sketch.
A link l takes alpha + size[c] / capacity[l] for chunk c, which is its weight in shortest paths.

1. Routing ignores the order of chunks. sent[c, l] is 1 if c crosses l, on its shortest paths only:

    minimise    T
    subject to  B sent[c]  =  1 at the destination of c, 0 elsewhere but at its source   for every c
                sum over c of (alpha + size[c] / capacity[l]) sent[c, l]  <=  T          for every l

2. Ordering is greedy: the next hop to send has the longest remaining path, then the earliest start,
then the shortest path so far.

3. Contiguity keeps the order on every link. Chunks k and k + 1 of a link may be joined (y[k] = 1),
   at most `MOST_JOINED` of them: they start together, pay one alpha, and arrive together:

    minimise    T
    subject to  p[k] >= start[k] + alpha + w[k],  p[k+1] >= p[k] + w[k+1]  if y[k]
                end[k] >= p[k],  end[k] >= end[k+1]  and  start[k+1] = start[k]  if y[k]
                start[k+1] >= end[k]  unless y[k]
                start at the next hop >= end,  T >= end

   Without alpha nothing is gained by joining, and the order alone decides.

A step of the schedule is a level of the order: a chunk's next hop, and the next chunks of a link,
come in a later step. TACCL's own time is that of `simulate`, in dataflow.
"""

import heapq
import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.errors import InputError, TimeLimitError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.lp.highs import mip
from alltoall.lp.program import Entries, LinearProgram, least_time, sparse_matrix
from alltoall.paths.shortest import shortest_distances
from alltoall.schedules.chunks import CutShards, require_hosts
from alltoall.settings import SolveSettings

DEFAULT_SECONDS = 1800.0
"""Time limit of TACCL's programs, if a caller has none."""

MOST_JOINED = 6
"""Most chunks sent as one, as in TACCL."""

ROUTING_SHARE = 0.7
"""The share of the time that routing may take if contiguity is an integer program too."""

MOST_VARIABLES = 2_000_000
"""Variables above which routing is refused; solvers end long before."""

MOST_ENTRIES = 30_000_000
"""Pairs times links up to which shortest paths are listed."""


@dataclass(frozen=True, eq=False)
class Hops:
    """The routes: hop h takes chunk `chunk[h]` over `link[h]` in `takes[h]`, in a chunk's order."""

    chunk: Ints
    link: Ints
    takes: Floats
    alpha: float

    @cached_property
    def last(self) -> list[bool]:
        """Whether a hop is its chunk's last one."""
        return np.append(np.diff(self.chunk) != 0, True).tolist()

    @cached_property
    def first(self) -> Ints:
        """The first hop of each chunk."""
        return np.flatnonzero(np.diff(self.chunk, prepend=-1)).astype(np.int64)


def synthesise(
    problem: Problem,
    chunks: int = 1,
    alpha: float = 0.0,
    settings: SolveSettings | None = None,
) -> Schedule:
    """Return TACCL's schedule of `chunks` chunks per shard, for a problem in normal units.

    `alpha` is the latency of a send, in units of time. Routing ends with the best routes found at
    the time limit; raise TimeLimitError if there are none.
    """
    require_hosts(problem.topology, "TACCL")
    settings = settings or SolveSettings()
    if settings.time_limit is None:
        settings = settings.limited(DEFAULT_SECONDS)
    cut = CutShards.of(problem, chunks)
    hops = _route(problem, *cut.ends, cut.size, alpha, settings)
    order, makespan = order_hops(hops)
    joined = join_hops(hops, order, makespan, settings) if alpha else np.zeros(len(order), np.bool_)
    step = _levels(hops, order, joined)
    by_step = np.lexsort((hops.link, hops.chunk, step))
    return cut.schedule(step[by_step], hops.chunk[by_step], hops.link[by_step], "taccl")


def _route(
    problem: Problem, start: Ints, end: Ints, size: Floats, alpha: float, settings: SolveSettings
) -> Hops:
    """Return the routes of the first program."""
    topology = problem.topology
    chunk, link, come = _useful(problem, start, end, size, alpha)
    takes = alpha + size[chunk] / topology.capacity[link]
    program = _routing_program(problem, start, end, chunk, link, takes)
    settings.report(f"taccl: routing, {program.size:,} variables")
    left = settings.seconds_left() or 0.0
    limit = left * (ROUTING_SHARE if alpha else 1.0)
    result = mip(program, replace(settings.lp_settings(), tolerance=settings.gap, time_limit=limit))
    if result.x is None:
        raise TimeLimitError(
            f"{topology.name}: {settings.why_late()} came before any routes of {len(start):,} "
            "chunks; allow more time, or choose another method: TACCL is for some 30 nodes"
        )
    sent = np.flatnonzero(result.x[:-1] > 0.5)
    sent = sent[np.lexsort((come[sent], chunk[sent]))]
    return Hops(chunk[sent], link[sent], takes[sent], alpha)


def _useful(
    problem: Problem, start: Ints, end: Ints, size: Floats, alpha: float
) -> tuple[Ints, Ints, Floats]:
    """Return chunk, link and distance of every variable: the links on shortest paths of the chunk.

    Distances are for a chunk of median size.
    """
    topology = problem.topology
    weight = alpha + np.median(size) / topology.capacity
    pairs, place = np.unique(start * topology.nodes + end, return_inverse=True)
    if len(pairs) * topology.links > MOST_ENTRIES or len(start) > MOST_VARIABLES:
        raise InputError(
            f"{topology.name}: {len(start):,} chunks of {len(pairs):,} pairs on {topology.links:,} "
            f"links; expected at most {MOST_ENTRIES:,} pairs times links and {MOST_VARIABLES:,} "
            "chunks: choose another method, TACCL is for some 30 nodes"
        )
    distance = shortest_distances(topology, weight, np.arange(topology.nodes))
    onto, beyond = distance[:, topology.tail] + weight, distance[topology.head].T
    sources, ends = np.divmod(pairs, topology.nodes)
    least = distance[sources, ends][:, None] * (1 + 1e-9)
    links = [np.flatnonzero(row) for row in onto[sources] + beyond[ends] <= least]
    if sum(len(links[each]) for each in place.tolist()) > MOST_VARIABLES:
        raise InputError(
            f"{topology.name}: more than {MOST_VARIABLES:,} variables for the routes of "
            f"{len(start):,} chunks; expected fewer: choose another method, or fewer chunks"
        )
    count = np.array([len(each) for each in links])[place]
    chunk, link = np.repeat(np.arange(len(start)), count), np.concatenate([links[p] for p in place])
    return chunk, link, distance[start[chunk], topology.tail[link]]


def _routing_program(
    problem: Problem, start: Ints, end: Ints, chunk: Ints, link: Ints, takes: Floats
) -> LinearProgram:
    """Build the first program: rows of chunks at nodes, then of links; the last variable is T."""
    topology, size = problem.topology, len(chunk)
    keys = np.concatenate(
        (chunk * topology.nodes + topology.head[link], chunk * topology.nodes + topology.tail[link])
    )
    keep = keys % topology.nodes != np.tile(start[chunk], 2)
    known, row = np.unique(keys[keep], return_inverse=True)
    wanted = (known % topology.nodes == end[known // topology.nodes]).astype(np.float64)
    balance = Entries(np.repeat((1.0, -1.0), size)[keep], row, np.tile(np.arange(size), 2)[keep])
    load = Entries(takes, link, np.arange(size))
    program = least_time(balance, wanted, load, np.ones(topology.links))
    return replace(program, integer=np.append(np.ones(size, np.bool_), False))


def order_hops(hops: Hops) -> tuple[Ints, float]:
    """Return all hops in greedy order, and the last arrival."""
    takes, link = hops.takes.tolist(), hops.link.tolist()
    come = np.cumsum(hops.takes) - hops.takes
    come -= come[hops.first][hops.chunk]
    to_go = np.bincount(hops.chunk, hops.takes)[hops.chunk] - come
    arrived, free = dict.fromkeys(hops.chunk.tolist(), 0.0), dict.fromkeys(link, 0.0)

    def key(hop: int) -> tuple[float, float, float, int]:
        start = max(arrived[int(hops.chunk[hop])], free[link[hop]])
        return (-round(float(to_go[hop]), 9), start, float(come[hop]), hop)

    waiting = [key(hop) for hop in hops.first.tolist()]
    heapq.heapify(waiting)
    order: list[int] = []
    while waiting:
        hop = waiting[0][-1]
        now = key(hop)
        if now != waiting[0]:  # Its link was taken since; keys only grow.
            heapq.heapreplace(waiting, now)
            continue
        heapq.heappop(waiting)
        order.append(hop)
        ends = now[1] + takes[hop]
        arrived[int(hops.chunk[hop])] = free[link[hop]] = ends
        if not hops.last[hop]:
            heapq.heappush(waiting, key(hop + 1))
    return np.array(order, dtype=np.int64), max(arrived.values())


def _queues(hops: Hops, order: Ints) -> list[list[int]]:
    """Return the hops of each link in order, as places in `order`."""
    links = hops.link[order]
    by_link = np.argsort(links, kind="stable")
    cuts = np.flatnonzero(np.diff(links[by_link])) + 1
    return [each.tolist() for each in np.split(by_link, cuts)]


def join_hops(hops: Hops, order: Ints, makespan: float, settings: SolveSettings) -> np.ndarray:
    """Return for each place of the order whether its hop is joined with the next of its link.

    This is the second program; without an answer in time nothing is joined.
    """
    count, alpha = len(order), hops.alpha
    pairs = [pair for queue in _queues(hops, order) for pair in itertools.pairwise(queue)]
    # Columns: start, p and end of every hop, y of every pair, T.
    size = 3 * count + len(pairs) + 1
    rows: list[tuple[dict[int, float], float]] = []  # Sums that are at least a number.
    place = np.argsort(order)
    for here, hop in enumerate(order.tolist()):
        begin, partial, end = here, count + here, 2 * count + here
        rows.append(({partial: 1, begin: -1}, hops.takes[hop]))
        rows.append(({end: 1, partial: -1}, 0.0))
        rows.append(({size - 1: 1, end: -1}, 0.0))
        if not hops.last[hop]:
            rows.append(({int(place[hop + 1]): 1, end: -1}, 0.0))
    for index, (one, two) in enumerate(pairs):
        y, more = 3 * count + index, hops.takes[order[two]] - alpha
        rows.append(({count + two: 1, count + one: -1, y: -makespan}, more - makespan))
        rows.append(({2 * count + one: 1, 2 * count + two: -1, y: -makespan}, -makespan))
        rows.append(({one: 1, two: -1, y: -makespan}, -makespan))
        rows.append(({two: 1, one: -1}, 0.0))
        rows.append(({two: 1, 2 * count + one: -1, y: makespan}, 0.0))
        rows.append(({y: -1}, -1.0))
    following = {one: 3 * count + index for index, (one, _) in enumerate(pairs)}
    for queue in _queues(hops, order):
        for run in zip(*(queue[k:-1] for k in range(MOST_JOINED)), strict=False):
            rows.append(({following[each]: -1 for each in run}, 1.0 - MOST_JOINED))
    row = np.repeat(np.arange(len(rows)), [len(terms) for terms, _ in rows])
    column = np.array([key for terms, _ in rows for key in terms])
    value = np.array([each for terms, _ in rows for each in terms.values()], dtype=np.float64)
    joined = np.zeros(size, dtype=np.bool_)
    joined[3 * count : -1] = True
    program = LinearProgram(
        cost=np.append(np.zeros(size - 1), 1.0),
        matrix=sparse_matrix((len(rows), size), Entries(value, row, column)),
        row_lower=np.array([least for _, least in rows]),
        row_upper=np.full(len(rows), np.inf),
        integer=joined,
    )
    settings.report(f"taccl: contiguity, {size:,} variables")
    limits = replace(settings.lp_settings(), tolerance=settings.gap)
    x = mip(program, limits).x
    found = np.zeros(count, dtype=np.bool_)
    if x is not None and pairs:
        found[[one for one, _ in pairs]] = x[3 * count : -1] > 0.5
    return found


def _levels(hops: Hops, order: Ints, joined: np.ndarray) -> Ints:
    """Return the step of each hop: after the one before of its chunk, and of its link."""
    group, before = np.zeros(len(hops.chunk), np.int64), []
    for queue in _queues(hops, order):
        last = -1
        for here, there in zip([None, *queue[:-1]], queue, strict=True):
            if here is None or not joined[here]:
                before.append({last} - {-1})
                last = len(before) - 1
            group[order[there]] = last
    for hop in range(1, len(group)):
        if not hops.last[hop - 1]:
            before[group[hop]].add(int(group[hop - 1]))
    level: dict[int, int] = {}
    waiting = list(range(len(before)))[::-1]
    while waiting:
        each = waiting[-1]
        missing = [other for other in before[each] if other not in level]
        if missing:
            waiting += missing
            continue
        level[waiting.pop()] = 1 + max((level[other] for other in before[each]), default=-1)
    return np.array([level[each] for each in group.tolist()], dtype=np.int64)
