"""Routes that lowering is tried on; each gets its own layer unless said otherwise."""

from dataclasses import replace
from functools import cache

import numpy as np

from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.routes.single import route_single
from alltoall.routes.weights import route_extp
from alltoall.routes.whole_chunks import bounded_chunks
from alltoall.settings import RouteSettings
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build

SPECS = ("hypercube:3", "bipartite:4x4", "torus:3x3x3", "genkautz:n=16,d=4", "ring:5 host")
METHODS = {"extp": route_extp, "single": route_single}
SETTINGS = RouteSettings()


@cache
def topology_of(name: str) -> Topology:
    """Build a topology of the list."""
    spec, _, host = name.partition(" ")
    return with_host_bandwidth(build(spec), 1.5) if host else build(spec)


@cache
def weighted(name: str, method: str = "extp") -> Routes:
    """Return the routes of a method, without layers."""
    return METHODS[method](Problem.all_to_all(topology_of(name)), SETTINGS)


@cache
def layered(name: str, method: str = "extp", chunks: int = 4) -> Routes:
    """Return routes of whole chunks; a layer of its own keeps each from deadlock."""
    routes = bounded_chunks(weighted(name, method), chunks, SETTINGS)
    return replace(routes, layer=np.arange(routes.count))
