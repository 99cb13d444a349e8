"""`Candidate`: a candidate network with its certified time and other criteria."""

import csv
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import solve
from alltoall.flows.symmetry.automorphisms import count_automorphisms, find_generators
from alltoall.flows.symmetry.orbits import orbits
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.routes.baselines.tables import route_sssp
from alltoall.routes.layers.assign import assign_layers
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.operators import cable_links, partner_links, remove_links
from alltoall.topologies.properties import diameter, mean_distance

MAX_COUNT = 10**15
"""Numbers of automorphisms from which on they are a float."""


@dataclass(frozen=True)
class DesignParams:
    """Effort of a design, besides that of its searches.

    A search has `search_share` of a time limit, and the rest is for proofs. Its `kept` best are
    certified, for short distances need not balance, and `shown` of them are compared with the
    families. The `judged` best candidates get layers, by default up to `layered_nodes` nodes, and
    failures, by default `failures` of them if these decide. A certified time takes at most
    `proof_seconds`, layers and a last proof after the time limit at most `grace_seconds`. Below
    `exact_pairs` pairs the exact method is as fast as steps to a gap. If the diameter decides, a
    hop beyond the least possible diameter costs `far_weight`.
    """

    search_share: float = 0.5
    kept: int = 6
    shown: int = 3
    judged: int = 3
    layered_nodes: int = 128
    failures: int = 8
    proof_seconds: float = 30.0
    grace_seconds: float = 10.0
    exact_pairs: int = 1_500
    far_weight: float = 8.0


@dataclass(frozen=True, eq=False)
class Failures:
    """Certified times after single failures: the worst and the mean of those `tried`.

    All failures are known if one of every orbit of cables was tried; the time of a disconnected
    network is infinite.
    """

    worst: float
    mean: float
    tried: int
    all_known: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network with its certified time; `ratio` is that over the bound for any network.

    `layers` and `failures` are None if they were not requested, or too costly.
    """

    name: str
    searched: bool
    topology: Topology
    flow: Flow
    ratio: float
    diameter: int
    mean_distance: float
    automorphisms: float
    price: float | None = None
    layers: int | None = None
    failures: Failures | None = None

    @property
    def time(self) -> float:
        """The certified time of an all-to-all."""
        return self.flow.time

    def summary(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        found = {
            "name": self.name,
            "searched": self.searched,
            "time": self.time,
            "bound": self.flow.bound,
            "ratio": self.ratio,
            "share": 1 / self.ratio,
            "diameter": self.diameter,
            "mean_distance": self.mean_distance,
            "links": self.topology.links,
            "layers": self.layers,
            "automorphisms": self.automorphisms,
        }
        if self.price is not None:
            found["price"] = self.price
        if self.failures is not None:
            worst, mean = self.failures.worst, self.failures.mean
            found["worst_failure"] = worst if np.isfinite(worst) else None
            found["mean_failure"] = mean if np.isfinite(mean) else None
            found["failures_tried"] = self.failures.tried
            found["failures_all_known"] = self.failures.all_known
        return found


def certify_candidate(
    problem: Problem, bound: float, searched: bool, settings: SolveSettings
) -> Candidate:
    """Return a candidate with the certified time of its problem."""
    topology = problem.topology
    exact = len(topology.terminals) ** 2 < DesignParams.exact_pairs
    method = "auto" if exact else "first-order"
    flow = solve(problem, method, limit_seconds(settings, DesignParams.proof_seconds))
    symmetries = count_automorphisms(topology)
    return Candidate(
        name=topology.name,
        searched=searched,
        topology=topology,
        flow=flow,
        ratio=flow.time / bound,
        diameter=diameter(topology),
        mean_distance=mean_distance(topology),
        automorphisms=symmetries if symmetries < MAX_COUNT else float(symmetries),
    )


def with_layers(candidate: Candidate, settings: SolveSettings) -> Candidate:
    """Return the candidate with the number of layers of one shortest path for every pair."""
    routes = route_sssp(candidate.flow.problem, RouteSettings())
    limit = limit_seconds(settings, DesignParams.grace_seconds)
    try:
        return replace(candidate, layers=assign_layers(routes, settings=limit).layers)
    except TimeoutError:
        return candidate


def limit_seconds(settings: SolveSettings, seconds: float) -> SolveSettings:
    """Return settings with a time limit of at most the given seconds."""
    left = settings.seconds_left()
    return settings.limited(seconds if left is None else min(left, seconds))


def with_failures(candidate: Candidate, most: int, seed: int, settings: SolveSettings) -> Candidate:
    """Return the candidate with certified times after single failures, of at most `most` orbits.

    Cables of one orbit fail alike, so one of each orbit is tried, or of `most` random orbits.
    """
    problem, topology = candidate.flow.problem, candidate.topology
    cables = cable_links(topology)
    ends = np.stack([topology.tail[cables], topology.head[cables]])
    place = {pair: at for at, pair in enumerate(zip(*ends.tolist(), strict=True))}
    maps = []
    for generator in find_generators(problem):
        image = np.sort(generator[ends], axis=0) if topology.bidirectional else generator[ends]
        maps.append([place[pair] for pair in zip(*image.tolist(), strict=True)])
    orbit = orbits(np.array(maps, dtype=np.int64).reshape(-1, len(cables)), len(cables))
    _, first, sizes = np.unique(orbit, return_index=True, return_counts=True)
    drawn = np.random.default_rng(seed).permutation(len(sizes))[:most]
    times: list[float] = []
    for cable in first[drawn]:
        if times and settings.out_of_time():
            break
        limit = limit_seconds(settings, DesignParams.proof_seconds)
        try:
            without = remove_links(topology, [(int(ends[0, cable]), int(ends[1, cable]))])
            flow = solve(replace(problem, topology=without), "first-order", limit)
            times.append(flow.time)
        except InputError:  # A terminal is disconnected.
            times.append(float("inf"))
    mean = float(np.average(times, weights=sizes[drawn[: len(times)]]))
    failures = Failures(max(times), mean, len(times), len(times) == len(sizes))
    return replace(candidate, failures=failures)


def patch_list(topology: Topology) -> str:
    """Return a CSV with a line for every cable, or for every link if links are one way.

    Ports of a node are numbered from 1 in the order of its links. With one-way links, the ports to
    send (`from_port`) and to receive (`to_port`) of a node are numbered separately.
    """
    sending, both = _ports(topology.tail), topology.bidirectional
    receiving = sending[partner_links(topology)] if both else _ports(topology.head)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("cable", "from", "from_port", "to", "to_port"))
    for number, link in enumerate(cable_links(topology).tolist(), 1):
        tail, head = (topology.node_name(ends[link]) for ends in (topology.tail, topology.head))
        writer.writerow((number, tail, int(sending[link]), head, int(receiving[link])))
    return text.getvalue()


def _ports(ends: Ints) -> Ints:
    """Return the port of every link at its end, from 1 on."""
    order = np.argsort(ends, kind="stable")
    ports = np.empty(len(ends), dtype=np.int64)
    ports[order] = inner_index(np.bincount(ends)) + 1
    return ports
