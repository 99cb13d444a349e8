"""Print what the compact form of routes saves against JSON, in bytes and seconds, and its check.

The routes are shortest paths, one for every pair, each source in a layer of its own (the paths from
one source are a tree and cannot deadlock). Both forms are written and read in the same run; the
ratios are what to read.

    python benchmarks/artefacts.py --topology genkautz:n=1000,d=4
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from alltoall import Problem
from alltoall.check.flow import recompute_bound
from alltoall.check.routes import check_routes
from alltoall.ir.answer import Certificate
from alltoall.ir.files.artefacts import read_artefact, write_artefact
from alltoall.ir.routes import Routes
from alltoall.topologies.spec import build


def shortest_routes(problem: Problem) -> Routes:
    """Return a shortest path for every pair of nodes, walked back from all ends at once."""
    topology = problem.topology
    nodes = topology.nodes
    ends = (topology.tail, topology.head)
    graph = csr_array((np.ones(topology.links), ends), shape=(nodes, nodes))
    hops, before = shortest_path(graph, unweighted=True, return_predecessors=True)
    link_of = np.zeros((nodes, nodes), dtype=np.int64)
    link_of[ends] = np.arange(topology.links)
    source, node = np.nonzero(~np.eye(nodes, dtype=np.bool_))
    destination, count = node.copy(), hops[source, node].astype(np.int64)
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(count)))
    link, left = np.zeros(start[-1], dtype=np.int64), np.arange(len(source))
    for back in range(1, int(count.max()) + 1):
        left = left[count[left] >= back]
        previous = before[source[left], node[left]]
        link[start[left + 1] - back] = link_of[previous, node[left]]
        node[left] = previous
    lengths = np.ones(topology.links)
    certificate = Certificate(lengths, recompute_bound(problem, lengths)[0])
    weight = np.ones(len(source))
    paths = (source, destination, start, link)
    return Routes(*paths, problem, weight, certificate, "shortest", source, 1)


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what a call returns, and how long it took."""
    started = time.perf_counter()
    return work(*arguments), time.perf_counter() - started


def main() -> None:
    """Print one line per form, the ratios, and the time of the check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--topology", default="genkautz:n=1000,d=4")
    options = parser.parse_args()
    routes = shortest_routes(Problem.all_to_all(build(options.topology)))
    print(f"{options.topology}: {routes.count:,} routes over {len(routes.link):,} links")
    print(f"{'form':>6} {'MB':>8} {'write s':>8} {'read s':>8}")
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in ("json", "npz"):
            path = Path(folder) / f"routes.{form}"
            _, writing = timed(write_artefact, path, routes)
            again, reading = timed(read_artefact, path)
            if not np.array_equal(again.link, routes.link):
                raise SystemExit(f"{form}: the routes that were read are not those written")
            rows[form] = (path.stat().st_size / 1e6, writing, reading)
            print(f"{form:>6} {rows[form][0]:8.2f} {writing:8.2f} {reading:8.2f}", flush=True)
    ratios = (old / new for old, new in zip(rows["json"], rows["npz"], strict=True))
    print(f"{'ratio':>6} " + " ".join(f"{ratio:8.1f}" for ratio in ratios))
    report, checking = timed(check_routes, routes)
    print(f"checked in {checking:.2f} s, {report.layers} layers included")


if __name__ == "__main__":
    main()
