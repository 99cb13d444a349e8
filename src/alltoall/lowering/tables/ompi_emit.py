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
from alltoall.ir.arrays import Ints, inner_index, rows, starts_of
from alltoall.ir.routes import Routes
from alltoall.ir.words import one_line
from alltoall.lowering.options import TABLE_ROUTES, Options
from alltoall.lowering.tables.hashes import addresses, dotted, find_ports, parse_addresses
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
"""Lower numbers belong to the verbs library's own queue pairs on common cards."""

MOST_QUEUE_PAIRS = 1 << 24
"""Queue pair numbers have 24 bits."""

MOST_CHUNKS = 4096
"""Most chunks per shard that make weights whole."""

MOST_COMMON = 256
"""Most chunks per shard if all shards are cut equally."""

USUAL_CHUNKS = 8
"""Chunks per shard proposed in the error for fractional weights."""

EXACT = 1e-7
"""Largest rounding error of whole chunks."""


@dataclass(frozen=True, eq=False)
class _Queues:
    """The queue pairs in file order: route, chunks, number and port."""

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
    phase = np.zeros(routes.count, dtype=np.int64) if options.phase is None else options.phase
    if phase.shape != (routes.count,) or phase.min() < 0:
        found = f"{len(phase)} phases for {routes.count} routes"
        raise InputError(f"{found}; expected one per route, from 0 on")
    counts = chunk_counts(ordered)
    address = addresses(options.addresses, terminals)
    if options.address is not None:
        address[rank] = parse_addresses(options.address)
    queues = _queues(ordered, counts, rank, address, options)
    lines = _document(ordered, counts, phase[order], queues, rank, address, options)
    return "".join(f"{line}\n" for line in lines)


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
    if not chunks.all():
        few = USUAL_CHUNKS * total.max() <= MOST_CHUNKS
        raise InputError(
            f"the weights {pair_name(routes, int(first[np.argmin(chunks)]))} are no whole chunks, "
            f"of at most {MOST_CHUNKS} per shard; route again with "
            f"{f'--chunks {USUAL_CHUNKS}' if few else '--method single'}"
        )
    return np.asarray(np.rint(share * np.repeat(chunks, sizes)), dtype=np.int64)


def _queues(routes: Routes, counts: Ints, rank: Ints, address: Ints, options: Options) -> _Queues:
    """Return a queue pair per chunk or per route, each with the port that picks its route."""
    sizes = pair_sizes(routes.source, routes.destination)
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
            "bits; lower with --to ompi:queue-pairs=route, or route again with --chunks 8"
        )
    destination = rank[routes.destination[route]]
    flow = (address[source], address[destination], number)
    wanted, choices = inner_index(sizes)[route], np.repeat(sizes, sizes)[route]
    port = find_ports(options.hash, *flow, wanted, choices)
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
    sizes = pair_sizes(routes.source, routes.destination)
    pair_first = starts_of(sizes)[:-1]
    chunks = np.add.reduceat(counts, pair_first)
    route_lines, queue_lines = _route_lines(routes), _queue_lines(queues, sizes, phase)
    queue_start = np.searchsorted(queues.route, np.append(pair_first, routes.count))
    lines: list[list[str]] = [[] for _ in routes.problem.topology.terminals]
    ends = (routes.source[pair_first], rank[routes.destination[pair_first]], chunks)
    ranges = (pair_first, pair_first + sizes, queue_start[:-1], queue_start[1:])
    for source, destination, total, first, last, begin, end in rows(*ends, *ranges):
        lines[source] += [
            f'    <send to="{destination}" chunks="{total}">',
            *route_lines[first:last],
            *queue_lines[begin:end],
            "    </send>",
        ]
    for number, position in enumerate(np.argsort(rank).tolist()):
        node = int(topology.terminals[position])
        called = "" if topology.names is None else f" name={quoteattr(topology.names[node])}"
        own = dotted(int(address[number]))
        yield f'  <rank id="{number}" node="{node}" address="{own}"{called}>'
        yield from lines[position]
        yield "  </rank>"
    yield "</alltoall>"


def _route_lines(routes: Routes) -> list[str]:
    topology = routes.problem.topology
    ids = inner_index(pair_sizes(routes.source, routes.destination))
    layers = one_layer_each(routes, "the file of Open MPI")
    nodes = list(map(str, topology.tail[routes.link].tolist()))
    ports = list(map(str, ports_of(topology)[routes.link].tolist()))
    return [
        f'      <route id="{own}" layer="{layer}" nodes="{" ".join(nodes[low:high])}" '
        f'ports="{" ".join(ports[low:high])}"/>'
        for own, layer, low, high in rows(ids, layers, routes.start[:-1], routes.start[1:])
    ]


def _queue_lines(queues: _Queues, sizes: Ints, phase: Ints) -> list[str]:
    route, when = inner_index(sizes)[queues.route], phase[queues.route]
    columns = (queues.number, queues.port, route, queues.first, queues.count, when)
    return [
        f'      <qp number="{number}" source-port="{port}" route="{own}" first="{first}" '
        f'count="{count}" phase="{turn}"/>'
        for number, port, own, first, count, turn in rows(*columns)
    ]
