"""From fractions to whole chunks: the one place where floats become integers.

A schedule of C chunks per shard is a timed path per chunk. Its steps take as long as their loads,
so any paths make a schedule; good ones are found by routing all chunks within budgets for the steps
(`timed_chunks`), starting from the paths of the fractional flow, so few chunks need to move. Under
translations this happens for one source per orbit, and is then mapped to all.

If all chunks have one size, loads are integers, and so are the budgets: integers K[t], whose sum B
makes the time B / C. The least possible B is C times the fractional time, rounded up, and
`round_flow` tries totals from there on. Chunks of an uneven demand have many sizes: then budgets
are the fractional durations plus the least slack that `squeeze` finds.

Rounding is thus an optimisation with a known loss: the time over the fractional time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.by_lp import linear_program
from alltoall.flows.exact import exact_flows
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.paths import NOTHING
from alltoall.ir.schedule import Schedule
from alltoall.lp.matrix import to_scipy
from alltoall.lp.program import LinearProgram
from alltoall.lp.settings import LPStatus, never
from alltoall.lp.solve import solve_program
from alltoall.routes.weights import TARGETS
from alltoall.schedules.timed_chunks import Rounded, TimedChunks, capacity_unit
from alltoall.schedules.timestepped import TimedFlow, useful_variables
from alltoall.settings import SolveSettings


@dataclass(frozen=True)
class RoundingParams:
    """Effort of whole chunks, measured by benchmarks/chunk_schedules.py.

    Attributes:
        tries: random orders of the chunks, each from its own seed.
        totals: total durations for one number of chunks.
        least_slack: the least slack over the fractional durations.
        squeezes: bisections of the slack.

    """

    tries: int = 4
    totals: int = TARGETS
    least_slack: float = 1e-3
    squeezes: int = 6


ROUNDING = RoundingParams()
"""The default effort."""


def round_flow(
    flow: TimedFlow,
    chunks_per_shard: int,
    most_loss: float,
    settings: SolveSettings,
    refine: bool = True,
) -> Rounded | None:
    """Return a schedule with C equal chunks per shard, or None if all found lose too much.

    With `refine`, small flows are solved again for the integer durations if rounding fails.
    """
    timed = TimedChunks(flow, chunks_per_shard, settings)
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    least = int(np.ceil(exact * (1 - 1e-9)))
    largest = int(np.floor(exact * (1 + most_loss) * (1 + 1e-9)))
    several = np.linspace(least, largest, min(largest - least + 1, ROUNDING.totals))
    totals = np.unique(several.astype(int)).tolist()

    def attempt(total: int) -> Rounded | None:
        for budgets, guide in _budgets(flow, chunks_per_shard, total, refine, settings):
            found = timed.route(budgets.astype(np.float64), guide, ROUNDING.tries)
            if found.within(most_loss):
                return found
        return None

    if timed.cheap:
        return next((found for found in map(attempt, totals) if found is not None), None)
    # Else try the largest total, and if that works the middle one.
    best = attempt(totals[-1]) if totals else None
    if best is None or len(totals) == 1:
        return best
    return attempt(totals[(len(totals) - 1) // 2]) or best


def squeeze(
    flow: TimedFlow, chunks_per_shard: int, most_loss: float, settings: SolveSettings
) -> Rounded:
    """Return the best schedule found with chunks of any sizes; `most_loss` ends the search.

    The paths of the flow, or shortest paths, always give one, even if time is up.
    """
    timed = TimedChunks(flow, chunks_per_shard, settings)
    unit = chunks_per_shard * capacity_unit(flow)
    best = timed.route(np.full(flow.expansion.steps, np.inf), flow.volumes, late=never)
    low, high = ROUNDING.least_slack, best.loss
    for _ in range(ROUNDING.squeezes):
        if best.within(most_loss) or high <= low or settings.out_of_time():
            break
        slack = float(np.sqrt(low * high))
        found = timed.route(flow.durations * unit * (1 + slack), flow.volumes)
        best = min(best, found, key=lambda each: each.loss)
        low, high = (low, min(slack, best.loss)) if found.fits else (slack, min(high, best.loss))
    if not np.isfinite(best.loss):
        raise InputError(
            f"{flow.expansion.problem.topology.name}: the paths of {len(best.paths):,} chunks are "
            f"longer than {best.paths.shape[1]} links; use fewer chunks per shard"
        )
    return best


def _budgets(
    flow: TimedFlow, chunks: int, total: int, refine: bool, settings: SolveSettings
) -> Iterator[tuple[Ints, Floats]]:
    """Yield integer durations that sum to `total`, each with initial volumes."""
    shared = rounded_to(flow.durations * total / flow.time, total)
    even = rounded_to(np.full(flow.expansion.steps, total / flow.expansion.steps), total)
    halfway = rounded_to((shared + even) / 2, total)
    yield shared, flow.volumes
    if not refine:
        return
    for durations in {tuple(each): each for each in (even, shared, halfway)}.values():
        refined = _refine(flow, durations / (chunks * capacity_unit(flow)), settings)
        if refined is not None:
            yield durations, refined


def rounded_to(values: Floats, total: int) -> Ints:
    """Round non-negative values to integers of the sum `total`, by largest remainders."""
    whole = np.floor(values + 1e-9).astype(np.int64)
    order = np.argsort(whole - values, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def _refine(flow: TimedFlow, durations: Floats, settings: SolveSettings) -> Floats | None:
    """Return the volumes of fewest hops for exactly these durations, if there are any."""
    group, link = useful_variables(flow.program)
    if len(link) > sizes.WRITTEN_OUT_VARIABLES:
        return None
    free = linear_program(flow.program, group, link)
    matrix = to_scipy(free.matrix)
    fixed = np.asarray(matrix[:, len(link) :] @ durations)
    program = LinearProgram(
        cost=(link < flow.expansion.timed_links).astype(np.float64),
        matrix=matrix[:, : len(link)],
        row_lower=free.row_lower - fixed,
        row_upper=free.row_upper - fixed,
    )
    result = solve_program(program, "auto", settings.lp_settings())
    if result.status is LPStatus.INTERRUPTED:
        raise KeyboardInterrupt
    if result.x is None or result.status is not LPStatus.OPTIMAL:
        return None
    volumes = np.zeros((len(flow.groups.start), flow.expansion.graph.links))
    volumes[group, link] = result.x
    return exact_flows(flow.expansion.graph, flow.groups, volumes)


def schedule_from(rounded: Rounded, certificate: Certificate, method: str) -> Schedule:
    """Return the schedule of whole chunks on timed paths, without empty steps."""
    flow = rounded.flow
    topology, translations = flow.expansion.problem.topology, flow.translations
    chunk, hop = np.nonzero(rounded.paths != NOTHING)
    timed = rounded.paths[chunk, hop]
    used, step = np.unique(timed // topology.links, return_inverse=True)
    # Sends of a step become consecutive; each is followed by its images.
    order = np.lexsort((timed % topology.links, chunk, step))
    chunk, link = chunk[order], timed[order] % topology.links
    moved = topology.position[translations.members[:, topology.terminals]]
    return Schedule(
        problem=flow.expansion.problem,
        chunks=Chunks.of_demand(flow.expansion.problem.demand, rounded.chunks_per_shard),
        steps=len(used),
        step=np.repeat(step[order], translations.order),
        source=moved[:, rounded.source[chunk]].T.ravel(),
        destination=moved[:, rounded.destination[chunk]].T.ravel(),
        chunk=np.repeat(rounded.chunk[chunk], translations.order),
        link=translations.link_members[:, link].T.ravel(),
        certificate=certificate,
        fractional_time=flow.time,
        method=method,
    )
