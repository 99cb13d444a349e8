"""Estimate the memory of a run and refuse it early if it does not fit."""

from collections.abc import Sequence
from pathlib import Path

from alltoall.errors import LimitError
from alltoall.ir.chunks import shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.runtime.spans import slot_bytes

BUFFERS = 4
"""Buffers of a rank at once: sent, received, expected, and compared."""

STAGED = 4
"""Further buffers of a program: chunks in rows, and packets in transit."""

Runnable = Messages | Program | ExecutionPlan
"""Work of ranks."""

SMALLER = "use smaller shards (--bytes)"
PATTERN_BYTES = 12
"""Bytes for every byte of a shard while the pattern of its bytes is made."""

KEPT = 2
"""Factor for the scratch of smaller sizes, whose doubling sum is at most the largest."""

RANK_BYTES = 64 << 20
"""Memory of a rank without buffers: Python, numpy, an MPI or torch."""

MEMORY = Path("/proc/meminfo")
LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
"""Linux files of the memory of the machine and of a container."""


def require_memory(works: Sequence[Runnable], sizes: Sequence[int]) -> None:
    """Refuse shards whose buffers exceed the memory, for all ranks of all `works` at once."""
    size = max(sizes)
    needed = [count for work in works for count in needed_bytes(work, size)]
    require_free(sum(needed), f"shards of {size:,} bytes in {len(needed)} ranks", SMALLER)


def require_free(needed: int, subject: str, remedy: str) -> None:
    """Refuse what exceeds the memory of this machine."""
    available = available_bytes()
    if available is not None and needed > available:
        raise LimitError(
            f"{subject} take {_in_words(needed)} of memory together, and {_in_words(available)} is "
            f"free; {remedy}"
        )


def needed_bytes(messages: Runnable, size: int) -> list[int]:
    """Estimate the memory of each rank for shards of `size` bytes."""
    shard = shards_of(demand_of(messages), size)
    slot, pattern = slot_bytes(messages.chunks, shard), PATTERN_BYTES * shard.most
    buffers = BUFFERS if isinstance(messages, Messages) else BUFFERS + STAGED
    both = zip(shard.inputs().tolist(), shard.outputs().tolist(), strict=True)
    return [
        RANK_BYTES + buffers * max(ends) + pattern + KEPT * scratch * slot
        for scratch, ends in zip((each.scratch for each in messages.ranks), both, strict=True)
    ]


def demand_of(work: Runnable) -> Demand:
    """Return the relative sizes of the shards."""
    return work.demand if isinstance(work, Messages) else work.chunks.demand()


def available_bytes() -> int | None:
    """Return the available memory, as reported by the system."""
    found: list[int] = []
    if MEMORY.exists():
        lines = (line.split() for line in MEMORY.read_text().splitlines())
        found += [int(words[1]) << 10 for words in lines if words[0] == "MemAvailable:"]
    if LIMIT.exists() and (limit := LIMIT.read_text().strip()).isdigit():
        found.append(int(limit) - int(USED.read_text()))
    return min(found, default=None)


def _in_words(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"
