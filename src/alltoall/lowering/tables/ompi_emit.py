"""The path-steered XML for an MPI runtime on a routed fabric: chunks, routes and queue pairs.

The schema is ours: docs/formats.md and ompi.xsd beside this file. A shard is cut into equal
chunks, every queue pair carries some of them on one route, and its UDP source port is chosen so
that the fabric's hash picks that route.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.routes import Routes
from alltoall.ir.words import one_line
from alltoall.lowering.options import TABLE_ROUTES, Options
from alltoall.lowering.tables.hashes import addresses, dotted, find_ports, listed_addresses
from alltoall.lowering.tables.routed_file import (
    check_room,
    in_file_order,
    one_layer_each,
    pair_name,
    pair_sizes,
    ports_of,
)

VERSION = 1
FIRST_QUEUE_PAIR = 16
"""Numbers below are taken by the verbs library's own queue pairs on common cards."""

MOST_QUEUE_PAIRS = 1 << 24
"""Queue pair numbers have 24 bits."""

MOST_CHUNKS = 4096
"""Chunks per shard beyond which weights are not taken for whole chunks."""

MOST_COMMON = 256
"""Chunks per shard up to which all shards are cut alike, if their weights allow."""

USUAL_CHUNKS = 8
"""Chunks per shard that are proposed where weights are no whole chunks."""

EXACT = 1e-7
"""How far from whole a number of chunks may be and still count as whole."""


@dataclass(frozen=True, eq=False)
class _Queues:
    """The queue pairs, in file order: the route of each, its chunks, its number and its port."""

    route: Ints
    first: Ints
    count: Ints
    number: Ints
    port: Ints


def emit_ompi(routes: Routes, options: Options) -> str:
    """Return the XML for routes that have layers and weights of whole chunks."""
    one_layer_each(routes, "the file of Open MPI")
    terminals = len(routes.problem.topology.terminals)
    rank = np.arange(terminals) if options.rank is None else options.rank
    ordered, order = in_file_order(routes, rank)
    check_room(ordered, options.max_routes or TABLE_ROUTES)
    phase = np.zeros(routes.count, dtype=np.int64)
    if options.phase is not None:
        phase = _phases(routes, options.phase)[order]
    counts = chunk_counts(ordered)
    address = addresses(options.addresses, terminals)
    if options.address is not None:
        address[rank] = listed_addresses(options.address)
    queues = _queues(ordered, counts, rank, address, options)
    lines = _document(ordered, counts, phase, queues, rank, address, options)
    return "".join(f"{line}\n" for line in lines)


def _phases(routes: Routes, phase: Ints) -> Ints:
    """Return the phases, which must be one per route."""
    if phase.shape != (routes.count,) or phase.min() < 0:
        raise InputError(
            f"{len(phase)} phases for {routes.count} routes; expected one per route, from 0 on"
        )
    return phase


def chunk_counts(routes: Routes) -> Ints:
    """Return the chunks of each route; all chunks of a shard are equal.

    With a common denominator all chunks of all shards are. Without, or if it is large, each shard
    has as few chunks as its weights allow.
    """
    if routes.denominator is not None and routes.denominator <= MOST_COMMON:
        return np.rint(routes.weight * routes.denominator).astype(np.int64)
    sizes = pair_sizes(routes.source, routes.destination)
    first = starts_of(sizes)[:-1]
    total = np.add.reduceat(routes.weight, first)
    share = routes.weight / np.repeat(total, sizes)
    chunks = _least_chunks(share, first, sizes)
    if not chunks.all():
        at = int(first[np.argmin(chunks)])
        raise InputError(
            f"the weights {pair_name(routes, at)} are no whole chunks, of at most "
            f"{MOST_CHUNKS} per shard; route again with {_way_out(total)}"
        )
    return np.asarray(np.rint(share * np.repeat(chunks, sizes)), dtype=np.int64)


def _way_out(demand: Floats) -> str:
    """Return the option that makes whole chunks of all shards: few enough, or the shards."""
    if USUAL_CHUNKS * demand.max() <= MOST_CHUNKS:
        return f"--chunks {USUAL_CHUNKS}"
    return "--method single"


def _least_chunks(share: Floats, first: Ints, sizes: Ints) -> Ints:
    """Return the fewest chunks per pair that make all its shares whole, 0 if there are none."""
    chunks = np.zeros(len(sizes), dtype=np.int64)
    left = np.arange(len(sizes))
    for tried in range(1, MOST_CHUNKS + 1):
        entries = np.repeat(first[left], sizes[left]) + inner_index(sizes[left])
        off = np.abs(share[entries] * tried - np.rint(share[entries] * tried))
        whole = np.maximum.reduceat(off, starts_of(sizes[left])[:-1]) <= EXACT
        chunks[left[whole]] = tried
        left = left[~whole]
        if not len(left):
            break
    return chunks


def _queues(routes: Routes, counts: Ints, rank: Ints, address: Ints, options: Options) -> _Queues:
    """Return a queue pair per chunk or per route, each with the port that picks its route."""
    sizes = pair_sizes(routes.source, routes.destination)
    routes_of_pair = np.repeat(sizes, sizes)
    before = starts_of(counts)[:-1]
    before -= np.repeat(before[starts_of(sizes)[:-1]], sizes)
    per_route = counts if options.queue_pairs == "chunk" else np.ones_like(counts)
    route = np.repeat(np.arange(routes.count), per_route)
    count = (counts // per_route)[route]
    source = rank[routes.source[route]]
    number = FIRST_QUEUE_PAIR + inner_index(np.bincount(source, minlength=len(address)))
    if number.max() >= MOST_QUEUE_PAIRS:
        raise InputError(
            f"{number.max() + 1 - FIRST_QUEUE_PAIR} queue pairs on a rank; their numbers have 24 "
            "bits; lower with --queue-pairs route, or route again with --chunks 8"
        )
    wanted = inner_index(sizes)
    port = find_ports(
        options.hash,
        address[source],
        address[rank[routes.destination[route]]],
        number,
        wanted[route],
        routes_of_pair[route],
    )
    return _Queues(route, before[route] + inner_index(per_route) * count, count, number, port)


def _document(
    routes: Routes,
    counts: Ints,
    phase: Ints,
    queues: _Queues,
    rank: Ints,
    address: Ints,
    options: Options,
) -> Iterator[str]:
    topology = routes.problem.topology
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<alltoall version="{VERSION}" name={quoteattr(one_line(topology.name))} '
        f'ranks="{len(address)}" hash="{options.hash}" '
        f'routes-per-destination="{options.max_routes or TABLE_ROUTES}" '
        f'layers="{routes.layers}" phases="{int(phase.max()) + 1}">'
    )
    sends = _sends(routes, counts, phase, queues, rank)
    for number, position in enumerate(np.argsort(rank).tolist()):
        node = int(topology.terminals[position])
        called = "" if topology.names is None else f" name={quoteattr(topology.names[node])}"
        own = dotted(int(address[number]))
        yield f'  <rank id="{number}" node="{node}" address="{own}"{called}>'
        yield from sends[position]
        yield "  </rank>"
    yield "</alltoall>"


def _sends(
    routes: Routes, counts: Ints, phase: Ints, queues: _Queues, rank: Ints
) -> list[list[str]]:
    """Return the lines of every terminal: its sends, the routes of each, and their queue pairs."""
    sizes = pair_sizes(routes.source, routes.destination)
    pair_first = starts_of(sizes)[:-1]
    chunks = np.add.reduceat(counts, pair_first).tolist()
    route_lines, queue_lines = _route_lines(routes), _queue_lines(queues, sizes, phase)
    queue_start = np.searchsorted(queues.route, np.append(pair_first, routes.count)).tolist()
    lines: list[list[str]] = [[] for _ in routes.problem.topology.terminals]
    ends = (routes.source[pair_first].tolist(), rank[routes.destination[pair_first]].tolist())
    first, after = pair_first.tolist(), (pair_first + sizes).tolist()
    for pair, (source, destination) in enumerate(zip(*ends, strict=True)):
        mine = lines[source]
        mine.append(f'    <send to="{destination}" chunks="{chunks[pair]}">')
        mine.extend(route_lines[first[pair] : after[pair]])
        mine.extend(queue_lines[queue_start[pair] : queue_start[pair + 1]])
        mine.append("    </send>")
    return lines


def _route_lines(routes: Routes) -> list[str]:
    topology = routes.problem.topology
    ids = inner_index(pair_sizes(routes.source, routes.destination)).tolist()
    layers = one_layer_each(routes, "the file of Open MPI").tolist()
    nodes = list(map(str, topology.tail[routes.link].tolist()))
    ports = list(map(str, ports_of(topology)[routes.link].tolist()))
    ends = routes.start.tolist()
    return [
        f'      <route id="{ids[r]}" layer="{layers[r]}" '
        f'nodes="{" ".join(nodes[ends[r] : ends[r + 1]])}" '
        f'ports="{" ".join(ports[ends[r] : ends[r + 1]])}"/>'
        for r in range(routes.count)
    ]


def _queue_lines(queues: _Queues, sizes: Ints, phase: Ints) -> list[str]:
    columns = (
        queues.number,
        queues.port,
        inner_index(sizes)[queues.route],
        queues.first,
        queues.count,
        phase[queues.route],
    )
    return [
        f'      <qp number="{number}" source-port="{port}" route="{route}" first="{first}" '
        f'count="{count}" phase="{when}"/>'
        for number, port, route, first, count, when in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
