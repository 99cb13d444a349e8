"""Run routes on a fabric: a TCP flow per route, pinned to its path, with bytes and links checked.

The figures are those of `runtime.bench`: a throughput is what a rank sends others, over the time of
the slowest. Token buckets that are full at the start send a free burst; the time saved on the
busiest link is added to all times, so that it raises no share of a bound. What each link counted
must be at least the payload of the routes over it, and at most that with the headers it needs and
the acknowledgements of routes that are answered over it.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from alltoall.errors import UsageError, VerificationError
from alltoall.ir.arrays import Floats, Ints, rows
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.files.json.values import read_json, write_json
from alltoall.ir.routes import Routes
from alltoall.lowering.options import STEERING
from alltoall.runtime.needs import PATTERN_BYTES, RANK_BYTES, SMALLER, require_free
from alltoall.runtime.processes import Command, grouped
from alltoall.testbed.loads import MOST_ACKS, MOST_HEADERS
from alltoall.testbed.moving import mover
from alltoall.testbed.namespaces import Bed, cut_since
from alltoall.testbed.ports import PORTS
from alltoall.testbed.report import BedRow
from alltoall.testbed.shares import WEIGHTS, Pieces, buffers_of, pieces_of
from alltoall.testbed.steering import Steered, segments, steer, steered

PACE = 1.02
"""A paced flow's rate over its share of the time that the busiest link needs."""

BUFFERS = 5
"""Buffers of a rank at once: sent, received, wrong, expected, and compared."""

PER_FLOW = 4 * 250
"""Further bytes of a flow: packet padding and acknowledgements."""

PER_LINK = 4096
"""Bytes of a link outside all flows, sent by devices when they appear."""

RETRANSMITTED = 9_200
"""Most bytes of a retransmitted packet."""

SILENCE = 15.0
"""Seconds without a byte after which a host gives up: three TCP retransmission timeouts."""

GRACE_SECONDS = 15.0
"""Time after the time limit for ranks to report missing bytes."""

MOST_TOLD = 5
"""Most missing flows and links in a message."""


def run_routes(
    bed: Bed,
    routes: Routes,
    sizes: tuple[int, ...],
    iterations: int = 5,
    warmup: int = 1,
    *,
    weights: str = "weights",
    steering: str = "plain",
    phase: Ints | None = None,
    timeout: float = 300.0,
    silence: float = SILENCE,
    hosts: Sequence[str] = (),
) -> tuple[BedRow, ...]:
    """Install routes on a fabric, run them at every size, and return the measurements.

    `weights` is one of `WEIGHTS`; `phases` needs the `phase` of each route. Raise if a byte is
    wrong, after `timeout` seconds, or if a host receives nothing for `silence` seconds; a row says
    whether link counters were as expected. `hosts` are the addresses of terminals between which
    single routes are installed already.
    """
    _check(routes, sizes, weights, steering, phase)
    found = steered(bed.plan, routes)
    shards = [shards_of(routes.problem.demand, size) for size in sizes]
    cuts = [pieces_of(found.routes, shard, weights) for shard in shards]
    _require_memory(shards)
    rates = bed.plan.rates if weights == "paced" else None
    library = mover()  # before the fabric is touched: it needs a compiler
    if hosts:
        own, address = (
            [hosts[end] for end in ends] for ends in (found.routes.source, found.routes.destination)
        )
        found = replace(found, own=own, address=address)
    else:
        steer(bed, found, steering)
    subject = f"the run of routes on {routes.problem.topology.name}"
    job = {
        "bed": bed.plan.name,
        "namespaces": [bed.namespaces[node] for node in bed.plan.topology.terminals.tolist()],
        "mover": library,
        "ranks": len(bed.plan.topology.terminals),
        "flows": flows_of(found, phase if weights == "phases" else None, routes),
        "ways": segments(found) if steering == PORTS else [],
        "sizes": [
            {
                "bytes": size,
                "counts": shard.most if shard.counts is None else shard.counts.tolist(),
                **told_flows(found.routes, found.back, cut, rates),
            }
            for size, shard, cut in zip(sizes, shards, cuts, strict=True)
        ],
        "iterations": iterations,
        "warmup": warmup,
        "timeout": timeout,
        "silence": silence,
    }
    result = _conducted(bed, job, subject)
    if result.get("late"):
        words = {
            "timeout": f"not done within {timeout:g} seconds (--timeout)",
            "silence": f"nothing came for {silence:g} seconds",
        }
        raise VerificationError(subject, [_late(found, result["missing"], words[result["late"]])])
    wrong = [line for row in result["rows"] for line in row["wrong"]]
    if wrong:
        raise VerificationError(subject, wrong)
    return tuple(
        _row(bed, found, size, shard, cut, row)
        for size, shard, cut, row in zip(sizes, shards, cuts, result["rows"], strict=True)
    )


def _check(
    routes: Routes, sizes: tuple[int, ...], weights: str, steering: str, phase: Ints | None
) -> None:
    for kind, name, known in (
        ("weights", weights, WEIGHTS),
        ("steering", steering, (*STEERING, PORTS)),
    ):
        if name not in known:
            raise UsageError(f"{kind} {name!r}; expected one of {', '.join(known)}")
    if not sizes or min(sizes) < 1:
        raise UsageError(f"shard sizes {list(sizes)}; expected at least one byte each")
    if weights == "phases" and (phase is None or phase.shape != (routes.count,)):
        raise UsageError(
            f"{0 if phase is None else len(phase)} phases for {routes.count} routes; expected the "
            "phase of each route, as alltoall.routes.phases splits them"
        )


def _require_memory(shards: list[PerShard]) -> None:
    most = max(shards, key=lambda shard: shard.stored)
    needed = most.ranks * (RANK_BYTES // 4 + PATTERN_BYTES * most.most) + BUFFERS * most.stored
    require_free(needed, f"shards of {most.most:,} bytes in {most.ranks} ranks", SMALLER)


def flows_of(found: Steered, phase: Ints | None, given: Routes) -> list[list[Any]]:
    """Return the flow of each route with data: ranks, the addresses of both, and its phase."""
    routes = found.routes
    phases = np.zeros(routes.count, dtype=np.int64)
    if phase is not None:
        # Routes are in file order, and ways back have no phase of their own.
        phases[routes.weight > 0] = phase[np.lexsort((given.destination, given.source))]
    ends = rows(routes.source, routes.destination)
    each = zip(ends, found.own, found.address, phases.tolist(), strict=True)
    return [[*pair, here, there, number] for pair, here, there, number in each]


def told_flows(
    routes: Routes, back: Ints, cut: Pieces, rates: Floats | None = None
) -> dict[str, Any]:
    """Return the pieces, the buffer and the pace of each flow; paced only if links have `rates`."""
    carried = cut.bytes_of(routes.count)
    pace = [0.0] * routes.count
    if rates is not None:
        pace = (PACE * carried / float((_payload(routes, carried) / rates).max())).tolist()
    return {
        "pieces": cut.by_route(routes.count),
        "buffer": buffers_of(routes, back, cut),
        "pace": pace,
    }


def _payload(routes: Routes, carried: Ints) -> Floats:
    """Return the bytes of payload over each link."""
    return routes.load(carried.astype(np.float64))


def _conducted(bed: Bed, job: dict[str, Any], subject: str) -> dict[str, Any]:
    with grouped() as group:
        path, results = group.folder / "job.json", group.folder / "results.json"
        write_json(path, {**job, "results": str(results)})
        words = [sys.executable, "-m", "alltoall.testbed.conduct", str(path)]
        command = Command(words, os.environ, group.folder / "conduct.log")
        limit = job["timeout"] + GRACE_SECONDS
        group.run([command], limit, subject, lambda: cut_since(bed))
        found: Any = read_json(results)
    return dict(found)


def _row(
    bed: Bed, found: Steered, size: int, shard: PerShard, cut: Pieces, told: dict[str, Any]
) -> BedRow:
    carried = cut.bytes_of(found.routes.count)
    payload = _payload(found.routes, carried)
    sent = shard.total / shard.ranks
    took = payload / bed.plan.rates
    credit = float((np.minimum(payload, bed.plan.bursts) / bed.plan.rates)[np.argmax(took)])
    throughput = sent / (told["seconds"] + credit)
    load = sent / float(took.max())
    # Without a bound of their own, routes are held against their largest link load.
    bound = sent * bed.plan.bytes_per_second / (found.bound * size) if found.bound > 0 else load
    wrong = disagreements(bed, found, carried * told["exchanges"], told)
    return BedRow(
        bytes=size,
        seconds=told["seconds"],
        least=told["seconds"],
        most=told["seconds"],
        credit_seconds=credit,
        throughput=throughput,
        bound_throughput=bound,
        fraction=throughput / bound,
        counters_ok=not wrong,
        load_fraction=throughput / load,
        steal=told["steal"],
        retransmits=told["retransmits"],
        drops=told["drops"],
        disagreements=tuple(wrong),
    )


def disagreements(bed: Bed, found: Steered, carried: Ints, told: dict[str, Any]) -> list[str]:
    """Return the links that carried unexpected bytes, given the bytes of each route."""
    routes, exchanges = found.routes, told["exchanges"]
    least = _payload(routes, carried)
    flows = exchanges * (carried > 0).astype(np.float64)
    most = routes.load((1 + MOST_HEADERS) * carried + PER_FLOW * flows)
    answers = MOST_ACKS * carried + PER_FLOW * flows
    answered = np.bincount(found.back, answers, minlength=routes.count).astype(np.float64)
    most += routes.load(answered) + PER_LINK + told["retransmits"] * RETRANSMITTED
    sent = {(node, device): count for node, device, count in told["sent"]}
    problems: list[str] = []
    for link, device in sorted(bed.plan.device_of.items()):
        count = sent.pop((device.node, device.name))
        if not least[link] <= count <= most[link]:
            problems.append(
                f"{bed.plan.topology.link_name(link)} carried {count:,} bytes; expected "
                f"{least[link]:,.0f} to {most[link]:,.0f}"
            )
    problems += [
        f"the way back at {device} of node {bed.plan.topology.node_name(node)} carried {count:,} "
        "bytes; expected none"
        for (node, device), count in sorted(sent.items())
        if count > PER_LINK
    ]
    return problems


def _late(found: Steered, missing: list[list[int]], text: str) -> str:
    """Return a message on the missing bytes and the cables that all of them needed."""
    if not missing:
        return f"{text}, and no flow has anything left; give it more time"
    routes = found.routes
    topology = routes.problem.topology
    for route, left in missing[:MOST_TOLD]:
        ends = (int(routes.source[route]), int(routes.destination[route]))
        names = " to ".join(topology.terminal_name(end) for end in ends)
        text += f"; {names}: {left:,} bytes missing" if left else f"; {names}: not connected"
    if len(missing) > MOST_TOLD:
        text += f"; and {len(missing) - MOST_TOLD} more flows"
    common = set.intersection(*(_cables(found, route) for route, _ in missing))
    shared = ", ".join(
        "-".join(topology.node_name(node) for node in ends) for ends in sorted(common)[:MOST_TOLD]
    )
    cause = f"all of them need {shared}" if shared else "they have no link in common"
    return f"{text}; {cause}: is a link cut, or the time too short?"


def _cables(found: Steered, route: int) -> set[tuple[int, int]]:
    """Return the two ends of every link of a flow and of its acknowledgements."""
    routes, topology = found.routes, found.routes.problem.topology
    ways = (route, int(found.back[route]))
    links = [each for way in ways for each in routes.link[slice(*routes.start[way : way + 2])]]
    ends = [(int(topology.tail[link]), int(topology.head[link])) for link in links]
    return {(min(pair), max(pair)) for pair in ends}
