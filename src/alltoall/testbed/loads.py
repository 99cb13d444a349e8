"""Compare the bytes through each device of a fabric with the expected ones."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints, rows
from alltoall.ir.chunks import PerShard
from alltoall.ir.messages import Messages
from alltoall.ir.program import EFFECTS, Program
from alltoall.ir.schedule import Schedule
from alltoall.runtime.needs import Runnable
from alltoall.runtime.spans import slot_bytes
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.plan import Device, Plan

MOST_HEADERS = 0.04
"""Largest share that Ethernet, IP and TCP headers add to a full link."""

MOST_ACKS = 0.03
"""Largest share of acknowledgements, relative to the bytes of the other direction."""

SLACK_BYTES = 64 * 1024
SLACK_PER_CALL = 16 * 1024
"""Bytes of other messages: start-up, barriers and times."""

Place = tuple[int, str]
"""A device: its node and its name."""


def pair_bytes(work: Runnable, shard: PerShard) -> Ints:
    """Return the bytes between each two ranks in one all-to-all."""
    found = np.zeros((shard.ranks, shard.ranks), dtype=np.int64)
    if isinstance(work, Messages):
        for part in work.ranks:
            # The message and the bytes of every range that a rank sends.
            message = part.message_of_range
            size = shard.of(part.source, part.destination)
            chunks = np.maximum(part.chunks.of(part.source, part.destination), 1)
            count = (part.chunk + part.count) * size // chunks - part.chunk * size // chunks
            sends = part.sends[message]
            np.add.at(found[part.rank], part.peer[message][sends], count[sends])
        return found
    # Chunks of a program are all as wide as the widest.
    for rank, peer, given in _given(work):
        found[rank, peer] += given
    return found * max(1, slot_bytes(work.chunks, shard))


def _given(work: Runnable) -> Iterator[tuple[int, int, int]]:
    """Yield the two ranks and the chunks of every transfer of a program or plan."""
    if isinstance(work, Program):
        for rank, code in enumerate(work.ranks):
            for thread in code.threads:
                for each in thread.instructions:
                    if EFFECTS[each.op].sends and thread.send_to is not None:
                        yield rank, thread.send_to, each.count
    elif not isinstance(work, Messages):
        for rank, plan in enumerate(work.ranks):
            copies = (copy for block in plan.blocks for each in block for copy in each.copies)
            yield from ((rank, copy.rank, copy.chunks) for copy in copies if copy.rank != rank)


def device_bytes(
    plan: Plan, pairs: Ints, without: frozenset[int] = frozenset()
) -> dict[Place, int]:
    """Return the expected bytes through each device for the bytes between ranks."""
    found: dict[Place, int] = defaultdict(int)
    distance = plan.distances(without)
    for source, to in np.argwhere(pairs).tolist():
        for device in path_of(plan, source, to, distance, without):
            found[device.node, device.name] += int(pairs[source, to])
    return found


def path_of(
    plan: Plan, source: int, to: int, distance: Ints, without: frozenset[int] = frozenset()
) -> Iterator[Device]:
    """Yield the devices through which a rank's bytes for another leave, one after another."""
    node, end = (int(plan.topology.terminals[each]) for each in (source, to))
    while node != end:
        device = plan.next_device(node, to, distance, without)
        if device is None:
            ends = (plan.topology.terminal_name(each) for each in (source, to))
            raise UsageError(f"no way from {' to '.join(ends)} over what is left of the fabric")
        yield device
        node = device.peer


def require_paths(bed: Bed, schedule: Schedule, pairs: Ints, unit: int) -> None:
    """Refuse a schedule whose messages the fabric would route over other links.

    Between ranks with several ways through switches a connection takes one of them. `pairs` are
    the bytes that ranks hand each other, for shards of `unit` bytes.
    """
    plan, topology = bed.plan, schedule.problem.topology
    ends = list(rows(topology.tail, topology.head))
    loads: dict[tuple[int, int], float] = defaultdict(float)
    sends: dict[tuple[int, int], int] = defaultdict(int)
    for link, size in rows(schedule.link, schedule.sizes()):
        loads[ends[link]] += size * unit
        sends[ends[link]] += 1
    expected = device_bytes(plan, pairs, frozenset(bed.cut))
    for device in plan.device_of.values():
        pair, found = (device.node, device.peer), expected.get((device.node, device.name), 0)
        # Chunks are whole numbers of bytes, so each send may miss its share by one.
        if abs(found - loads[pair]) > sends[pair] + 1:
            names = " -> ".join(map(plan.topology.node_name, pair))
            raise UsageError(
                f"{plan.topology.name}: {names} carries {loads[pair]:.0f} bytes in the schedule "
                f"and {found} on the fabric, where two ranks have one path through switches; run "
                "routes, which name theirs"
            )


def differences(
    plan: Plan, expected: dict[Place, int], counted: dict[Place, int], calls: int
) -> Iterator[str]:
    """Yield every device that sent an unexpected number of bytes in some all-to-alls."""
    slack = SLACK_BYTES + SLACK_PER_CALL * calls
    for cable in plan.cables:
        for device, other in (cable, cable[::-1]):
            place, back = (device.node, device.name), (other.node, other.name)
            if place not in counted:
                continue
            least = expected.get(place, 0)
            acks = MOST_ACKS * expected.get(back, 0)
            most = least * (1 + MOST_HEADERS) + acks + slack
            if not least <= counted[place] <= most:
                ends = (plan.topology.node_name(node) for node in (device.node, device.peer))
                yield (
                    f"{counted[place]:,} bytes have left {' for '.join(ends)} in {calls} "
                    f"all-to-alls; expected {least:,} to {most:,.0f}"
                )
