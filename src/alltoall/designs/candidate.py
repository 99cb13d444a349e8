"""`Candidate`: a network that could be built, with a certified time and what else decides."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import solve
from alltoall.flows.symmetry.automorphisms import count_automorphisms, find_generators
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.routes.baselines.tables import route_native
from alltoall.routes.layers.assign import assign_layers
from alltoall.settings import LEAST_SECONDS, RouteSettings, SolveSettings, now
from alltoall.topologies.operators import cable_links, partner_links, remove_links
from alltoall.topologies.properties import diameter, mean_distance

MAX_COUNT = 10**15
"""Automorphisms beyond which nobody wants all digits; they are given as a float."""


@dataclass(frozen=True)
class DesignParams:
    """Effort of a design, besides that of its searches.

    A search has `search_share` of a time limit, and the rest is for proofs. Its `kept` best are
    certified, for short distances need not balance, and `shown` of them stand beside the families.
    The `judged` best candidates get layers, up to `layered_nodes` nodes if nobody asks, and
    failures: so many as `failures` where these decide and no number is given. A certified time
    takes at most `proof_seconds`, few layers and the proof of the best after the time limit at most
    `grace_seconds`. Below `exact_pairs` pairs the exact method is as quick as steps to a gap. Where
    the diameter decides, a hop beyond the least possible one costs `far_weight`.
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

    All failures are known if one of every orbit of cables was tried; a failure that cuts the
    network in two takes forever.
    """

    worst: float
    mean: float
    tried: int
    all_known: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network with its certified time; `ratio` is that over the bound for any network.

    `layers` and `failures` are None where they were not asked for, or too costly to be told.
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
        """Return everything as plain values."""
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
            found["worst_failure"] = _finite(self.failures.worst)
            found["mean_failure"] = _finite(self.failures.mean)
            found["failures_tried"] = self.failures.tried
            found["failures_all_known"] = self.failures.all_known
        return found


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def certified(
    topology: Topology,
    problem_on: Callable[[Topology], Problem],
    bound: float,
    searched: bool,
    settings: SolveSettings,
) -> Candidate:
    """Return a candidate with the certified time of its problem."""
    problem = problem_on(topology)
    flow = solve(problem, _method(problem), limited(settings, DesignParams.proof_seconds))
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


def _method(problem: Problem) -> str:
    """Return the method: exact where that takes no time, else steps to a gap."""
    terminals = len(problem.topology.terminals)
    return "auto" if terminals * terminals < DesignParams.exact_pairs else "first-order"


def with_layers(candidate: Candidate, settings: SolveSettings) -> Candidate:
    """Return the candidate with the layers that one shortest path for every pair needs."""
    routes = route_native(candidate.flow.problem, RouteSettings())
    limit = limited(settings, DesignParams.grace_seconds)
    try:
        return replace(candidate, layers=assign_layers(routes, settings=limit).layers)
    except TimeoutError:
        return candidate


def limited(settings: SolveSettings, seconds: float) -> SolveSettings:
    """Return settings that stop after so many seconds, if not before."""
    left = settings.seconds_left()
    limit = seconds if left is None else max(min(left, seconds), LEAST_SECONDS)
    return replace(settings, time_limit=limit, started=now())


def with_failures(candidate: Candidate, most: int, seed: int, settings: SolveSettings) -> Candidate:
    """Return the candidate with certified times after single failures, of at most so many orbits.

    Cables that an automorphism maps to each other fail alike, so one of each orbit is tried; if
    there are more orbits than `most`, random ones.
    """
    problem = candidate.flow.problem
    orbits = _cable_orbits(problem)
    sizes = np.bincount(orbits)
    named = np.flatnonzero(sizes)
    drawn = np.random.default_rng(seed).permutation(named)[:most]
    cables = cable_links(problem.topology)
    times: list[float] = []
    for each in drawn:
        if times and settings.out_of_time():
            break
        link = int(cables[int(np.flatnonzero(orbits == each)[0])])
        times.append(_time_without(problem, link, settings))
    tried = drawn[: len(times)]
    mean = float(np.average(times, weights=sizes[tried]))
    return replace(
        candidate,
        failures=Failures(max(times), mean, len(times), len(times) == len(named)),
    )


def _time_without(problem: Problem, link: int, settings: SolveSettings) -> float:
    """Return the certified time without a link, and its way back over the same cable."""
    topology = problem.topology
    ends = (int(topology.tail[link]), int(topology.head[link]))
    try:
        without = replace(problem, topology=remove_links(topology, [ends]))
        return solve(without, "first-order", limited(settings, DesignParams.proof_seconds)).time
    except InputError:  # Some terminal is cut off.
        return float("inf")


def _cable_orbits(problem: Problem) -> Ints:
    """Return a number for every cable, the same for those that automorphisms map to each other."""
    topology = problem.topology
    cables = cable_links(topology)
    keys = topology.tail[cables] * topology.nodes + topology.head[cables]
    place = {int(key): at for at, key in enumerate(keys)}
    orbit = np.arange(len(cables), dtype=np.int64)
    maps = []
    for generator in find_generators(problem):
        tail, head = generator[topology.tail[cables]], generator[topology.head[cables]]
        if topology.bidirectional:
            tail, head = np.minimum(tail, head), np.maximum(tail, head)
        maps.append(np.array([place[int(key)] for key in tail * topology.nodes + head]))
    changed = True
    while changed:
        before = orbit.copy()
        for each in maps:
            least = np.minimum(orbit, orbit[each])
            np.minimum.at(least, each, orbit)
            orbit = least
        changed = not np.array_equal(before, orbit)
    return orbit


def patch_list(topology: Topology) -> str:
    """Return a CSV with a line for every cable, or for every link if links are one way.

    Ports of a node are numbered from 1 in the order of its links. Of one-way links a node has
    ports to send (`from_port`) and ports to receive (`to_port`), each numbered by itself.
    """
    cables = cable_links(topology)
    sending = _ports(topology.tail)
    receiving = (
        sending[partner_links(topology)] if topology.bidirectional else _ports(topology.head)
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("cable", "from", "from_port", "to", "to_port"))
    for number, link in enumerate(cables.tolist(), 1):
        tail, head = (
            topology.node_name(int(ends[link])) for ends in (topology.tail, topology.head)
        )
        writer.writerow((number, tail, int(sending[link]), head, int(receiving[link])))
    return text.getvalue()


def _ports(ends: Ints) -> Ints:
    """Return for every link which of the links at its end it is, from 1 on."""
    order = np.argsort(ends, kind="stable")
    ports = np.empty(len(ends), dtype=np.int64)
    ports[order] = inner_index(np.bincount(ends)) + 1
    return ports
