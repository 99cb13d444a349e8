"""Whether shards arrived as they were sent, to the bit, whatever is computed with them.

A sum that is off by one bit in its last digit is within any tolerance of arithmetic. So ranks tell
each other the checksum of every shard that they sent, and compare it with what they have.
"""

import zlib

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Bytes, Ranks

MAX_TOLD = 5
"""How many wrong shards each rank tells of."""

UNTOUCHED = 0xFF
"""What fills a buffer before it is received to: not a number, in any format of floats."""


def wrong_shards(
    ranks: Ranks, send: Bytes, recv: Bytes, shard: PerShard, subject: str
) -> list[str]:
    """Return what is wrong with what any rank received; the same at all ranks."""
    here = np.full(ranks.size, ranks.rank)
    others = np.arange(ranks.size)
    sent = ranks.share(_checksums(send, shard.of(here, others)))
    found = _checksums(recv, shard.of(others, here))
    wrong = [source for source in others.tolist() if sent[source][ranks.rank] != found[source]]
    told = [
        f"{subject}: the {int(shard.of(np.array(source), np.array(ranks.rank)))} bytes at rank "
        f"{ranks.rank} from rank {source} are not those that were sent"
        for source in wrong[:MAX_TOLD]
    ]
    return [each for every in ranks.share(told) for each in every]


def _checksums(buffer: Bytes, sizes: Ints) -> list[int]:
    """Return the checksum of each of the shards that lie one after another."""
    ends = np.cumsum(sizes).tolist()
    return [
        zlib.crc32(buffer[end - size : end].data)
        for end, size in zip(ends, sizes.tolist(), strict=True)
    ]
