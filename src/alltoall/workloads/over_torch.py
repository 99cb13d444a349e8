"""Ranks of a gloo process group, and two exchanges: our backend's, and gloo's own."""

from pathlib import Path
from typing import Any

from alltoall.errors import VerificationError
from alltoall.ir.chunks import PerShard
from alltoall.runtime.torch import GlooRank, by_gloo, dist
from alltoall.runtime.torch_backend import wrap
from alltoall.workloads.ranks import Bytes


class TorchRanks(GlooRank):
    """All ranks that meet at a store."""

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0."""
        values: list[Any] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, values)
        return values


class ByLibrary:
    """Gloo's own exchange."""

    name = "gloo all_to_all_single"

    def __init__(self, ranks: TorchRanks) -> None:
        self._rank = ranks.rank

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange shards of any sizes."""
        by_gloo(send, recv, shard, self._rank)

    def close(self) -> None:
        """Nothing is held."""


class BySchedule:
    """The same call on a group of the backend alltoall, which uses a schedule."""

    name = "schedule, backend alltoall"

    def __init__(self, ranks: TorchRanks, messages: str) -> None:
        self._rank, self._group = ranks.rank, wrap(None, [Path(messages)])

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange by the schedule; raise if the backend left it to gloo."""
        by_gloo(send, recv, shard, self._rank, self._group)
        if self._group.passed:
            raise VerificationError(
                "the backend alltoall", [f"an all-to-all went past it: {self._group.report()}"]
            )

    def close(self) -> None:
        """Shut down the group."""
        self._group.shutdown()
