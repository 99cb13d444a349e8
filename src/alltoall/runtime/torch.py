"""All-to-all by a schedule over torch.distributed; the only file that imports torch.

    alltoall = Alltoall(schedule)          # or Alltoall(schedule, group)
    alltoall(output, input)                # as dist.all_to_all_single(output, input)

Every step is one batch of point-to-point operations, which all backends have: gloo, NCCL, MPI. A
rank starts its next step when its messages of this one are done. `runtime.torch_backend` does the
same for programs that call torch.distributed themselves.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import AlltoallError, MissingComponentError, UsageError, how_to_install
from alltoall.ir.chunks import PerShard
from alltoall.ir.files.messages import messages_from_text, messages_text, read_rank
from alltoall.ir.messages import RankMessages
from alltoall.ir.program import Buffer
from alltoall.runtime.parts import Work, is_spec, messages_for, part_of
from alltoall.runtime.spans import Sizes, own_spans, sizes_of, spans_of

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise MissingComponentError(
        f"torch cannot be used: {error}; install it with: {how_to_install('torch')}"
    ) from error

__all__ = ["Alltoall", "Endpoint", "Mover", "bytes_of", "dist", "shared_sizes", "torch"]

Bytes = NDArray[np.uint8]
Tensor: TypeAlias = Any
Group: TypeAlias = Any
Operation: TypeAlias = tuple[bool, int, Tensor]
"""Whether it sends, the rank of its peer in the group, and the bytes."""

MAX_LAYOUTS = 4
"""Cached layouts: a training step has two sizes, forward and backward."""


class Mover:
    """The steps of one rank in a process group, on any two byte buffers.

    `group` need not be known to torch.distributed: only its own methods are used.
    """

    def __init__(self, plan: RankMessages, group: Group) -> None:
        self.plan, self.group = plan, group
        self._layouts: dict[int | bytes, _Layout] = {}
        self._scratch: Tensor = None

    def move(self, taken: Tensor, given: Tensor, shard: PerShard) -> None:
        """Send every shard of `given`, and fill `taken` with the received ones."""
        own, to = own_spans(self.plan.rank, shard)
        taken[to] = given[own]
        layout = self._layout(shard)
        memory = (given, taken, self._scratch_on(given.device, layout.scratch_bytes))
        for step in layout.steps:
            self._batch([(sends, peer, memory[where][run]) for sends, peer, where, run in step])

    def _batch(self, operations: list[Operation]) -> None:
        """Run all operations of a step, as one batch if the backend can, and wait for them."""
        if not operations:
            return
        group, device = self.group, operations[0][2].device
        together = group._get_backend(device).supports_coalescing
        if together:
            group._start_coalescing(device)
        works = [
            (group.send if sends else group.recv)([tensor], peer, 0)
            for sends, peer, tensor in operations
        ]
        for work in [group._end_coalescing(device)] if together else works:
            work.wait()

    def _layout(self, shard: PerShard) -> "_Layout":
        key = shard.most if shard.counts is None else shard.counts.tobytes()
        if key not in self._layouts:
            while len(self._layouts) >= MAX_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[key] = _Layout(self.plan, shard)
        return self._layouts[key]

    def _scratch_on(self, device: Any, size: int) -> Tensor:
        scratch = self._scratch
        if scratch is None or scratch.device != device or scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8, device=device)
        return self._scratch


class _Layout:
    """The operations of every step for given shard sizes: one per contiguous run of bytes."""

    def __init__(self, plan: RankMessages, shard: PerShard) -> None:
        spans = spans_of(plan, shard)
        sends, peers = plan.sends.tolist(), plan.peer.tolist()
        self.scratch_bytes = spans.scratch_bytes
        self.steps: list[list[tuple[bool, int, Buffer, slice]]] = [
            [
                (sends[message], peers[message], buffer, slice(offset, offset + count))
                for message in messages
                for buffer, offset, count in spans.of(message)
                if count
            ]
            for messages in plan.by_step
        ]


class Alltoall:
    """An all-to-all by one schedule among the ranks of one process group.

    Rank r of the group is `topology.terminals[r]`, and ranks communicate along links of the
    topology only. Calls are collective; so is the construction from a SPEC, which rank 0 solves.

    Args:
        work: a schedule, its messages, the path of either, or the SPEC of a topology.
        group: the process group; the default one if left out.

    """

    def __init__(self, work: Work | str | PathLike[str], group: Group = None) -> None:
        group = group or dist.group.WORLD
        rank, found = group.rank(), group.size()
        if isinstance(work, str | PathLike):
            work = _shared(work, group) if is_spec(work) else messages_for(work)
        ranks = work.chunks.ranks
        if found != ranks:
            raise UsageError(
                f"a process group of {found} ranks for a schedule of {ranks}; "
                "expected one rank per terminal"
            )
        self._mover = Mover(part_of(work, rank), group)

    def __call__(self, output: Tensor, input: Tensor, sizes: Sizes = None) -> None:
        """Send shard d of `input` to rank d; receive shard s of `output` from rank s.

        In PyTorch's order, and with its rules: contiguous tensors of one type on one device, that
        do not overlap. If `sizes` is left out, both are of one size, and their first dimension is
        a multiple of the number of ranks; else it is the bytes of a shard of size 1, or a matrix
        with the bytes of every pair, the same at all ranks.
        """
        plan = self._mover.plan
        taken, given = bytes_of(output, "output"), bytes_of(input, "input")
        if sizes is None and plan.demand.uniform:
            _require_alike(output, input, plan.chunks.ranks)
        _require_fit(output, input)
        buffers = ((given.numel(), input.numel()), taken.numel())
        self._mover.move(taken, given, sizes_of(plan, sizes, *buffers))

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Send tensor d of `inputs` to rank d; receive tensor s of `outputs` from rank s.

        As PyTorch's `all_to_all`: tensors of any shapes, of one type on one device. Tensors of rank
        s for rank d and the room at rank d have equal sizes, which ranks exchange first.
        """
        plan, ranks = self._mover.plan, self._mover.plan.chunks.ranks
        if not len(outputs) == len(inputs) == ranks:
            raise UsageError(
                f"{len(outputs)} tensors to receive and {len(inputs)} to send in a group of "
                f"{ranks}; expected one per rank"
            )
        given = torch.cat([bytes_of(each.contiguous(), "input") for each in inputs])
        room = [each.numel() * each.element_size() for each in outputs]
        sent = [each.numel() * each.element_size() for each in inputs]
        shard = shared_sizes(self._mover.group, (sent, room), given.device)
        taken = torch.empty(sum(room), dtype=torch.uint8, device=given.device)
        buffers = ((given.numel(), given.numel()), taken.numel())
        self._mover.move(taken, given, sizes_of(plan, shard, *buffers))
        for output, part in zip(outputs, taken.split(room), strict=True):
            output.detach().copy_(part.view(output.dtype).view(output.shape))


def _shared(spec: str | PathLike[str], group: Group) -> Work:
    """Return the messages of a SPEC, which rank 0 makes for all ranks."""
    said: list[Any] = [False, ""]
    if group.rank() == 0:
        try:
            said = [True, messages_text(messages_for(str(spec)))]
        except AlltoallError as error:
            said = [False, str(error)]
    dist.broadcast_object_list(said, dist.get_global_rank(group, 0), group)
    if not said[0]:
        raise UsageError(said[1])
    return messages_from_text(said[1], str(spec))


def shared_sizes(group: Group, sizes: tuple[Sequence[int], Sequence[int]], device: Any) -> PerShard:
    """Return the bytes of every pair, from what each rank sends and has room for.

    If the two ends of a pair disagree, all ranks raise the same error: none is left waiting.
    """
    ranks = group.size()
    mine = torch.tensor([*sizes[0], *sizes[1]], dtype=torch.int64, device=device)
    rows = [torch.empty_like(mine) for _ in range(ranks)]
    group.allgather([rows], [mine]).wait()
    table = torch.stack(rows).cpu().numpy()
    sent, room = table[:, :ranks], table[:, ranks:].T
    wrong = np.argwhere(sent != room)
    if len(wrong):
        source, to = wrong[0].tolist()
        raise RuntimeError(
            f"rank {source} sends {sent[source, to]} bytes to rank {to}, which has room for "
            f"{room[source, to]}: the input split sizes of a rank must be the output split sizes "
            "of the others"
        )
    return PerShard(ranks, counts=sent)


def bytes_of(tensor: Tensor, name: str) -> Tensor:
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
    """Refuse tensors that cannot be cut into one equal shard per rank."""
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
    """Refuse arguments that `all_to_all_single` refuses, and likely mistakes."""
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
