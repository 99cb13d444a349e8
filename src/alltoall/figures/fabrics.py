"""The fabrics of the paper's two testbeds, and the sizes in figures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import alltoall
from alltoall.figures.asking import each_value, lines_by, where
from alltoall.figures.figure import Asked, Measurement, Row
from alltoall.figures.picture import Panel, Series

LINK_RATE = "25Gbps"
"""The rate of a link in the paper."""

LATENCY, OVERHEAD = 2e-6, 1e-6
"""Seconds of a hop and of a message, as RDMA takes."""

WHOLE_RUN = 1800.0
"""Time limit of a run on emulated links, in seconds, with the library's own all-to-all."""


@dataclass(frozen=True)
class Fabric:
    """A topology, its host bandwidth in links if limited, the emulated rate, and the hosts."""

    spec: str
    host_bandwidth: float | None = None
    rate: str = "40mbit"
    hosts: int = 8

    def topology(self) -> alltoall.Topology:
        """Return the topology, hosts split from their NICs if they are slower."""
        return alltoall.topology(self.spec, host_bandwidth=self.host_bandwidth)


SMALL = {
    "K4,4": Fabric("bipartite:4x4"),
    "3-cube": Fabric("hypercube:3"),
    "twisted 3-cube": Fabric("twisted-hypercube:3"),
}
"""The testbed of eight GPUs."""

TORUS = {"3x3x3 torus": Fabric("torus:3x3x3", None, "10mbit", 27)}
"""The cluster with forwarding NICs that are faster than hosts."""

HOSTED = {"3x3x3 torus": Fabric("torus:3x3x3", 4.0, "10mbit", 27)}
"""The cluster with forwarding hosts, at 100 of 150 Gbit/s."""


def shard_sizes(asked: Asked) -> list[int]:
    """Return the simulated shard sizes in bytes."""
    return [1 << k for k in asked.pick(range(10, 28, 2), range(10, 28, 4), (14, 26))]


def emulated_sizes(asked: Asked, name: str) -> list[int]:
    """Return the shard sizes sent over emulated links."""
    small = name in SMALL
    whole = [1 << k for k in ((12, 14, 16, 18, 20, 22) if small else (12, 14, 16, 18, 20))]
    return list(asked.pick(whole, [1 << 16, 1 << 20], [1 << 14]))


def emulated_times(asked: Asked, name: str) -> int:
    """Return the iterations of each size; one takes up to a minute over 27 nodes."""
    return int(asked.pick(3 if name in SMALL else 2, 2, 1))


CUT = "cut off"
"""The status of an algorithm that its time limit ended."""

PREDICTED, MEASURED = "predicted", "measured"
"""The kinds of rows and their columns, in GB/s per node."""

GIGA = 1e9


def rates(row: Any, kind: str) -> dict[str, Any]:
    """Return the columns of a row that `simulate` or `run` returned."""
    throughput, bound = row.throughput / GIGA, row.bound_throughput / GIGA
    return {"bytes": row.bytes, "bound": bound, kind: throughput}


def run_emulated(
    subject: Any,
    fabric: Fabric,
    sizes: list[int],
    iterations: int,
    topology: alltoall.Topology | None = None,
    native: bool = True,
    steering: str = "plain",
) -> Any:
    """Run on emulated links, beside the library's own all-to-all if `native`; return the report."""
    return alltoall.run(
        subject,
        on="testbed",
        bytes=sizes,
        iterations=iterations,
        timeout=WHOLE_RUN,
        rate=fabric.rate,
        topology=topology,
        native=native,
        steering=steering,
    )


LARGE = 1 << 20
"""Shard size in bytes from which buffers count as large."""


def share_of_bound(rows: Sequence[Row], way: str, kind: str) -> Measurement | None:
    """Return the share of the upper bound of an algorithm on each fabric, at its best size."""
    found = [row for row in where(rows, way=way, kind=kind) if row[kind] is not None]
    if not found:
        return Measurement(None, "no emulated links here", "needs root on Linux")
    shares = {
        name: max(row[kind] / row["bound"] for row in where(found, fabric=name))
        for name in each_value(found, "fabric")
    }
    words = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    if max(row["bytes"] for row in found) < LARGE:
        return Measurement(None, words, "only small shards are part of this size")
    return Measurement(min(shares.values()), words)


def panels_by_size(rows: Sequence[Row], left_out: Sequence[str] = ()) -> list[Panel]:
    """Return a panel for each kind and fabric: throughput against the buffer, N times the shard."""
    shown = [row for row in rows if row[row["kind"]] is not None and row["way"] not in left_out]
    return [
        _panel(where(shown, fabric=name, kind=kind), name, kind)
        for kind in (PREDICTED, MEASURED)
        for name in each_value(where(shown, kind=kind), "fabric")
    ]


def _panel(rows: Sequence[Row], name: str, kind: str) -> Panel:
    fabric = (SMALL | TORUS)[name]
    unit, scale = ("GB/s", 1.0) if kind == PREDICTED else ("MB/s", 1e3)
    scaled = [
        {**row, "buffer": fabric.hosts * row["bytes"], "rate": scale * row[kind]} for row in rows
    ]
    # The bound of these is that of another topology, without hosts.
    known = [row["bound"] for row in rows if row["way"] not in ("sccl", "taccl")]
    bound = scale * max(known)
    ends = [end([row["buffer"] for row in scaled]) for end in (min, max)]
    cut = {row["way"] for row in rows if row.get("status") == CUT}
    lines = [
        Series("upper bound (N-1)fb", ends, [bound, bound], "bound", style="bound"),
        *(
            replace(line, cut=line.style in cut)
            for line in lines_by(scaled, "way", "buffer", "rate")
        ),
    ]
    title = f"{name}, {kind} ({LINK_RATE if kind == PREDICTED else fabric.rate})"
    return Panel(title, "buffer in bytes", f"{unit} per node", lines, x_log=True, from_zero=True)
