"""The sizes at which another way pays, in one table for flows, routes and schedules.

| what is done | up to | way | beyond |
|---|---|---|---|
| any flow, `auto` | `SPLIT_PAIRS` | one flow per pair (`decomposed`) | one per source (`grouped`) |
| master program | `FIRST_ORDER_VARIABLES` | linear program | sweeps |
| `first-order`, one budget | `STEPPED_VARIABLES` | primal-dual steps | sweeps |
| the paper's child programs | `CHILD_WORK` | one after the other | worker processes |
| symmetry | `SYMMETRIC_LINKS`, `SYMMETRIC_DEMANDS` | is looked for | is not |
| translations | `TRANSLATED_LINKS` | are looked for | are not |
| bounds by cuts | `ENUMERATED_NODES` | every cut | cuts that sweeps find |
| eigenvectors for the sweeps | `DENSE_NODES` | of a dense matrix | iterative |
| flow that is to be routed | `WHOLE_VARIABLES` | all sources | one source per orbit |
| `pmcf` | `WHOLE_PATHS` | all sources | one source per orbit |
| `single`, `few` | `NEGOTIATED_CHUNKS` | negotiation | best responses alone |
| `ewsp` | `LISTED_PATHS` | all shortest paths of a pair | few with the same loads |
| layers | `OFFERED_DEPENDENCIES` | routes one by one | orders of the links |
| bound of a schedule | `SHARP_BOUND_VARIABLES` | to the gap asked for | to that of its steps |
| tsMCF | `TIMED_FIRST_ORDER_VARIABLES` | linear program | primal-dual steps |
| schedule, `auto`, sources not all alike | `LISTED_VARIABLES` | tsMCF | routes and a list |
| order of a list that loses | `TIGHTENED_WORK` | is negotiated | stays |
| chunks under translations | `WRITTEN_OUT_VARIABLES` | without them too | only with them |
| total durations of chunks | `EVERY_TOTAL_WORK` | each, from the least on | two |
| durations that do not fit | `REFINED_VARIABLES` | the flow is solved again | another total |
| numbers of chunks | `AFFORDABLE_WORK` | more are tried | those that the loss needs |

Which solver takes a linear program of which size is in `alltoall.lp.AUTO`. A size decides how long
a solve takes and, for flows, never whether its optimum is found. A number that limits an effort, or
beyond which something is refused, stands where it is held against.
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
"""Links beyond which no symmetry is looked for: the search alone would take many seconds."""

SYMMETRIC_DEMANDS = 200_000
"""Pairs of another than the most frequent demand beyond which no symmetry is looked for."""

TRANSLATED_LINKS = 8_000_000
"""Terminals times links up to which translations are looked for."""

ENUMERATED_NODES = 14
"""Up to this many nodes every cut is tried."""

DENSE_NODES = 400
"""Up to this many nodes a dense eigenvalue solver is quick enough."""

LISTED_VARIABLES = 30_000
"""Sources after symmetry times links times least steps above which a list serves routes.

A time-stepped program of this size takes half a minute, and its rounding as long again."""

TIGHTENED_WORK = 3_000_000
"""Chunks times links times steps up to which chunks negotiate for steps where a list loses."""

WHOLE_VARIABLES = 20_000
"""Variables below which a flow that is to be routed is solved for all sources.

Vertices of the whole program split few pairs, and symmetric flows split many.
"""

WHOLE_PATHS = 20_000
"""Candidate paths of all pairs below which `pmcf` makes no use of symmetry."""

NEGOTIATED_CHUNKS = 40_000
"""Chunks up to which those of `single` and `few` negotiate, starting on the paths of a flow.

They are tried in so many orders that chunks times orders stay below it too.
"""

LISTED_PATHS = 64
"""Up to this many shortest paths of a pair `ewsp` lists them all, each with the same weight."""

OFFERED_DEPENDENCIES = 500_000
"""Dependencies of all routes up to which routes are offered to layers one by one."""

SHARP_BOUND_VARIABLES = 2_000_000
"""Sources times links beyond which the bound is only as sharp as the fractional schedule."""

TIMED_FIRST_ORDER_VARIABLES = 80_000
"""As `FIRST_ORDER_VARIABLES`, for time-stepped programs, of which only useful variables count."""

WRITTEN_OUT_VARIABLES = 50_000
"""Sources times links of all steps up to which chunks are routed without symmetry too."""

EVERY_TOTAL_WORK = 10_000_000
"""Chunks times links up to which every total is tried from the least on; beyond, few are."""

REFINED_VARIABLES = 60_000
"""Up to this size the flow is solved again for the integer durations if the first try fails."""

AFFORDABLE_WORK = 200_000_000
"""Chunks times links up to which more chunks are tried for no loss, or for the least one."""
