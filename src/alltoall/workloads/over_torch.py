"""Ranks of a gloo process group, and two exchanges: our backend's, and gloo's own."""

from pathlib import Path
from typing import Any

from alltoall.errors import VerificationError
from alltoall.ir.chunks import PerShard
from alltoall.runtime.torch import dist, torch
from alltoall.runtime.torch_backend import wrap
from alltoall.workloads.ranks import Bytes


class TorchRanks:
    """All ranks that meet at a store."""

    def __init__(self, rank: int, size: int, store: Path) -> None:
        dist.init_process_group(
            "gloo", store=dist.FileStore(str(store), size), rank=rank, world_size=size
        )
        self.rank, self.size = rank, size
        self.name = f"torch {torch.__version__} gloo"

    def barrier(self) -> None:
        """Wait for all ranks."""
        dist.barrier()

    def share(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0."""
        values: list[Any] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, values)
        return values

    def close(self) -> None:
        """End the process group: a process that exits with gloo's threads running may abort."""
        dist.barrier()
        dist.destroy_process_group()


class ByLibrary:
    """Gloo's own exchange."""

    def __init__(self, ranks: TorchRanks) -> None:
        self._rank = ranks.rank
        self._group: Any = None
        self.name = "gloo all_to_all_single"

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange by `all_to_all_single`, with splits for unequal shards."""
        splits = {}
        if shard.counts is not None:
            splits["output_split_sizes"] = shard.counts[:, self._rank].tolist()
            splits["input_split_sizes"] = shard.counts[self._rank].tolist()
        given, taken = torch.from_numpy(send), torch.from_numpy(recv)
        dist.all_to_all_single(taken, given, group=self._group, **splits)

    def close(self) -> None:
        """Nothing is held."""


class BySchedule(ByLibrary):
    """The same call on a group of the backend alltoall, which uses a schedule."""

    def __init__(self, ranks: TorchRanks, messages: str) -> None:
        super().__init__(ranks)
        self._group = wrap(None, [Path(messages)])
        self.name = "schedule, backend alltoall"

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange by the schedule; raise if the backend left it to gloo."""
        super().exchange(send, recv, shard)
        if self._group.passed:
            raise VerificationError(
                "the backend alltoall", [f"an all-to-all went past it: {self._group.report()}"]
            )

    def close(self) -> None:
        """Shut down the group."""
        self._group.shutdown()
