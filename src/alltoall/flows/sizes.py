"""The sizes at which another method pays, in one table for flows, routes and schedules.

| task | up to | method | above |
|---|---|---|---|
| any flow, `auto` | `SPLIT_PAIRS` | one flow per pair (`decomposed`) | one per source (`grouped`) |
| master program | `FIRST_ORDER_VARIABLES` | linear program | sweeps |
| `first-order`, one budget | `STEPPED_VARIABLES` | primal-dual steps | sweeps |
| the paper's child programs | `CHILD_WORK` | one after the other | worker processes |
| symmetry | `SYMMETRIC_LINKS`, `SYMMETRIC_DEMANDS` | search | none |
| translations | `TRANSLATED_LINKS` | search | none |
| bounds by cuts | `ENUMERATED_NODES` | every cut | sweeps |
| eigenvectors for the sweeps | `DENSE_NODES` | dense matrix | iterative |
| flow before routing | `WHOLE_VARIABLES` | all sources | one source per orbit |
| `pmcf` | `WHOLE_PATHS` | all sources | one source per orbit |
| `single`, `few` | `NEGOTIATED_CHUNKS` | negotiation | best responses alone |
| `ewsp` | `LISTED_PATHS` | all shortest paths of a pair | few with the same loads |
| layers | `OFFERED_DEPENDENCIES` | routes one by one | orders of the links |
| bound of a schedule | `SHARP_BOUND_VARIABLES` | to the gap asked for | to that of its steps |
| tsMCF | `TIMED_FIRST_ORDER_VARIABLES` | linear program | primal-dual steps |
| schedule, `auto`, sources not all alike | `LISTED_VARIABLES` | tsMCF | routes and a list |
| order of a list above the loss | `TIGHTENED_WORK` | negotiation | as it is |
| chunks under translations | `WRITTEN_OUT_VARIABLES` | without them too | only with them |
| infeasible durations | `WRITTEN_OUT_VARIABLES` | solve the flow again | another total |
| total durations of chunks | `EVERY_TOTAL_WORK` | each, from the least on | two |
| numbers of chunks | `AFFORDABLE_WORK` | many | as many as the loss needs |

`alltoall.lp.AUTO` has the sizes of linear programs for each solver. A size decides the time of a
solve and, for flows, never the optimum. Limits of an effort or of memory are beside their use.
"""

SPLIT_PAIRS = 100_000
"""Pairs up to which `auto` splits the flow by destination; beyond, it stays per source."""

FIRST_ORDER_VARIABLES = 50_000
"""Variables of the master program above which sweeps beat solvers of linear programs."""

STEPPED_VARIABLES = 20_000
"""Variables from which on sweeps beat primal-dual steps: few sources get in each other's way."""

CHILD_WORK = 20_000_000
"""Used links times destinations, over all children, above which starting worker processes pays."""

SYMMETRIC_LINKS = 1_000_000
"""Links; above, the search for symmetry alone takes many seconds."""

SYMMETRIC_DEMANDS = 200_000
"""Pairs without the most frequent demand."""

TRANSLATED_LINKS = 8_000_000
"""Terminals times links."""

ENUMERATED_NODES = 14
"""Nodes."""

DENSE_NODES = 400
"""Nodes up to which a dense eigenvalue solver is fast enough."""

LISTED_VARIABLES = 30_000
"""Sources after symmetry times links times least steps: a time-stepped program of half a minute."""

TIGHTENED_WORK = 3_000_000
"""Chunks times links times steps."""

WHOLE_VARIABLES = 20_000
"""Variables: vertices of the whole program split few pairs, and symmetric flows split many."""

WHOLE_PATHS = 20_000
"""Candidate paths of all pairs."""

NEGOTIATED_CHUNKS = 40_000
"""Chunks, and chunks times the orders in which they are tried."""

LISTED_PATHS = 64
"""Up to this many shortest paths of a pair `ewsp` lists them all, each with the same weight."""

OFFERED_DEPENDENCIES = 500_000
"""Dependencies of all routes."""

SHARP_BOUND_VARIABLES = 2_000_000
"""Sources times links; above, the gap of the fractional schedule is enough."""

TIMED_FIRST_ORDER_VARIABLES = 80_000
"""Useful variables of a time-stepped program."""

WRITTEN_OUT_VARIABLES = 50_000
"""Sources times links of all steps, and useful variables of a flow to be solved again."""

EVERY_TOTAL_WORK = 10_000_000
"""Chunks times links of all steps."""

AFFORDABLE_WORK = 200_000_000
"""Chunks times links of all steps."""
