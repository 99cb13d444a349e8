"""A rank of a workload: the protocols of ranks and of exchanges, and the program of a rank.

A further exchange is a class with `exchange` and `close`, made by a function of the ranks and some
options; a job names it as `module:function` (`launch.ExchangeSpec`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard
from alltoall.ir.files.json.values import write_json
from alltoall.registry import load

Bytes = NDArray[np.uint8]

PROGRAMS = {
    "fft3d": "alltoall.workloads.fft3d:transform",
    "moe": "alltoall.workloads.moe:dispatch_and_combine",
}
"""The program of each workload: `(ranks, ways, parameters, turns)` to rows and violations."""


MAX_TURNS = 100_000
"""The most repetitions, timed or before."""


@dataclass(frozen=True)
class Turns:
    """Timed and untimed repetitions of each exchange."""

    iterations: int = 10
    warmup: int = 2

    def __post_init__(self) -> None:
        if not (1 <= self.iterations <= MAX_TURNS and 0 <= self.warmup <= MAX_TURNS):
            raise UsageError(
                f"{self.iterations} iterations after {self.warmup}; expected 1 to {MAX_TURNS:,} "
                f"after 0 to {MAX_TURNS:,}"
            )


class Ranks(Protocol):
    """The processes of a workload, as one of them sees them."""

    rank: int
    size: int
    name: str

    def barrier(self) -> None:
        """Wait for all ranks."""

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks at every rank; for small values."""

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0, and None elsewhere."""

    def close(self) -> None:
        """Disconnect from the others; the last call, collective."""


class Exchange(Protocol):
    """An all-to-all; every call is collective."""

    name: str

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Send the shards of `send`, by destination, and fill `recv`, by source."""

    def close(self) -> None:
        """Free resources; collective."""


@dataclass(frozen=True)
class Way:
    """A named exchange: one for both directions, or one for each."""

    name: str
    exchanges: Sequence[Exchange]

    @property
    def carrier(self) -> str:
        """The transport, in words."""
        return self.exchanges[0].name


def run_workload(job: dict[str, Any], rank: int | None) -> None:
    """Execute a workload's job; the first rank writes the result."""
    ranks = _connect(job, rank)
    ways = [Way(way["name"], [_make(ranks, e) for e in way["exchanges"]]) for way in job["ways"]]
    program: Any = load(PROGRAMS[job["workload"]])
    found = program(ranks, ways, job["parameters"], Turns(**job["turns"]))
    if ranks.rank == 0:
        write_json(Path(job["results"]), {"runtime": ranks.name, **found})
    for way in ways:
        for exchange in way.exchanges:
            exchange.close()
    ranks.close()


def _connect(job: dict[str, Any], rank: int | None) -> Ranks:
    """Connect to the other ranks, in the runtime that the job names."""
    # By name, so that a rank loads the one runtime that it runs on.
    module = import_module(f"alltoall.workloads.over_{job['on']}")
    found: Ranks
    if job["on"] == "mpi":
        found = module.MpiRanks()
    else:
        found = module.TorchRanks(rank, job["ranks"], Path(job["results"]).with_suffix(".store"))
    return found


def _make(ranks: Ranks, spec: dict[str, Any]) -> Exchange:
    made: Exchange = load(spec["make"])(ranks, **spec["options"])
    return made
