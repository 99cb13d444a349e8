"""`Routes`: weighted paths per pair, with a virtual layer each once assigned."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.answer import Answer
from a2aflow.ir.arrays import Floats, Ints, frozen
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.paths import Paths
from a2aflow.ir.problem import Problem
from a2aflow.ir.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False)
class Routes(Answer, Paths):
    """Paths that carry a demand: route r takes `weight[r]` shards over path r.

    The weights of a pair add up to its demand. `layer` is the virtual layer of each route, None
    until layers have been assigned. If `denominator` is given, every weight is a whole multiple of
    1 / denominator.
    """

    BRIEF = ("time", "gap", "routes", "layers")

    problem: Problem
    weight: Floats
    certificate: Certificate
    method: str
    layer: Ints | None = None
    denominator: int | None = None
    provenance: Provenance | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weight", frozen(self.weight, np.float64))
        if self.layer is not None:
            object.__setattr__(self, "layer", frozen(self.layer, np.int64))
        _check_shape(self)

    def select(self, which: Ints) -> "Routes":
        """Return some of the routes, in the given order, with their weights and layers."""
        paths = super().select(which)
        return replace(
            self,
            source=paths.source,
            destination=paths.destination,
            start=paths.start,
            link=paths.link,
            weight=self.weight[which],
            layer=None if self.layer is None else self.layer[which],
        )

    def load(self, weight: Floats | None = None, links: int | None = None) -> Floats:
        """Return what each link of the topology carries, in shards."""
        return super().load(
            self.weight if weight is None else weight,
            self.problem.topology.links if links is None else links,
        )

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
        pairs = self.pair(len(self.problem.topology.terminals))
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
    count, topology = routes.count, routes.problem.topology
    sound = (
        routes.weight.shape == (count,)
        and (routes.layer is None or routes.layer.shape == (count,))
        and routes.certificate.lengths.shape == (topology.links,)
    )
    if not sound:
        raise InputError(
            "the arrays of the routes do not fit together; expected a weight and, if there are "
            "layers, a layer per route, and one length per link"
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
