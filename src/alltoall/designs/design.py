"""`Design`: the best network to build, compared with families and other search results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alltoall.designs.candidate import (
    Candidate,
    DesignParams,
    certify_candidate,
    patch_list,
    with_failures,
    with_layers,
)
from alltoall.designs.fitting import (
    FITTING,
    build_without_unit,
    families_that_do_not_fit,
    fitting_specs,
)
from alltoall.designs.search import Found, Pool, anneal_into, search_regular
from alltoall.designs.wiring import Aim, Wiring, wiring_of
from alltoall.errors import UsageError
from alltoall.flows.bounds import cable_bound, regular_bound, tree_levels
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.table import Table
from alltoall.ir.topology import Topology
from alltoall.ir.words import ProgressMessage
from alltoall.lp.settings import never
from alltoall.settings import DesignSettings, SolveSettings

CATALOGUE = "best"
"""The family of known best networks: a design is never worse than these."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """A design task: a wiring to improve, its degree if it is regular, and the demand."""

    wiring: Wiring
    degree: int | None
    demand: Demand

    @property
    def bound(self) -> float:
        """A lower bound on the time of all networks that could be built."""
        if self.degree is not None and self.demand.uniform:
            of_any = regular_bound if self.wiring.directed else cable_bound
            return float(of_any(self.wiring.nodes, self.degree))
        return demand_bound(self.wiring, self.demand)

    def problem_on(self, topology: Topology) -> Problem:
        """Return the problem of a candidate."""
        return Problem(topology, self.demand)


@dataclass(frozen=True, eq=False, repr=False)
class Design(Table):
    """The best network found, and all candidates, the best first.

    `bound` holds for every network of this size and degree. `absent` has the families without a
    member of this size, each with its nearest sizes.
    """

    ROWS = "candidates"

    nodes: int
    degree: int | None
    directed: bool
    objective: str
    bound: float
    candidates: tuple[Candidate, ...]
    best: Candidate
    absent: dict[str, tuple[int, ...]]
    complete: bool

    @property
    def topology(self) -> Topology:
        """The network to build."""
        return self.best.topology

    def patch_list(self) -> str:
        """Return the cables of the network to build as CSV, port to port."""
        return patch_list(self.topology)

    def _title(self) -> str:
        return f"{self.nodes} nodes"

    def _rows(self) -> list[dict[str, Any]]:
        return [each.summary() for each in self.candidates]

    def to_json(self) -> dict[str, Any]:
        """Return all facts as plain values."""
        return {
            "nodes": self.nodes,
            "degree": self.degree,
            "directed": self.directed,
            "objective": self.objective,
            "bound": self.bound,
            "best": self.best.summary(),
            "candidates": self._rows(),
            "absent": {name: list(sizes) for name, sizes in self.absent.items()},
            "complete": self.complete,
        }


def find_design(wanted: Wanted, settings: DesignSettings) -> Design:
    """Compare the families of a size with the results of a search, and choose."""
    solving, failing = settings.solve, settings.objective == "alltoall+failures"
    score = SCORES["alltoall" if failing else settings.objective]  # Failures are not known yet.
    known = list(_families(wanted, solving))
    found = list(_certify(wanted, _search(wanted, settings), settings))
    found = sorted(found, key=score)[: DesignParams.shown]
    if not known and not found:
        raise UsageError(
            "no wiring within these limits was found; raise the budget, free more cables or give "
            "the search more time"
        )
    judged = _judge(sorted([*known, *found], key=score), settings)
    best, size = _choose(judged, settings), (wanted.wiring.nodes, wanted.degree)
    return Design(
        nodes=wanted.wiring.nodes,
        degree=wanted.degree,
        directed=wanted.wiring.directed,
        objective=settings.objective,
        bound=wanted.bound,
        candidates=tuple(judged),
        best=best,
        absent={} if size[1] is None else families_that_do_not_fit(size[0], size[1]),
        complete=not solving.out_of_time(),
    )


def _families(wanted: Wanted, settings: SolveSettings) -> Iterator[Candidate]:
    """Yield the families of this size, certified until the time is up.

    The catalogue comes first, and is always certified: no design is worse than that.
    """
    if wanted.degree is None:
        return
    nodes, degree = wanted.wiring.nodes, wanted.degree
    names = sorted(FITTING, key=lambda name: name != CATALOGUE)
    specs = [spec for name in names for spec in fitting_specs(name, nodes, degree)]
    for number, spec in enumerate(specs):
        sure = spec.startswith(CATALOGUE) and wanted.demand.uniform
        if not sure and settings.sharing(1 - DesignParams.search_share).out_of_time():
            return
        text = f"{spec} ({number} of {len(specs)} families)"
        settings.report(ProgressMessage.of_count(text, number, len(specs)))
        topology = build_without_unit(spec)
        if wanted.wiring.directed or topology.bidirectional:
            share = settings.sharing((1 - DesignParams.search_share) / len(specs))
            within = _in_any_case(settings) if sure else share
            problem = wanted.problem_on(topology)
            yield certify_candidate(problem, wanted.bound, False, within)


def _search(wanted: Wanted, settings: DesignSettings) -> list[Found]:
    """Search for a share of the time: by distances, then by the objective."""
    solving = settings.solve.sharing(DesignParams.search_share)
    wiring, seed = wanted.wiring, settings.seed
    plain, other = Pool(DesignParams.kept), Pool(DesignParams.kept)
    aim = _aim(wanted, settings)
    if wanted.degree is not None and wanted.demand.uniform:
        share = solving if aim is None else solving.sharing(DesignParams.search_share)
        way = "" if wiring.directed else ",bidirectional=true"
        spec = f"{CATALOGUE}:n={wiring.nodes},d={wanted.degree}{way}"
        catalogued = spec in fitting_specs(CATALOGUE, wiring.nodes, wanted.degree)
        known = wiring_of(build_without_unit(spec), wiring.directed) if catalogued else None
        plain = search_regular(wiring, wanted.degree, seed, share, DesignParams.kept, known=known)
    if aim is not None:
        start = next((each.wiring for each in plain), wiring)
        anneal_into(other, start, aim, seed, solving)
    return [*other, *plain]


def _aim(wanted: Wanted, settings: DesignSettings) -> Aim | None:
    """Return the aim of the search, or None for the plain distances of regular networks."""
    if not wanted.demand.uniform:
        matrix = np.array(wanted.demand.matrix)
        return Aim(demand=matrix * (matrix.size - len(matrix)) / matrix.sum())
    if settings.objective == "alltoall+failures":
        return Aim(failures=True)
    if settings.objective == "alltoall+diameter":
        # A lower bound on the diameter of any network of this degree.
        width = wanted.wiring.links / wanted.wiring.nodes
        growth = width if wanted.wiring.directed else width - 1
        depth, reached, level = 0, 1.0, width
        while reached < wanted.wiring.nodes:
            depth, reached, level = depth + 1, reached + max(level, 1.0), level * growth
        return Aim(weight=np.append(np.ones(depth), DesignParams.far_weight))
    return Aim() if wanted.degree is None else None


def _certify(wanted: Wanted, found: list[Found], settings: DesignSettings) -> Iterator[Candidate]:
    """Yield candidates with certified times, without those that cannot be better."""
    solving, least = settings.solve, np.inf
    by_distance = settings.objective == "alltoall" and wanted.demand.uniform
    for each in found:
        if least < np.inf and solving.out_of_time():
            return
        if by_distance and each.time >= least * (1 - 1e-9):
            continue
        solving.report(f"proving {each.name}")
        problem = wanted.problem_on(each.wiring.topology(each.name))
        within = _in_any_case(solving) if solving.out_of_time() else solving
        candidate = certify_candidate(problem, wanted.bound, True, within)
        price = None if each.wiring.price is None else each.wiring.paid()
        least = min(least, candidate.time)
        yield replace(candidate, price=price)


def _in_any_case(settings: SolveSettings) -> SolveSettings:
    """Return settings with at least some seconds left."""
    seconds = DesignParams.grace_seconds
    return replace(settings, stopped=never).limited(seconds)


def _judge(ranked: list[Candidate], settings: DesignSettings) -> list[Candidate]:
    """Add layers and failures to the best candidates, or to all if they decide."""
    failures = settings.failures
    if settings.objective == "alltoall+failures":
        failures = failures or DesignParams.failures
    solving, asked = settings.solve, settings.layers is not None
    found: list[Candidate] = []
    for rank, candidate in enumerate(ranked):
        near = rank < DesignParams.judged and not solving.out_of_time()
        settings.solve.report(f"{candidate.name}: layers and failures")
        judged = candidate
        if asked or (near and candidate.topology.nodes <= DesignParams.layered_nodes):
            judged = with_layers(judged, solving)
        if failures and near:
            judged = with_failures(judged, failures, settings.seed, solving)
        found.append(judged)
    return found


def _choose(judged: list[Candidate], settings: DesignSettings) -> Candidate:
    """Return the best candidate by the objective, within the limit on layers."""
    fits = judged
    if settings.layers is not None:
        layered = [(each.layers, each) for each in judged if each.layers is not None]
        fits = [each for layers, each in layered if layers <= settings.layers]
    if not fits:
        least = min((layers for layers, _ in layered), default=None)
        if least is None:
            raise UsageError(
                "the time was up before it was known how many virtual layers any candidate needs; "
                "allow more time, or leave out the limit on layers"
            )
        raise UsageError(
            f"no candidate gets by with {settings.layers} virtual layers; expected at least {least}"
        )
    return min(fits, key=SCORES[settings.objective])


SCORES: dict[str, Callable[[Candidate], tuple[float, ...]]] = {
    "alltoall": lambda each: (each.time,),
    "alltoall+diameter": lambda each: (each.diameter, each.time),
    "alltoall+failures": lambda each: (each.failures.worst if each.failures else np.inf, each.time),
}
"""The score of each objective; the least is chosen."""


def demand_bound(wiring: Wiring, demand: Demand) -> float:
    """Return a bound on the time of all wirings with these ports, for any demand.

    A node with p ports has at most p others at distance 1, at most the ports of these at distance
    2, and so on; its largest demands go to the nearest nodes. All hops together take the capacity
    of all links.
    """
    ends = np.concatenate([wiring.fixed, wiring.ends])
    ports = np.bincount(ends[:, 0] if wiring.directed else ends.ravel(), minlength=wiring.nodes)
    most = int(ports.max())
    growth = max(most if wiring.directed else most - 1, 1)
    hops = 0.0
    for node in range(wiring.nodes):
        sent = -np.sort(-np.delete(demand.rows(np.array([node]))[0], node))
        levels = np.array(list(tree_levels(int(ports[node]), growth, len(sent))))
        hops += float(sent @ np.repeat(*levels.T))
    return hops / wiring.links
