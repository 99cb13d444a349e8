"""The fabrics of the paper's two testbeds, and the sizes in figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alltoall
from alltoall.figures.asking import each_value, series, where
from alltoall.figures.figure import Asked, Measurement, Row
from alltoall.figures.picture import Panel

LINK_RATE = "25Gbps"
"""The rate of a link in the paper."""

LATENCY, OVERHEAD = 2e-6, 1e-6
"""Seconds of a hop and of a message, as RDMA takes."""

WHOLE_RUN = 1800.0
"""Time limit of a run on emulated links, in seconds, with the library's own all-to-all."""


@dataclass(frozen=True)
class Fabric:
    """A topology, its host bandwidth in links if limited, and the emulated rate."""

    spec: str
    host_bandwidth: float | None = None
    rate: str = "40mbit"

    def topology(self) -> alltoall.Topology:
        """Return the topology, hosts split from their NICs if they are slower."""
        return alltoall.topology(self.spec, host_bandwidth=self.host_bandwidth)


SMALL = {
    "K4,4": Fabric("bipartite:4x4"),
    "3-cube": Fabric("hypercube:3"),
    "twisted 3-cube": Fabric("twisted-hypercube:3"),
}
"""The testbed of eight GPUs."""

TORUS = {"3x3x3 torus": Fabric("torus:3x3x3", rate="10mbit")}
"""The cluster with forwarding NICs that are faster than hosts."""

HOSTED = {"3x3x3 torus": Fabric("torus:3x3x3", 4.0, "10mbit")}
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
    )


LARGE = 1 << 20
"""Shard size in bytes from which buffers count as large."""


def panels_by_size(rows: Sequence[Row], bound: str, rate: Callable[[str, Row], str]) -> list[Panel]:
    """Return a panel for each kind and fabric; `rate` ends its title."""
    found = [row for row in rows if row[row["kind"]] is not None]
    return [
        _panel(where(found, fabric=name, kind=kind), bound, f"{name}, {kind}", rate)
        for kind in (PREDICTED, MEASURED)
        for name in each_value(where(found, kind=kind), "fabric")
    ]


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


def _panel(rows: Sequence[Row], bound: str, title: str, rate: Callable[[str, Row], str]) -> Panel:
    kind = str(rows[0]["kind"])
    unit, scale = ("GB/s", 1.0) if kind == PREDICTED else ("MB/s", 1e3)
    scaled = [{**row, kind: scale * row[kind], "bound": scale * row["bound"]} for row in rows]
    lines = [series(scaled, "bytes", "bound", bound, dashed=True, style="bound")]
    for way in each_value(scaled, "way"):
        lines.append(series(where(scaled, way=way), "bytes", kind, Path(way).name, style=way))
    title += rate(kind, rows[0])
    return Panel(title, "bytes of a shard", f"{unit} per node", lines, x_log=True, from_zero=True)
