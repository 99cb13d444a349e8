"""`Routes`: weighted paths per pair, with a virtual layer each, or one per hop, once assigned."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.answer import Answer, Certificate
from alltoall.ir.arrays import Floats, Ints, freeze, frozen, inner_index, require_indices
from alltoall.ir.noun import Provenance
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class Routes(Answer, Paths):
    """Paths that carry a demand: route r takes `weight[r]` shards over path r.

    The weights of a pair add up to its demand. `layer` is the virtual layer of each route, None
    until layers have been assigned. If routes change layer, it is None too, and `hop_layer` has the
    layer of each entry of `link`. With `denominator`, weights are multiples of 1 / denominator.
    """

    BRIEF = ("time", "gap", "routes", "layers")

    problem: Problem
    weight: Floats
    certificate: Certificate
    method: str
    layer: Ints | None = None
    denominator: int | None = None
    provenance: Provenance | None = field(default=None, compare=False)
    learnt: Mapping[str, Any] = field(default_factory=dict, compare=False)
    hop_layer: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, np.float64, "weight")
        freeze(self, np.int64, "layer", "hop_layer")
        _check_shape(self)
        if self.hop_layer is not None and not self.changes_layer.any():
            object.__setattr__(self, "layer", frozen(self.hop_layer[self.start[:-1]], np.int64))
            object.__setattr__(self, "hop_layer", None)

    def select(self, which: Ints) -> "Routes":
        """Return some of the routes, in the given order, with their weights and layers."""
        paths = super().select(which)
        hops = self.hops[which]
        entries = np.repeat(self.start[which], hops) + inner_index(hops)
        return replace(
            self,
            source=paths.source,
            destination=paths.destination,
            start=paths.start,
            link=paths.link,
            weight=self.weight[which],
            layer=None if self.layer is None else self.layer[which],
            hop_layer=None if self.hop_layer is None else self.hop_layer[entries],
        )

    def load(self, weight: Floats | None = None, links: int | None = None) -> Floats:
        """Return the load of each link of the topology, in shards."""
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
        assigned = self.layer_of_link
        return None if assigned is None else int(assigned.max()) + 1

    @property
    def layer_of_link(self) -> Ints | None:
        """The layer of each entry of `link`, None until layers are assigned."""
        return self.hop_layer if self.layer is None else self.layer[self.path_of_link]

    @property
    def changes_layer(self) -> NDArray[np.bool_]:
        """Whether each route changes layer."""
        if self.hop_layer is None:
            return np.zeros(self.count, dtype=np.bool_)
        first = np.repeat(self.hop_layer[self.start[:-1]], self.hops)
        changed = np.bincount(self.path_of_link, self.hop_layer != first, self.count)
        return np.asarray(changed > 0)

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
        terminal = self.problem.topology.called(self.problem.topology.terminals)
        rows: dict[str, Iterable[object]] = {
            "source": terminal[self.source],
            "destination": terminal[self.destination],
            "weight": self.weight,
            "hops": self.hops,
            "links": self._by_route(self.link),
        }
        if self.hop_layer is not None:
            return {**rows, "layers": self._by_route(self.hop_layer)}
        return rows if self.layer is None else {**rows, "layer": self.layer}

    def _by_route(self, entries: Ints) -> list[tuple[int, ...]]:
        cuts, values = pairwise(self.start.tolist()), entries.tolist()
        return [tuple(values[begin:end]) for begin, end in cuts]


def _check_shape(routes: Routes) -> None:
    """Refuse arrays that are not routes; `check.routes` checks the rest."""
    count, topology = routes.count, routes.problem.topology
    sound = (
        routes.weight.shape == (count,)
        and (routes.layer is None or routes.layer.shape == (count,))
        and (routes.hop_layer is None or routes.hop_layer.shape == routes.link.shape)
        and (routes.layer is None or routes.hop_layer is None)
        and routes.certificate.lengths.shape == (topology.links,)
    )
    if not sound:
        raise InputError(
            "the arrays of the routes do not fit together; expected a weight and, if there are "
            "layers, a layer per route or one per hop, and one length per link"
        )
    for key, limit in (
        ("source", len(topology.terminals)),
        ("destination", len(topology.terminals)),
        ("link", topology.links),
    ):
        require_indices(getattr(routes, key), limit, f"the routes have {key}")
    for layers in (routes.layer, routes.hop_layer):
        if layers is not None and np.any(layers < 0):
            raise InputError(f"a route has layer {int(layers.min())}; expected 0 or more")
