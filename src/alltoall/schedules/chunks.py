"""From fractions to whole chunks: the one place where floats become integers.

A schedule of C chunks per shard is a timed path per chunk. Its steps take as long as their loads,
so any paths make a schedule; good ones are found by routing all chunks within budgets for the steps
(`TimedChunks`), starting from the paths of the fractional flow, so few chunks need to move. Under
translations this happens for one source per orbit, and is then mapped to all.

If all chunks have one size, loads are integers, and so are the budgets: integers K[t], whose sum B
makes the time B / C. The least possible B is C times the fractional time, rounded up, and
`round_flow` tries totals from there on. Chunks of an uneven demand have many sizes: then budgets
are the fractional durations plus the least slack that `squeeze` finds.

Rounding is thus an optimisation with a known loss: the time over the fractional time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.by_lp import linear_program
from alltoall.flows.exact import exact_flows
from alltoall.flows.program import certify
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.chunks import Chunks, chunks_of
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram, to_scipy
from alltoall.lp.settings import LPStatus, never
from alltoall.lp.solve import solve_program
from alltoall.placing.chunks import Chunks as CutChunks
from alltoall.placing.negotiate import negotiate, trace_paths
from alltoall.placing.network import in_steps
from alltoall.routes.weights import TARGETS
from alltoall.schedules.timestepped import TimedFlow, useful_variables, without_detours
from alltoall.settings import USUAL_MOST_CHUNKS, SolveSettings

MOST_TABLE_LINKS = 50_000_000
"""Links in the table of all chunks' paths; only networks of very many switches come near."""

MOST_SCHEDULE_CHUNKS = 20_000_000
"""Chunks of a schedule above which it is refused."""


def require_few(chunks: int) -> None:
    """Raise before allocation if there are too many chunks."""
    if chunks > MOST_SCHEDULE_CHUNKS:
        raise InputError(
            f"{chunks:,} chunks in all; expected at most {MOST_SCHEDULE_CHUNKS:,}: use fewer "
            "chunks per shard, or a demand in larger units"
        )


@dataclass(frozen=True, eq=False)
class CutShards:
    """All chunks of a problem by pair, each with its number in the shard and its size."""

    problem: Problem
    chunks: Chunks
    source: Ints
    destination: Ints
    chunk: Ints
    size: Floats

    @classmethod
    def of(cls, problem: Problem, per_shard: int) -> "CutShards":
        """Cut all shards, those of size 1 into `per_shard` chunks."""
        chunks, pairs = Chunks.of_demand(problem.demand, per_shard), problem.demand.pairs()
        require_few(chunks.total)
        counts = chunks.of(*pairs)
        source, destination = (np.repeat(each, counts) for each in pairs)
        size = np.repeat(problem.demand.of(*pairs) / counts, counts)
        return cls(problem, chunks, source, destination, inner_index(counts), size)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The nodes where chunks start and end."""
        terminals = self.problem.topology.terminals
        return terminals[self.source], terminals[self.destination]

    def schedule(self, step: Ints, chunk: Ints, link: Ints, method: str) -> Schedule:
        """Return the schedule of sends of whole chunks, without a fractional one before it."""
        schedule = Schedule(
            problem=self.problem,
            chunks=self.chunks,
            steps=int(step.max()) + 1,
            step=step,
            source=self.source[chunk],
            destination=self.destination[chunk],
            chunk=self.chunk[chunk],
            link=link,
            certificate=certify(self.problem, []),
            fractional_time=0.0,
            method=method,
        )
        return replace(schedule, fractional_time=schedule.time)


def require_hosts(topology: Topology, method: str) -> None:
    """Raise unless all nodes are terminals, which store chunks."""
    switches = topology.nodes - len(topology.terminals)
    if switches:
        raise InputError(
            f"{topology.name} has {switches} nodes that are not terminals; {method} stores chunks "
            "at every node, choose another method"
        )


@dataclass(frozen=True, eq=False)
class Rounded:
    """A timed path for each chunk of the representative sources, and the loss of whole chunks.

    `fits` is whether the chunks are within their budgets.
    """

    flow: TimedFlow
    chunks_per_shard: int
    time: float
    loss: float
    source: Ints
    destination: Ints
    chunk: Ints
    paths: Ints
    fits: bool

    def within(self, most_loss: float) -> bool:
        """Whether the loss is at most this, up to rounding."""
        return self.loss <= most_loss + 1e-8


def rounding_work(flow: TimedFlow, chunks_per_shard: int) -> int:
    """Return the size of rounding: the number of chunks times the links of the expanded graph."""
    counts = chunks_of(amounts_of(flow), chunks_per_shard)
    return int(counts.sum()) * flow.expansion.graph.links


def amounts_of(flow: TimedFlow) -> Floats:
    """Return the demand of each group by destination."""
    return np.asarray(flow.groups.wanted[:, flow.expansion.ends])


def capacity_unit(flow: TimedFlow) -> float:
    """Return the capacity that carries one chunk per unit of duration: that of a busy link.

    It is the median over links, weighted by their busy time. So the result does not depend on the
    unit of capacity, nor on wide links that idle.
    """
    capacity = flow.program.class_capacity
    order = np.argsort(capacity, kind="stable")
    busy = np.cumsum((flow.program.busy(flow.load) * flow.program.class_size)[order])
    return float(capacity[order[np.searchsorted(busy, busy[-1] / 2 * (1 - 1e-9))]])


class TimedChunks:
    """All chunks of the flow's groups, in units of one chunk."""

    def __init__(self, flow: TimedFlow, chunks_per_shard: int, settings: SolveSettings) -> None:
        self.flow, self.per_shard, self.settings = flow, chunks_per_shard, settings
        rows = amounts_of(flow)
        self.row, destination = np.nonzero(rows)
        demand = rows[self.row, destination]
        counts = chunks_of(demand, chunks_per_shard)
        require_few(int(counts.sum()) * flow.translations.order)
        self.cheap = rounding_work(flow, chunks_per_shard) <= sizes.EVERY_TOTAL_WORK
        self.row = np.repeat(self.row, counts)
        self.source = flow.groups.source[self.row]
        self.destination = np.repeat(destination, counts)
        self.chunk = inner_index(counts)
        size = np.repeat(demand / np.maximum(counts, 1), counts) * chunks_per_shard
        expansion = flow.expansion
        self.chunks = CutChunks(
            expansion.starts[self.source], expansion.ends[self.destination], size
        )

    def route(
        self,
        durations: Floats,
        volumes: Floats,
        tries: int = 1,
        late: Callable[[], bool] | None = None,
    ) -> Rounded:
        """Route every chunk, starting from volumes in shards, within the durations if possible.

        Of several tries, return the first that fits, or else the one of least loss.
        """
        expansion, program = self.flow.expansion, self.flow.program
        width = program.class_capacity / capacity_unit(self.flow)
        grain = float(np.median(self.chunks.size))
        budget = durations[program.budget] * width
        per_step = expansion.problem.topology.links
        network = in_steps(expansion.graph, expansion.steps, per_step, program.link_class, width)
        guide = volumes * self.per_shard
        # Of the longest path: one hop and all switches in each step.
        switches = expansion.problem.topology.nodes - len(expansion.starts)
        room = max(64, MOST_TABLE_LINKS // max(1, len(self.source)))
        room = min(room, expansion.steps * (1 + switches))
        start = trace_paths(expansion.graph, self.chunks, guide, self.row, room)
        start = without_detours(expansion, start)
        late = late or self.settings.out_of_time
        # Load of a chunk and all its images on each link of a class, per link of its path.
        share = np.asarray(self.flow.translations.order / program.class_size)
        found: list[Rounded] = []
        for seed in range(tries):
            paths, fits = negotiate(
                network, self.chunks, start, budget, seed, late, share=share, grain=grain
            )
            found.append(self._result(without_detours(expansion, paths.astype(np.int64)), fits))
            if fits or late():
                break
        return found[-1] if fits else min(found, key=lambda each: each.loss)

    def _result(self, paths: Ints, fits: bool) -> Rounded:
        """Return the result of paths; its time is infinite if one is missing."""
        program = self.flow.program
        chunk, hop = np.nonzero(paths != NOTHING)
        size = self.flow.translations.order * self.chunks.size[chunk] / self.per_shard
        load: Floats = np.zeros(program.graph.links)
        np.add.at(load, paths[chunk, hop], size)
        complete = bool((paths[:, 0] != NOTHING).all())
        time = float(program.durations(load).sum()) if complete else np.inf
        loss = time / self.flow.time - 1
        ends = (self.source, self.destination, self.chunk)
        return Rounded(self.flow, self.per_shard, time, loss, *ends, paths, fits)


MOST_TIMES = 8
"""Largest ratio of shards that are cut into chunks of one size.

`benchmarks/chunk_schedules.py` measures it.
"""

FINEST_GRID = 2.0**40
"""Units of duration above which durations are not rounded to integers."""


def most_chunks(problem: Problem, asked: int | None) -> int:
    """Return the requested or usual number of chunks of a shard of mean size.

    The usual number counts for the smallest shard if all chunks can have one size.
    """
    if asked is not None:
        return asked
    shard = common_shard(problem)
    return ceil(USUAL_MOST_CHUNKS * (mean_shard(problem) / shard if shard else 1.0))


def mean_shard(problem: Problem) -> float:
    """Return the mean demand of pairs that have any."""
    amounts = problem.demand.table()
    return float(amounts[amounts > 0].mean())


def common_shard(problem: Problem) -> float | None:
    """Return the smallest shard if all others are small multiples of it (overlapping groups)."""
    if problem.demand.matrix is None:
        return 1.0
    amounts = problem.demand.matrix[problem.demand.matrix > 0]
    times = amounts / amounts.min()
    alike = times.max() <= MOST_TIMES and np.abs(times - np.rint(times)).max() <= 1e-9
    return float(amounts.min()) if alike else None


def on_grid(flow: TimedFlow, chunks_per_shard: int) -> bool:
    """Return whether durations are integers: chunks have one size, and units are not too fine."""
    amounts = amounts_of(flow)
    sizes = amounts[amounts > 0] / chunks_of(amounts[amounts > 0], chunks_per_shard)
    units = chunks_per_shard * capacity_unit(flow) * flow.time
    return bool(np.ptp(sizes) <= 1e-9 * sizes.max()) and 0.5 <= units <= FINEST_GRID


def choices_of(flow: TimedFlow, asked: int | None) -> list[int]:
    """Return the numbers of chunks per shard to try, up to the requested most.

    They are all numbers of equal chunks, and 1, 2, 4, ... for a shard of mean size: chunks of an
    uneven demand are never quite equal.
    """
    problem = flow.expansion.problem
    most, mean = most_chunks(problem, asked), mean_shard(problem)
    doubling = {min(2**power, most) for power in range(most.bit_length() + 1)}
    largest = max(1, int(most / mean * (1 + 1e-9)))
    rough = {max(1, min(largest, round(chunks / mean))) for chunks in doubling}
    whole = (chunks for chunks in range(1, min(most, largest) + 1) if on_grid(flow, chunks))
    return sorted(rough.union(whole))


def least_loss(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return the loss of integer durations with C equal chunks per shard.

    It is a lower bound on the loss if all links are equally wide.
    """
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1)


def floor_of(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return a lower bound on the loss with C chunks per shard."""
    capacity = flow.expansion.problem.topology.capacity
    alike = np.ptp(capacity) == 0 and on_grid(flow, chunks_per_shard)
    return max(0.0, least_loss(flow, chunks_per_shard)) if alike else 0.0


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
