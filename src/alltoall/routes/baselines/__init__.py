"""Baselines: routing methods to compare with, all with one signature and in one dict.

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

BASELINES = {
    "ilp-disjoint": "alltoall.routes.baselines.ilp:route_ilp_disjoint",
    "ilp-shortest": "alltoall.routes.baselines.ilp:route_ilp_shortest",
    "sssp": "alltoall.routes.baselines.tables:route_sssp",
    "ewsp": "alltoall.routes.baselines.ewsp:route_ewsp",
    "dor": "alltoall.routes.dimension_order:route_dor",
    "ecmp": "alltoall.routes.baselines.tables:route_ecmp",
    "updown": "alltoall.routes.baselines.tables:route_updown",
    "fptas": "alltoall.routes.baselines.fptas:route_fptas",
}
"""Names of the baselines; `alltoall.routes.ROUTERS` has the functions."""
