"""An entry of the catalogue: the best network of a size and degree that a search of it found."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.designs.candidate import Candidate, DesignParams, certified
from alltoall.designs.design import Wanted, wanted_regular
from alltoall.designs.fitting import FITTING, fitting_specs
from alltoall.designs.search import search_regular
from alltoall.designs.wiring import wiring_of
from alltoall.errors import UsageError
from alltoall.flows.bounds import distance_bound
from alltoall.ir.topology import Topology
from alltoall.settings import DESIGN_GAP, SolveSettings
from alltoall.topologies.digraphs import genkautz
from alltoall.topologies.expanders import catalogued
from alltoall.topologies.spec import build

COMPARED = sorted(FITTING.keys() - {"best", "genkautz", "jellyfish", "xpander"})
"""Families that an entry may be, besides generalized Kautz graphs."""

NEAR = 1.1
"""How far above the bound the distances of a family may be, to be compared."""


@dataclass(frozen=True)
class Task:
    """What is searched for: a size, a degree, and how long and from which seed."""

    nodes: int
    degree: int
    directed: bool
    effort: float
    seed: int


@dataclass(frozen=True, eq=False)
class Entry:
    """The best found: its certified time, the certified bound on it, and its links.

    `kautz` is the certified time of the generalized Kautz graph with its self-loops rewired, 0 for
    cables and where the catalogue has it already.
    """

    task: Task
    name: str
    topology: Topology
    time: float
    bound: float
    kautz: float


def search_entry(task: Task) -> Entry:
    """Search for one entry: never worse than that of the catalogue, nor than any family."""
    wanted = wanted_regular(task.nodes, task.degree, task.directed)
    settings = SolveSettings(gap=DESIGN_GAP, workers=1)
    known = list(_catalogued(wanted, settings)) or list(_families(wanted, settings))
    best = min(known, key=lambda each: each.time, default=None)
    start = None if best is None else wiring_of(best.topology, task.directed)
    pool = search_regular(
        wanted.wiring, task.degree, task.seed, settings, DesignParams.kept, task.effort, start
    )
    for each in pool:
        if best is None or each.time < best.time * (1 - 1e-9):
            topology = each.wiring.topology(each.name)
            found = certified(topology, wanted.problem_on, wanted.bound, True, settings)
            best = found if best is None or found.time < best.time else best
    if best is None:
        raise UsageError(f"{task}: the search found no wiring; expected more effort")
    kautz = next((each.time for each in known if each.name.startswith("genkautz")), 0.0)
    return Entry(task, best.name, best.topology, best.time, best.flow.bound, kautz)


def _catalogued(wanted: Wanted, settings: SolveSettings) -> Iterator[Candidate]:
    """Yield the entries that the catalogue has; those of cables are networks of one-way links."""
    for topology in map(build, catalogued(wanted.wiring.nodes, wanted.degree or 1)):
        if wanted.wiring.directed or topology.bidirectional:
            yield certified(topology, wanted.problem_on, wanted.bound, False, settings)


def _families(wanted: Wanted, settings: SolveSettings) -> Iterator[Candidate]:
    """Yield generalized Kautz, and families whose distances leave them a chance."""
    nodes, degree = wanted.wiring.nodes, wanted.degree or 1
    if wanted.wiring.directed:
        kautz = genkautz(nodes, degree, rewire=True)
        yield certified(kautz, wanted.problem_on, wanted.bound, False, settings)
    specs = [spec for name in COMPARED for spec in fitting_specs(name, nodes, degree)]
    for topology in map(build, specs):
        regular = {*topology.out_degree.tolist(), *topology.in_degree.tolist()} == {degree}
        fits = regular and (wanted.wiring.directed or topology.bidirectional)
        if fits and distance_bound(wanted.problem_on(topology)) < NEAR * wanted.bound:
            yield certified(topology, wanted.problem_on, wanted.bound, False, settings)


def packed(topology: Topology) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """Return the heads of all links in order of their tails, as bytes: at most 256 nodes."""
    order = np.lexsort((topology.head, topology.tail))
    return topology.head[order].astype(np.uint8)
