"""What a workload needs of the ranks that it runs on, and of an all-to-all: two protocols.

Another way to move shards is a class with `exchange` and `close`, made by a function that takes
the ranks and some options; it is named in a job as `module:function` (`launch.Way`), and the
workloads need not know of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.chunks import PerShard

Bytes = NDArray[np.uint8]


class Ranks(Protocol):
    """The processes of a workload, as one of them sees them."""

    rank: int
    size: int
    name: str

    def barrier(self) -> None:
        """Wait for all ranks."""

    def share(self, value: Any) -> list[Any]:
        """Return the values of all ranks, at every one of them; for what is small."""

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0, and None elsewhere."""

    def close(self) -> None:
        """Take leave of the others; the last call, by all of them."""


class Exchange(Protocol):
    """An all-to-all; every call is collective."""

    name: str

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Send the shards of `send`, by destination, and fill `recv`, by source."""

    def close(self) -> None:
        """Free what is held for it; collective."""


@dataclass(frozen=True)
class Way:
    """A name, and the exchanges that go by it: one for there and one for back, or one for both."""

    name: str
    exchanges: Sequence[Exchange]

    @property
    def carrier(self) -> str:
        """What carries the bytes, in words."""
        return self.exchanges[0].name
