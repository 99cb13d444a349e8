"""`Routes`: weighted paths per pair, with a virtual layer each once assigned."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.answer import Answer
from a2aflow.ir.arrays import Floats, Ints, frozen
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.ir.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False)
class Routes(Answer):
    """Route r takes `weight[r]` shards from `source[r]` to `destination[r]`.

    It does so over the links `link[start[r]:start[r + 1]]`, in that order. Sources and destinations
    are positions in `topology.terminals`; the weights of a pair add up to its demand. `layer` is
    the virtual layer of each route, None until layers have been assigned. If `denominator` is
    given, every weight is a whole multiple of 1 / denominator.
    """

    BRIEF = ("time", "gap", "routes", "layers")

    problem: Problem
    source: Ints
    destination: Ints
    start: Ints
    link: Ints
    weight: Floats
    certificate: Certificate
    method: str
    layer: Ints | None = None
    denominator: int | None = None
    provenance: Provenance | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for key in ("source", "destination", "start", "link"):
            object.__setattr__(self, key, frozen(getattr(self, key), np.int64))
        object.__setattr__(self, "weight", frozen(self.weight, np.float64))
        if self.layer is not None:
            object.__setattr__(self, "layer", frozen(self.layer, np.int64))
        _check_shape(self)

    @property
    def count(self) -> int:
        """The number of routes."""
        return len(self.source)

    @cached_property
    def route_of_link(self) -> Ints:
        """The route to which each entry of `link` belongs."""
        return np.repeat(np.arange(self.count), np.diff(self.start))

    def load(self) -> Floats:
        """Return what each link carries, in shards."""
        load = np.zeros(self.problem.topology.links)
        np.add.at(load, self.link, self.weight[self.route_of_link])
        return load

    @cached_property
    def time(self) -> float:
        """The all-to-all time: the largest load of any link over its capacity."""
        return float((self.load() / self.problem.topology.capacity).max())

    @property
    def layers(self) -> int | None:
        """The number of virtual layers, None until they have been assigned."""
        return None if self.layer is None else int(self.layer.max()) + 1

    def routes_per_pair(self) -> Ints:
        """Return the number of routes of each pair that has any."""
        terminals = len(self.problem.topology.terminals)
        pairs = self.source * terminals + self.destination
        return np.asarray(np.unique(pairs, return_counts=True)[1], dtype=np.int64)

    def _fullness(self) -> Floats:
        return self.load() / self.problem.topology.capacity

    def _facts(self) -> dict[str, str]:
        layers = "not assigned" if self.layers is None else str(self.layers)
        return {**super()._facts(), "routes": f"{self.count:,}", "layers": layers}

    def _columns(self) -> dict[str, Iterable[object]]:
        node, link = self.problem.topology.terminals, self.link.tolist()
        runs = zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True)
        rows: dict[str, Iterable[object]] = {
            "source": node[self.source],
            "destination": node[self.destination],
            "weight": self.weight,
            "hops": np.diff(self.start),
            "links": [tuple(link[begin:end]) for begin, end in runs],
        }
        return rows if self.layer is None else {**rows, "layer": self.layer}


def _check_shape(routes: Routes) -> None:
    """Refuse arrays that do not describe routes at all; `check.routes` judges what they say."""
    count, topology = len(routes.source), routes.problem.topology
    sound = (
        routes.destination.shape == routes.weight.shape == (count,)
        and routes.start.shape == (count + 1,)
        and int(routes.start[0]) == 0
        and bool(np.all(np.diff(routes.start) > 0))
        and routes.link.shape == (int(routes.start[-1]),)
        and (routes.layer is None or routes.layer.shape == (count,))
        and routes.certificate.lengths.shape == (topology.links,)
    )
    if not sound:
        raise InputError(
            "the arrays of the routes do not fit together; expected a source, destination, weight "
            "and at least one link per route, and one length per link"
        )
    for key, limit in (
        ("source", len(topology.terminals)),
        ("destination", len(topology.terminals)),
        ("link", topology.links),
    ):
        values = getattr(routes, key)
        wrong = np.flatnonzero((values < 0) | (values >= limit))
        if len(wrong):
            raise InputError(f"the routes have {key} {values[wrong[0]]}; expected 0..{limit - 1}")
    if routes.layer is not None and np.any(routes.layer < 0):
        raise InputError(f"a route has layer {int(routes.layer.min())}; expected 0 or more")
