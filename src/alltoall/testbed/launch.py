"""Run a schedule or its lowered form on a fabric, and the library's own all-to-all."""

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import getpid
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from alltoall.errors import UsageError, VerificationError
from alltoall.ir.arrays import starts_of
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.topology import Topology
from alltoall.runtime.launch import LaunchContext, RunSettings, run_ranks
from alltoall.runtime.metered import Reading
from alltoall.runtime.needs import demand_of
from alltoall.runtime.parts import RankWork
from alltoall.testbed.loads import device_bytes, differences, pair_bytes
from alltoall.testbed.namespaces import Bed, Counted, counted, cut_since, down, remove_orphans, up
from alltoall.testbed.plan import IDENTITY, NETWORK
from alltoall.testbed.report import BedReport, BedRow, RanksPerHost

DEVICE_VARIABLES = ("FI_TCP_IFACE", "GLOO_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include")
"""Variables that set the network device of MPICH, gloo and Open MPI."""


def on_nodes(
    bed: Bed,
    scheduled: bool,
    ranks: Sequence[int] = (),
    under: Mapping[str, str] | None = None,
    watch: Callable[[], str | None] = lambda: None,
) -> LaunchContext:
    """Return the nodes of a fabric as the place of ranks, one each or so many.

    A schedule is for neighbours, and uses their addresses; a library knows none, and is given the
    routed network. `watch` returns a further reason to end all ranks than a cut.
    """
    variables = dict.fromkeys(DEVICE_VARIABLES, IDENTITY if scheduled else NETWORK)
    more = dict(under or {})
    return LaunchContext(
        tuple(bed.prefix(ranks)), variables | more, lambda: cut_since(bed) or watch()
    )


MOST_RANKS = 128
"""Ranks that a host may have."""

THROUGH = ("mpi", "torch")
"""The runtimes whose ranks can be put on the nodes of a fabric."""


@dataclass(frozen=True)
class Hosted:
    """Several ranks per host: how many each terminal has, and what all of them together call.

    They call the library's all-to-all, and `environment` puts the schedule under it.
    """

    ranks: tuple[int, ...]
    every: RankWork
    environment: dict[str, str]


@dataclass(frozen=True, eq=False)
class BedWork(RankWork):
    """The work of a fabric's terminals, and the bound of its demand.

    `bound` is the least time that any all-to-all takes, in shards over capacity 1.
    """

    bound: float = 0.0
    hosted: Hosted | None = None

    def shard(self, size: int) -> PerShard:
        """Return the bytes that terminals send each other if ranks have shards of a size."""
        if self.hosted is None:
            return shards_of(demand_of(self.parts), size)
        return PerShard(
            len(self.hosted.ranks), counts=size * np.outer(self.hosted.ranks, self.hosted.ranks)
        )


def ranks_on(given: RanksPerHost, hosts: int) -> tuple[int, ...]:
    """Return how many ranks each host has."""
    words = given.split(",") if isinstance(given, str) else given
    try:
        counts = [int(each) for each in ([words] if isinstance(words, int) else words)]
    except (TypeError, ValueError):
        counts = []
    if len(counts) not in (1, hosts) or not 1 <= min(counts) <= max(counts) <= MOST_RANKS:
        raise UsageError(
            f"ranks per host {reprlib.repr(given)}; expected a number from 1 to {MOST_RANKS}, or "
            f"one for each of {hosts} hosts, such as 2,2,4"
        )
    return tuple(counts * hosts if len(counts) == 1 else counts)


@contextmanager
def temporary_bed(topology: Topology, bytes_per_second: float) -> Iterator[Bed]:
    """Yield a temporary fabric; remains of a killed process are removed by the next one."""
    remove_orphans()
    name = f"run{getpid()}"
    bed = up(topology, bytes_per_second, name, owner=getpid())
    try:
        yield bed
    finally:
        down(name)


def run_on_bed(
    bed: Bed, work: BedWork, settings: RunSettings, through: str = "mpi", native: bool = True
) -> BedReport:
    """Run on a fabric; raise if a byte is wrong or a link carried unexpected bytes."""
    ranks = len(bed.plan.topology.terminals)
    if through not in THROUGH:
        raise UsageError(f"no runtime {through!r} on a fabric; expected {' or '.join(THROUGH)}")
    if len(work.parts.ranks) != ranks:
        raise UsageError(
            f"{work.name}: for {len(work.parts.ranks)} ranks, and {bed.plan.topology.name} has "
            f"{ranks} terminals; expected as many: name the fabric that it was made for"
        )
    subject = f"the run of {work.name} on {bed.plan.topology.name}"
    before = counted(bed)
    ours = told(bed, work, settings, through, "ours", subject)
    after = counted(bed)
    readings = [Reading(**each) for each in ours["readings"]]
    wrong = [each for reading in readings for each in reading.violations]
    if wrong:
        raise VerificationError(subject, wrong)
    runs = [(work, reading) for reading in readings]
    wrong_in_all = list(sent_otherwise(bed, runs, settings.warmup, before, after))
    theirs: dict[int, Reading] = {}
    if native:
        found = told(bed, work, settings, through, "native", subject)
        theirs = {each["bytes"]: Reading(**each) for each in found["readings"]}
    rows: list[BedRow] = []
    violations: list[str] = list(wrong_in_all)
    for reading in readings:
        wrong = [
            f"shards of {reading.bytes:,} bytes: {each}" for each in _wrong(bed, work, reading)
        ]
        violations += wrong
        ok = not wrong and not wrong_in_all
        drops = after.drops - before.drops
        rows.append(_row(bed, work, reading, theirs.get(reading.bytes), ok, drops))
    if violations:
        raise VerificationError(subject, violations)
    return BedReport(
        fabric=bed.plan.name,
        topology=bed.plan.topology.name,
        ranks=ranks if work.hosted is None else sum(work.hosted.ranks),
        rate=bed.plan.bytes_per_second,
        runtime=ours["runtime"],
        native=ours["native"] if native else None,
        links_emulated=True,
        rows=tuple(rows),
        violations=(),
    )


def told(
    bed: Bed,
    work: BedWork,
    settings: RunSettings,
    through: str,
    way: str,
    subject: str,
    gates: Sequence[Path] = (),
    watch: Callable[[], str | None] = lambda: None,
) -> dict[str, Any]:
    """Run a schedule or the library's all-to-all on a fabric; return the ranks' final messages.

    `gates` are those of `run_ranks`; `watch` returns a further reason to end all ranks.
    """
    ours, hosted = way == "ours", work.hosted
    if hosted is None:
        place = on_nodes(bed, ours, watch=watch)
        return run_ranks(work, through, settings, subject, place, way, gates)
    under = hosted.environment if ours else {}
    place = on_nodes(bed, ours, hosted.ranks, under, watch)
    found = run_ranks(hosted.every, through, settings, subject, place, "native", gates)
    library = found["runtime"].partition(",")[0]
    return {**found, "runtime": f"{library}, {found['native']} of ranks on hosts under wrap"}


def _wrong(bed: Bed, work: BedWork, reading: Reading) -> Iterator[str]:
    """Yield the devices of ranks that sent or received unexpected numbers of bytes."""
    plan = bed.plan
    seen: dict[tuple[int, str], int] = {}
    node = plan.topology.terminals.tolist()
    # All ranks of a node read the same counters.
    first = starts_of((1,) * len(node) if work.hosted is None else work.hosted.ranks)
    own = dict(zip(node, first.tolist(), strict=False))
    for cable in plan.cables:
        for device, other in (cable, cable[::-1]):
            if device.node in own:
                seen[device.node, device.name] = reading.sent[own[device.node]][device.name]
            elif other.node in own:
                seen[device.node, device.name] = reading.received[own[other.node]][other.name]
    once = _expected(bed, work, reading.bytes)
    expected = {place: reading.calls * count for place, count in once.items()}
    yield from differences(plan, expected, seen, reading.calls)


def sent_otherwise(
    bed: Bed,
    runs: Sequence[tuple[BedWork, Reading]],
    warmup: int,
    before: Counted,
    after: Counted,
) -> Iterator[str]:
    """Yield all devices, also between switches, that sent unexpected numbers of bytes."""
    expected: dict[tuple[int, str], int] = {}
    calls = 0
    for work, reading in runs:
        each = reading.calls + warmup + 1
        calls += each
        for place, count in _expected(bed, work, reading.bytes).items():
            expected[place] = expected.get(place, 0) + each * count
    sent = {place: count - before.sent.get(place, 0) for place, count in after.sent.items()}
    yield from differences(bed.plan, expected, sent, calls)


def _expected(bed: Bed, work: BedWork, size: int) -> dict[tuple[int, str], int]:
    """Return the expected bytes through each device in one all-to-all."""
    pairs = pair_bytes(work.parts, work.shard(size))
    return device_bytes(bed.plan, pairs, frozenset(bed.cut))


def _row(
    bed: Bed, work: BedWork, reading: Reading, native: Reading | None, ok: bool, drops: int
) -> BedRow:
    plan, shard = bed.plan, work.shard(reading.bytes)
    sent = shard.total / shard.ranks
    seconds = median(reading.seconds)
    credit = burst_credit(bed, _expected(bed, work, reading.bytes))
    throughput = sent / (seconds + credit)
    bound = sent * plan.bytes_per_second / (work.bound * reading.bytes)
    theirs = None if native is None else median(native.seconds)
    return BedRow(
        bytes=reading.bytes,
        seconds=seconds,
        least=min(reading.seconds),
        most=max(reading.seconds),
        credit_seconds=credit,
        throughput=throughput,
        bound_throughput=bound,
        fraction=throughput / bound,
        counters_ok=ok,
        steal=max(reading.steal),
        retransmits=reading.retransmits,
        drops=drops,
        native_seconds=theirs,
        native_throughput=None if theirs is None else sent / theirs,
        ratio=None if theirs is None else theirs / seconds,
    )


def burst_credit(bed: Bed, expected: dict[tuple[int, str], int]) -> float:
    """Return the largest time saved by the first burst of a link."""
    plan = bed.plan
    loads = np.zeros(plan.topology.links)
    for link, device in plan.device_of.items():
        loads[link] = expected.get((device.node, device.name), 0)
    return float((np.minimum(loads, plan.bursts) / plan.rates).max())
