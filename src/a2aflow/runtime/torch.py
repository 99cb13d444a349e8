"""All-to-all by a schedule over torch.distributed; the only file that imports torch.

    alltoall = Alltoall(schedule)          # or Alltoall(schedule, group)
    alltoall(output, input)                # as dist.all_to_all_single(output, input)

Every step is one batch of point-to-point operations, which all backends have: gloo, NCCL, MPI.
A rank goes on to its next step when its own messages of this one are done.
"""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import MissingComponentError, UsageError
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering.programs.messages import plan_of
from a2aflow.runtime.spans import Spans, spans_of

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

    def __call__(self, output: Tensor, input: Tensor) -> None:
        """Send shard d of `input` to rank d; what rank s sends becomes shard s of `output`.

        In PyTorch's order, and with its rules: contiguous tensors of one type and size on one
        device, whose first dimension is a multiple of the number of ranks. They must not overlap.
        """
        taken, given = _bytes_of(output, "output"), _bytes_of(input, "input")
        _require_fit(output, input, self._plan.ranks)
        shard = given.numel() // self._plan.ranks
        own = slice(self._plan.rank * shard, (self._plan.rank + 1) * shard)
        taken[own] = given[own]
        spans = self._layout(shard)
        buffers = (given, taken, self._scratch_on(given.device, spans.scratch_bytes))
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
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(
            f"expected parameter `{name}` of type torch.Tensor, got {type(tensor).__name__}"
        )
    # Of a conjugate or negative view, memory holds something else than its values.
    if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        raise UsageError(f"tensors must be contiguous: the {name} is not; give one that is")
    flat = tensor.detach().reshape(-1)
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).view(torch.uint8)


def _require_fit(output: Tensor, input: Tensor, ranks: int) -> None:
    """Refuse what `all_to_all_single` would, and what is more likely a mistake than meant."""
    kinds = [(each.numel(), each.dtype, each.device) for each in (output, input)]
    if kinds[0] != kinds[1]:
        told = " and ".join(f"{count} of {dtype} on {device}" for count, dtype, device in kinds)
        raise UsageError(f"tensors are not equal in size, data type or device: found {told}")
    if any(each.ndim == 0 or each.shape[0] % ranks for each in (output, input)):
        raise UsageError(
            f"dimension 0 does not divide equally across group size {ranks}: found shapes "
            f"{tuple(output.shape)} and {tuple(input.shape)}; one equal shard per rank (pad it)"
        )
    if output.requires_grad:
        raise UsageError(
            "the output requires grad, so it is not one to write to; the order is (output, input)"
        )
    size = input.numel() * input.element_size()
    if abs(output.data_ptr() - input.data_ptr()) < size:
        raise UsageError("the output overlaps with the input; expected two separate tensors")


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
        self._alltoall(torch.from_numpy(recv[0]), torch.from_numpy(send[0]))

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
