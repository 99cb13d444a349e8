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
from a2aflow.ir.chunks import PerShard
from a2aflow.ir.files.messages import read_rank
from a2aflow.runtime.parts import Work, part_of
from a2aflow.runtime.spans import Sizes, Spans, own_spans, sizes_of, spans_of

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

    def __init__(self, work: Work, group: Group = None) -> None:
        ranks, found = work.chunks.ranks, dist.get_world_size(group)
        if found != ranks:
            raise UsageError(
                f"a process group of {found} ranks for a schedule of {ranks}; "
                "expected one rank per terminal"
            )
        self._group = group
        self._plan = part_of(work, dist.get_rank(group))
        self._peers = [_global_rank(group, peer) for peer in self._plan.peer.tolist()]
        self._spans: tuple[int | bytes, Spans] | None = None
        self._scratch: Tensor = None

    def __call__(self, output: Tensor, input: Tensor, sizes: Sizes = None) -> None:
        """Send shard d of `input` to rank d; what rank s sends becomes shard s of `output`.

        In PyTorch's order, and with its rules: contiguous tensors of one type on one device, that
        do not overlap. If `sizes` is left out, both are of one size, and their first dimension is
        a multiple of the number of ranks; else it is the bytes of a shard of size 1, or a matrix
        with the bytes of every pair, the same at all ranks.
        """
        taken, given = _bytes_of(output, "output"), _bytes_of(input, "input")
        if sizes is None and self._plan.demand.uniform:
            _require_alike(output, input, self._plan.chunks.ranks)
        _require_fit(output, input)
        buffers = ((given.numel(), input.numel()), taken.numel())
        shard = sizes_of(self._plan, sizes, *buffers)
        own, to = own_spans(self._plan.rank, shard)
        taken[to] = given[own]
        spans = self._layout(shard)
        memory = (given, taken, self._scratch_on(given.device, spans.scratch_bytes))
        for messages in self._plan.by_step:
            operations = [each for one in messages for each in self._operations(one, spans, memory)]
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

    def _layout(self, shard: PerShard) -> Spans:
        key = shard.most if shard.counts is None else shard.counts.tobytes()
        if self._spans is None or self._spans[0] != key:
            self._spans = (key, spans_of(self._plan, shard))
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


def _require_alike(output: Tensor, input: Tensor, ranks: int) -> None:
    """Refuse tensors that are not one equal shard per rank."""
    kinds = [(each.numel(), each.dtype, each.device) for each in (output, input)]
    if kinds[0] != kinds[1]:
        told = " and ".join(f"{count} of {dtype} on {device}" for count, dtype, device in kinds)
        raise UsageError(f"tensors are not equal in size, data type or device: found {told}")
    if any(each.ndim == 0 or each.shape[0] % ranks for each in (output, input)):
        raise UsageError(
            f"dimension 0 does not divide equally across group size {ranks}: found shapes "
            f"{tuple(output.shape)} and {tuple(input.shape)}; one equal shard per rank (pad it)"
        )


def _require_fit(output: Tensor, input: Tensor) -> None:
    """Refuse what `all_to_all_single` would, and what is more likely a mistake than meant."""
    if (output.dtype, output.device) != (input.dtype, input.device):
        raise UsageError(
            f"tensors are not equal in data type or device: found {output.dtype} on "
            f"{output.device} and {input.dtype} on {input.device}"
        )
    if output.requires_grad:
        raise UsageError(
            "the output requires grad, so it is not one to write to; the order is (output, input)"
        )
    first, second = sorted((output, input), key=lambda each: int(each.data_ptr()))
    size = first.numel() * first.element_size()
    if second.numel() and second.data_ptr() - first.data_ptr() < size:
        raise UsageError("the output overlaps with the input; expected two separate tensors")


class Endpoint:
    """One rank of a gloo process group on this machine, for `runtime.bench`."""

    def __init__(self, messages: Path, rank: int, store: Path) -> None:
        part = read_rank(messages, rank)
        self.ranks, self.demand = part.chunks.ranks, part.demand
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(str(store), self.ranks),
            rank=rank,
            world_size=self.ranks,
        )
        self._alltoall = Alltoall(part)
        self.here = (rank,)
        self.name = f"torch {torch.__version__} gloo"
        self.native_name = "all_to_all_single"

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(torch.from_numpy(recv[0]), torch.from_numpy(send[0]), shard)

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by gloo itself."""
        splits = {}
        if shard.counts is not None:
            splits["output_split_sizes"] = shard.counts[:, self.here[0]].tolist()
            splits["input_split_sizes"] = shard.counts[self.here[0]].tolist()
        dist.all_to_all_single(torch.from_numpy(recv[0]), torch.from_numpy(send[0]), **splits)

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
