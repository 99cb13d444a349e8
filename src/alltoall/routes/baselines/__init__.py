"""What others do: routing methods to compare with, all with one signature and in one dict.

| name | routes per pair | looks at loads |
|---|---|---|
| `ecmp` | one shortest path, by a hash of the destination | no |
| `updown` | one path that climbs to a root and descends (up*/down*) | no |
| `dor` | one or two, one dimension after the other; grids only | no |
| `ewsp` | all shortest paths, equal weights | no |
| `sssp` | one shortest path | of the trees before |
| `ilp-disjoint`, `ilp-shortest` | one of some candidates | optimal in its candidates, if it ends |
| `fptas` | few | within epsilon of the optimum |

`schedules.sccl` synthesises schedules rather than routes and stands by itself.
"""

from collections.abc import Callable

from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.baselines.dor import route_dor
from alltoall.routes.baselines.ewsp import route_ewsp
from alltoall.routes.baselines.fptas import route_fptas
from alltoall.routes.baselines.ilp import route_ilp_disjoint, route_ilp_shortest
from alltoall.routes.baselines.tables import route_ecmp, route_sssp, route_updown
from alltoall.settings import RouteSettings

Baseline = Callable[[Problem, RouteSettings], Routes]

BASELINES: dict[str, Baseline] = {
    "ilp-disjoint": route_ilp_disjoint,
    "ilp-shortest": route_ilp_shortest,
    "sssp": route_sssp,
    "ewsp": route_ewsp,
    "dor": route_dor,
    "ecmp": route_ecmp,
    "updown": route_updown,
    "fptas": route_fptas,
}
"""What we are compared with, by name."""

__all__ = ["BASELINES", "Baseline"]
