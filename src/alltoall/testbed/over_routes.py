"""Exchange along routes among the ranks of a workload on a fabric.

Ranks meet by MPI and exchange shards along installed routes, a flow each. `prepared` makes the
options of the ranks' `ByRoutes`.
"""

import socket
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.chunks import PerShard
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.files.json.values import read_json, write_json
from alltoall.ir.routes import Routes
from alltoall.testbed.flows import Rank
from alltoall.testbed.moving import mover
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.routed import SILENCE, flows_of, told_flows
from alltoall.testbed.shares import WEIGHTS, pieces_of
from alltoall.testbed.steering import steer, steered

Bytes = NDArray[np.uint8]


def prepared(bed: Bed, routes: Routes, folder: Path) -> dict[str, str]:
    """Install routes on the fabric; return the options of a rank's `ByRoutes`."""
    library, found = mover(), steered(bed.plan, routes)
    steer(bed, found, "plain")
    saved, job = folder / "routes.npz", folder / "flows.json"
    found.routes.save(saved)
    flows = flows_of(found, None, routes)
    write_json(job, {"flows": flows, "back": found.back.tolist(), "mover": library})
    return {"routes": str(saved), "job": str(job)}


class ByRoutes:
    """One rank's exchange along routes."""

    def __init__(self, ranks: Any, routes: str, job: str) -> None:
        told: Any = read_json(Path(job))
        self._routes = read_as(Path(routes), Routes)
        self._back = np.array(told["back"], dtype=np.int64)
        # Nobody speaks over this line: MPI says when to begin.
        self._quiet, line = socket.socketpair()
        about = {key: told[key] for key in ("flows", "mover")}
        about |= {"ranks": ranks.size, "silence": SILENCE}
        self._rank = Rank(about, ranks.rank, line)
        self._shard: PerShard | None = None
        self.name = f"{self._routes.count} flows along routes"
        self._rank.listen()
        ranks.barrier()
        self._rank.connect()
        ranks.barrier()

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange shards of any sizes along the routes."""
        rank = self._rank
        if self._shard != shard:
            cut = pieces_of(self._routes, shard, WEIGHTS[0])
            rank.size = told_flows(self._routes, self._back, cut)
            self._shard = rank.shard = shard
            rank.lay_out()
        rank.input, rank.output = send.data, recv.data
        rank.exchange()

    def close(self) -> None:
        """Close all flows."""
        for flow in (*self._rank.out.values(), *self._rank.into.values()):
            flow.close()
