"""What others do: routing methods to compare with, all with one signature and in one dict.

| name | routes per pair | looks at loads |
|---|---|---|
| `native` | one shortest path, lowest numbers first | no |
| `dor` | one or two, one dimension after the other; grids only | no |
| `ewsp` | all shortest paths, equal weights | no |
| `sssp` | one shortest path | of the trees before |
| `ilp-disjoint`, `ilp-shortest` | one of some candidates | optimal in its candidates, if it ends |
| `fptas` | few | within epsilon of the optimum |

`schedules.sccl` synthesises schedules rather than routes and stands by itself.
"""

from collections.abc import Callable

from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.routes.baselines.dor import route_dor
from a2aflow.routes.baselines.ewsp import route_ewsp
from a2aflow.routes.baselines.fptas import route_fptas
from a2aflow.routes.baselines.ilp import route_ilp_disjoint, route_ilp_shortest
from a2aflow.routes.baselines.native import route_native
from a2aflow.routes.baselines.sssp import route_sssp
from a2aflow.settings import RouteSettings

Baseline = Callable[[Problem, RouteSettings], Routes]

BASELINES: dict[str, Baseline] = {
    "ilp-disjoint": route_ilp_disjoint,
    "ilp-shortest": route_ilp_shortest,
    "sssp": route_sssp,
    "ewsp": route_ewsp,
    "dor": route_dor,
    "native": route_native,
    "fptas": route_fptas,
}
"""What we are compared with, by name."""

__all__ = ["BASELINES", "Baseline"]
