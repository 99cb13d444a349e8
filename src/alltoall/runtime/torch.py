"""All-to-all by a schedule over torch.distributed; the only file that imports torch.

Every step is one batch of point-to-point operations, which all backends have: gloo, NCCL, MPI. A
rank starts its next step when its messages of this one are done. `runtime.torch_backend` does so
for programs that call torch.distributed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.ir.chunks import PerShard
from alltoall.ir.files.messages import read_rank
from alltoall.ir.messages import RankMessages
from alltoall.ir.program import Buffer
from alltoall.runtime.spans import own_spans, spans_of

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise MissingComponentError(
        f"torch cannot be used: {error}; install it with: {how_to_install('torch')}"
    ) from error

__all__ = ["Endpoint", "GlooRank", "Mover", "by_gloo", "bytes_of", "dist", "shared_sizes", "torch"]

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


def bytes_of(tensor: Tensor) -> Tensor:
    """Return a contiguous buffer as bytes, in place."""
    flat = tensor.detach().reshape(-1)
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).view(torch.uint8)


class GlooRank:
    """A rank of a gloo process group on this machine."""

    native_name = "all_to_all_single"

    def __init__(self, rank: int, size: int, store: Path) -> None:
        dist.init_process_group(
            "gloo", store=dist.FileStore(str(store), size), rank=rank, world_size=size
        )
        self.rank, self.size = rank, size
        self.name = f"torch {torch.__version__} gloo"

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by gloo itself."""
        by_gloo(send[0], recv[0], shard, self.rank)

    def barrier(self) -> None:
        """Wait for all ranks."""
        dist.barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def close(self) -> None:
        """End the process group: a process that exits with gloo's threads running may abort."""
        dist.barrier()
        dist.destroy_process_group()


def by_gloo(send: Bytes, recv: Bytes, shard: PerShard, rank: int, group: Group = None) -> None:
    """Exchange by `all_to_all_single`, with splits for unequal shards."""
    splits = {}
    if shard.counts is not None:
        splits["output_split_sizes"] = shard.counts[:, rank].tolist()
        splits["input_split_sizes"] = shard.counts[rank].tolist()
    given, taken = torch.from_numpy(send), torch.from_numpy(recv)
    dist.all_to_all_single(taken, given, group=group, **splits)


class Endpoint(GlooRank):
    """A rank that exchanges shards by its messages, for `runtime.bench`."""

    def __init__(self, messages: Path, rank: int, store: Path) -> None:
        part = read_rank(messages, rank)
        super().__init__(rank, part.chunks.ranks, store)
        self.ranks, self.demand, self.here = self.size, part.demand, (rank,)
        self._mover = Mover(part, dist.group.WORLD)

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._mover.move(torch.from_numpy(recv[0]), torch.from_numpy(send[0]), shard)
