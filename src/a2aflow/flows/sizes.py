"""The sizes at which another method pays, in one table for flows, routes and schedules.

| what is solved | up to | method | beyond |
|---|---|---|---|
| any flow, `auto` | `SPLIT_PAIRS` | one flow per pair (`decomposed`) | one per source (`grouped`) |
| master program | `FIRST_ORDER_VARIABLES` | linear program | primal-dual steps |
| tsMCF | `TIMED_FIRST_ORDER_VARIABLES` | linear program | primal-dual steps |
| schedule, `auto`, without symmetry | `LISTED_VARIABLES` | tsMCF | routes and a list |
| flow that is to be routed | `WHOLE_VARIABLES` | all sources | one source per orbit |
| the paper's child programs | `CHILD_WORK` | one after the other | worker processes |
| layers | `OFFERED_DEPENDENCIES` | routes one by one | orders of the links |

Which solver takes a linear program of which size is in `a2aflow.lp.AUTO`. A size decides how long a
solve takes and, for flows, never whether its optimum is found.
"""

SPLIT_PAIRS = 100_000
"""Pairs up to which `auto` splits the flow by destination; beyond, it stays per source."""

FIRST_ORDER_VARIABLES = 50_000
"""Variables of the master program above which primal-dual steps beat solvers of linear programs."""

TIMED_FIRST_ORDER_VARIABLES = 80_000
"""The same for time-stepped programs, of which only useful variables count."""

LISTED_VARIABLES = 30_000
"""Sources times links times least steps above which chunks on routes are served by a list.

A time-stepped program of this size takes half a minute, and its rounding as long again."""

WHOLE_VARIABLES = 20_000
"""Variables below which a flow that is to be routed is solved for all sources.

Vertices of the whole program split few pairs, and symmetric flows split many.
"""

CHILD_WORK = 20_000_000
"""Used links times destinations, over all children, above which starting worker processes pays."""

OFFERED_DEPENDENCIES = 500_000
"""Dependencies of all routes up to which routes are offered to layers one by one."""
