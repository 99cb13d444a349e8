"""All-to-all by a schedule over torch.distributed; the only file that imports torch.

    alltoall = Alltoall(schedule)          # or Alltoall(schedule, group)
    alltoall(send, recv)                   # as dist.all_to_all_single(recv, send)

Every step is one batch of point-to-point operations, which all backends have: gloo, NCCL, MPI.
A rank goes on to its next step when its own messages of this one are done.
"""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import MissingComponentError, UsageError
from a2aflow.ir.schedule import Schedule
from a2aflow.runtime.plan import plan_of
from a2aflow.runtime.spans import Spans, shard_bytes_of, spans_of

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise MissingComponentError(
        f"torch cannot be used: {error}; install it with: pip install 'a2aflow[torch]'"
    ) from error

Bytes = NDArray[np.uint8]
Tensor: TypeAlias = Any
Group: TypeAlias = Any


class Alltoall:
    """An all-to-all by one schedule among the ranks of one process group.

    Rank r of the group plays `topology.terminals[r]`, and ranks talk along the links of the
    topology only. Every call is collective.
    """

    def __init__(self, schedule: Schedule, group: Group = None) -> None:
        ranks, found = len(schedule.problem.topology.terminals), dist.get_world_size(group)
        if found != ranks:
            raise UsageError(
                f"a process group of {found} ranks for a schedule of {ranks}; "
                "expected one rank per terminal"
            )
        self._group = group
        self._plan = plan_of(schedule, dist.get_rank(group))
        self._peers = [_global_rank(group, peer) for peer in self._plan.peer.tolist()]
        self._spans: tuple[int, Spans] | None = None
        self._scratch: Tensor = None

    def __call__(self, send: Tensor, recv: Tensor) -> None:
        """Send shard d of `send` to rank d, and receive the shard from rank s as shard s of `recv`.

        Tensors of any type and shape, contiguous, on one device, of one size, a multiple of the
        number of ranks.
        """
        given, taken = _bytes_of(send, "send"), _bytes_of(recv, "receive")
        shard = shard_bytes_of(self._plan.ranks, given.numel(), send.numel(), taken.numel())
        apart = abs(given.data_ptr() - taken.data_ptr()) >= given.numel()
        if send.device != recv.device or not apart:
            raise UsageError("expected two separate buffers on one device")
        own = slice(self._plan.rank * shard, (self._plan.rank + 1) * shard)
        taken[own] = given[own]
        spans = self._layout(shard)
        buffers = (given, taken, self._scratch_on(send.device, spans.scratch_bytes))
        for messages in self._plan.by_step:
            operations = [
                each for one in messages for each in self._operations(one, spans, buffers)
            ]
            for work in dist.batch_isend_irecv(operations) if operations else ():
                work.wait()

    def _operations(self, message: int, spans: Spans, buffers: tuple[Tensor, ...]) -> list[Any]:
        """Return one operation per contiguous run of a message, in order."""
        operation = dist.isend if self._plan.sends[message] else dist.irecv
        peer = self._peers[message]
        return [
            dist.P2POp(operation, buffers[buffer][offset : offset + count], peer, self._group)
            for buffer, offset, count in spans.of(message)
            if count
        ]

    def _layout(self, shard: int) -> Spans:
        if self._spans is None or self._spans[0] != shard:
            self._spans = (shard, spans_of(self._plan, shard))
        return self._spans[1]

    def _scratch_on(self, device: Any, size: int) -> Tensor:
        scratch = self._scratch
        if scratch is None or scratch.device != device or scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8, device=device)
        return self._scratch


def _global_rank(group: Group, rank: int) -> int:
    return rank if group is None else int(dist.get_global_rank(group, rank))


def _bytes_of(tensor: Tensor, name: str) -> Tensor:
    """Return a buffer as bytes, in place."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_contiguous():
        raise UsageError(f"the {name} buffer is not a contiguous tensor; give one that is")
    flat = tensor.detach().reshape(-1)
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).view(torch.uint8)


class Endpoint:
    """One rank of a gloo process group on this machine, for `runtime.bench`."""

    def __init__(self, schedule: Schedule, rank: int, store: Path) -> None:
        self.ranks = len(schedule.problem.topology.terminals)
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(str(store), self.ranks),
            rank=rank,
            world_size=self.ranks,
        )
        self._alltoall = Alltoall(schedule)
        self.here = (rank,)
        self.name = f"torch {torch.__version__} gloo"
        self.native_name = "all_to_all_single"

    def exchange(self, send: Bytes, recv: Bytes) -> None:
        """All-to-all by the schedule."""
        self._alltoall(torch.from_numpy(send[0]), torch.from_numpy(recv[0]))

    def native(self, send: Bytes, recv: Bytes) -> None:
        """All-to-all by gloo itself."""
        dist.all_to_all_single(torch.from_numpy(recv[0]), torch.from_numpy(send[0]))

    def barrier(self) -> None:
        """Wait for all ranks."""
        dist.barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        values: list[Any] = [None] * self.ranks
        dist.all_gather_object(values, value)
        return values

    def close(self) -> None:
        """End the process group: a process that exits with gloo's threads running may abort."""
        dist.barrier()
        dist.destroy_process_group()
