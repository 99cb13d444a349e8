"""`Flow`: the link flows of every source, their common rate, and the proof of a bound.

A flow with generators has the same load, the mean, on all links of an orbit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.answer import Answer, Certificate
from alltoall.ir.arrays import Floats, Ints, freeze, require_indices
from alltoall.ir.noun import Provenance
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.ir.words import PROVEN, status_in_words


@dataclass(frozen=True, eq=False)
class Orbits:
    """The number of each node's and each link's orbit."""

    of_node: Ints
    of_link: Ints

    def even(self, lengths: Floats, tolerance: float) -> bool:
        """Whether lengths are equal, up to a share, on all links of each orbit."""
        least = np.full(int(self.of_link.max()) + 1, np.inf)
        np.minimum.at(least, self.of_link, lengths)
        return bool(np.all(lengths <= least[self.of_link] * (1 + tolerance)))

    def mean(self, load: Floats) -> Floats:
        """Return for each link the mean of `load` over its orbit."""
        mean = np.bincount(self.of_link, load) / np.bincount(self.of_link)
        return np.asarray(mean[self.of_link])


def orbits_of(topology: Topology, generators: Ints) -> Orbits:
    """Return the orbits of nodes and links under automorphisms.

    Of parallel links the k-th by capacity is mapped to the k-th by capacity.
    """
    order = np.lexsort((topology.capacity, topology.head, topology.tail))
    of_node, of_link = np.arange(topology.nodes), np.arange(topology.links)
    image = np.empty(topology.links, dtype=np.int64)
    for nodes in generators:
        tail, head = nodes[topology.tail[order]], nodes[topology.head[order]]
        image[order[np.lexsort((topology.capacity[order], head, tail))]] = order
        of_node, of_link = _join_classes(of_node, nodes), _join_classes(of_link, image)
    return Orbits(*(np.unique(label, return_inverse=True)[1] for label in (of_node, of_link)))


def _join_classes(label: Ints, image: Ints) -> Ints:
    """Join the class of each item with that of its image: the lower label wins until all agree."""
    while True:
        other = label[image]
        if np.array_equal(label, other):
            return label
        winner = np.arange(len(label))
        np.minimum.at(winner, np.maximum(label, other), np.minimum(label, other))
        label = winner[label]


def sources_per_group(problem: Problem, sources: Ints, orbits: Orbits) -> Floats:
    """Return the number of sources of the problem in the orbit of each of some sources."""
    starts = problem.topology.terminals
    total = np.bincount(orbits.of_node[starts[problem.sources]], minlength=problem.topology.nodes)
    return total[orbits.of_node[starts[sources]]].astype(np.float64)


class Status(StrEnum):
    """The end of a solve; in any case the flow is feasible and the bound is valid."""

    OPTIMAL = "optimal"
    """The certified gap is at most `PROVEN`, which is rounding noise."""
    WITHIN_GAP = "within_gap"
    """The certified gap is at most the requested one, but more than `PROVEN`."""
    GAP_NOT_REACHED = "gap_not_reached"
    """The solver finished, but the certified gap is larger than requested."""
    TIME_LIMIT = "time_limit"
    """The time limit came first."""
    INTERRUPTED = "interrupted"
    """The user stopped it."""

    @classmethod
    def of_gap(cls, gap: float, asked: float, otherwise: "Status") -> "Status":
        """Return the status of a certified gap, or `otherwise` if it is too large."""
        if gap <= asked:
            return cls.OPTIMAL if gap <= PROVEN else cls.WITHIN_GAP
        return cls.GAP_NOT_REACHED if otherwise.done else otherwise

    @property
    def done(self) -> bool:
        """Whether the requested gap is reached."""
        return self in (Status.OPTIMAL, Status.WITHIN_GAP)

    def unless(self, stopped: bool) -> "Status":
        """Return INTERRUPTED instead of TIME_LIMIT if the search was stopped."""
        return Status.INTERRUPTED if stopped and self is Status.TIME_LIMIT else self


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Answer):
    """Link flows that deliver `rate` times the demand within the capacities.

    Flows come in groups, each from one source: a group serves one destination (a commodity) if
    `destination` is given, else all that its source sends. Group g holds the positive flows
    `amount[start[g]:start[g + 1]]` on the links `link[start[g]:start[g + 1]]`. Sources and
    destinations are positions in `topology.terminals`.

    With `generators`, automorphisms of the problem as permutations of the nodes [generators,
    nodes], the groups stand for their orbits: the flow is the average of all images under the
    automorphisms that they generate. So the flow of 32,768 sources on a torus takes the memory of
    one. If the requested gap is reached, the certificate decides whether `status` is optimal.
    """

    BRIEF = ("time", "gap")

    problem: Problem
    rate: float
    source: Ints
    destination: Ints | None
    start: Ints
    link: Ints
    amount: Floats
    certificate: Certificate
    method: str
    status: Status = Status.OPTIMAL
    generators: Ints | None = None
    provenance: Provenance | None = field(default=None, compare=False)
    learnt: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        freeze(self, np.int64, "source", "destination", "start", "link", "generators")
        freeze(self, np.float64, "amount")
        _check_shape(self)
        if self.status.done:
            proven = self.rate > 0 and self.gap <= PROVEN
            object.__setattr__(self, "status", Status.OPTIMAL if proven else Status.WITHIN_GAP)

    @property
    def groups(self) -> int:
        """The number of groups: sources, or commodities."""
        return len(self.source)

    @property
    def time(self) -> float:
        """The all-to-all time, in units of one shard over a link of capacity 1."""
        return 1.0 / self.rate

    def load(self) -> Floats:
        """Return the total flow of the groups on each link."""
        load = np.bincount(self.link, self.amount, self.problem.topology.links)
        return load.astype(np.float64, copy=False)

    def mean_load(self) -> Floats:
        """Return the load of each link, images under the generators included."""
        if self.generators is None:
            return self.load()
        orbits = orbits_of(self.problem.topology, self.generators)
        weight = sources_per_group(self.problem, self.source, orbits)
        amount = self.amount * np.repeat(weight, np.diff(self.start))
        load = np.bincount(self.link, amount, self.problem.topology.links)
        return orbits.mean(load.astype(np.float64, copy=False))

    def _fullness(self) -> Floats:
        return self.mean_load() / self.problem.topology.capacity

    def _facts(self) -> dict[str, str]:
        how = status_in_words(self.status)
        return {**super()._facts(), "groups": f"{self.groups:,}", "status": how}

    def _columns(self) -> dict[str, Iterable[object]]:
        terminal = self.problem.topology.called(self.problem.topology.terminals)
        counts = np.diff(self.start)
        ends = {"source": np.repeat(terminal[self.source], counts)}
        if self.destination is not None:
            ends["destination"] = np.repeat(terminal[self.destination], counts)
        return {**ends, "link": self.link, "amount": self.amount}


def _check_shape(flow: Flow) -> None:
    """Refuse arrays that are not groups; `check.flow` checks the rest."""
    groups, start = len(flow.source), flow.start
    sound = (
        start.shape == (groups + 1,)
        and int(start[0]) == 0
        and bool(np.all(np.diff(start) >= 0))
        and flow.link.shape == flow.amount.shape == (int(start[-1]),)
        and (flow.destination is None or flow.destination.shape == (groups,))
        and flow.certificate.lengths.shape == (flow.problem.topology.links,)
    )
    if not sound:
        raise InputError(
            "the arrays of the flow do not fit together; expected one start per group and one "
            "more, as many links as amounts, and one length per link"
        )
    generators, nodes = flow.generators, flow.problem.topology.nodes
    if generators is not None and (
        flow.destination is not None or generators.ndim != 2 or generators.shape[1] != nodes
    ):
        raise InputError(
            "the generators of the flow do not fit; expected one row each with an image for every "
            "node, and groups per source"
        )
    for key, values, limit in (
        ("generator", generators, nodes),
        ("source", flow.source, len(flow.problem.topology.terminals)),
        ("destination", flow.destination, len(flow.problem.topology.terminals)),
        ("link", flow.link, flow.problem.topology.links),
    ):
        require_indices(values, limit, f"the flow has {key}")
