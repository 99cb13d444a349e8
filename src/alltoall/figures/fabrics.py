"""The fabrics of the paper's two testbeds, and the sizes at which figures look at them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import alltoall
from alltoall.figures.asking import by_x, each_value, where
from alltoall.figures.figure import Asked, Finding, Row
from alltoall.figures.picture import Panel, Series

LINK_RATE = "25Gbps"
"""What a link of the paper's fabrics carries."""

LATENCY, OVERHEAD = 2e-6, 1e-6
"""Seconds of a hop and of a message, of the order of what RDMA takes."""

WHOLE_RUN = 1800.0
"""Seconds that all sizes together may take on emulated links, the library's own included."""


@dataclass(frozen=True)
class Fabric:
    """A topology, its host's bandwidth in links if that is less, and the rate to emulate it at."""

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
"""Those of the testbed of eight GPUs."""

TORUS = {"3x3x3 torus": Fabric("torus:3x3x3", rate="10mbit")}
"""That of the cluster, where NICs forward more than hosts can send."""

HOSTED = {"3x3x3 torus": Fabric("torus:3x3x3", 4.0, "10mbit")}
"""The same where all that passes a node passes its host, at 100 Gbit/s of 150."""


def shard_sizes(asked: Asked) -> list[int]:
    """Return the bytes of a shard that are simulated."""
    return [1 << k for k in asked.pick(range(10, 28, 2), range(10, 28, 4), (14, 26))]


def emulated_sizes(asked: Asked, name: str) -> list[int]:
    """Return the bytes of a shard that are sent over emulated links, of a fabric by its name."""
    small = name in SMALL
    whole = [1 << k for k in ((12, 14, 16, 18, 20, 22) if small else (12, 14, 16, 18, 20))]
    return list(asked.pick(whole, [1 << 16, 1 << 20], [1 << 14]))


def emulated_times(asked: Asked, name: str) -> int:
    """Return how often each is sent: over the slow links of 27 nodes one takes up to a minute."""
    return int(asked.pick(3 if name in SMALL else 2, 2, 1))


PREDICTED, MEASURED = "predicted", "measured"
"""The two kinds of rows, and their columns in GB/s per node."""

LARGE = 1 << 20
"""Bytes of a shard that count as large."""


def panels_by_size(rows: Sequence[Row], bound: str, rate: Callable[[str, Row], str]) -> list[Panel]:
    """Return a panel for each kind and fabric, with what the bound is called and links' rates."""
    found = [row for row in rows if row[row["kind"]] is not None]
    return [
        _panel(where(found, fabric=name, kind=kind), bound, f"{name}, {kind}", rate)
        for kind in (PREDICTED, MEASURED)
        for name in each_value(where(found, kind=kind), "fabric")
    ]


def near_bound(rows: Sequence[Row], way: str, kind: str, claim: str, enough: float) -> Finding:
    """Say which share of the upper bound a way reaches on each fabric, at the best of its sizes."""
    found = [row for row in where(rows, way=way, kind=kind) if row[kind] is not None]
    if not found:
        return Finding(claim, "no emulated links here", None, "needs root on Linux")
    shares = {
        name: max(row[kind] / row["bound"] for row in where(found, fabric=name))
        for name in each_value(found, "fabric")
    }
    words = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    measured = f"of the upper bound {words}"
    if max(row["bytes"] for row in found) < LARGE:
        return Finding(claim, measured, None, "only small shards are part of this size")
    return Finding(claim, measured, min(shares.values()) > enough)


def _panel(rows: Sequence[Row], bound: str, title: str, rate: Callable[[str, Row], str]) -> Panel:
    kind = str(rows[0]["kind"])
    unit, scale = ("GB/s", 1.0) if kind == PREDICTED else ("MB/s", 1e3)
    scaled = [{**row, kind: scale * row[kind], "bound": scale * row["bound"]} for row in rows]
    x, least = by_x(where(scaled, way=rows[0]["way"]), "bytes", "bound")
    lines = [Series(bound, x, least, dashed=True, style="bound")]
    for way in each_value(scaled, "way"):
        series = by_x(where(scaled, way=way), "bytes", kind)
        lines.append(Series(Path(str(way)).name, *series, style=str(way)))
    title += rate(kind, rows[0])
    return Panel(title, "bytes of a shard", f"{unit} per node", lines, x_log=True, from_zero=True)
