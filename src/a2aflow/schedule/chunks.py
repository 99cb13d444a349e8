"""From fractions to whole chunks: the one place where floats become integers.

A schedule of C chunks per shard is a timed path per chunk. Its steps take as long as their loads
demand, so any paths make a schedule; good ones are found by routing all chunks within budgets for
the steps (`timed_paths`), starting from the paths of the fractional flow, so few chunks need to
move. Under translations this happens for one source per orbit, and is then mapped to all.

Where all chunks are equally large, loads are whole, and so are the budgets worth trying: integers
K[t], whose sum B makes the time B / C. The least conceivable B is C times the fractional time,
rounded up, and `round_flow` tries totals from there on. Chunks of an uneven demand have sizes of
all kinds: then budgets are the fractional durations and the least slack that `squeezed` finds.

Rounding is thus an optimisation, and what it costs is known: the time over the fractional time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Certificate
from a2aflow.ir.schedule import Schedule, chunks_of
from a2aflow.lp import LinearProgram, LPStatus, solve_program
from a2aflow.lp.program import never
from a2aflow.schedule.timed_paths import Sharing, negotiate_steps, without_detours
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.negotiate import NOTHING, Chunks, trace_paths
from a2aflow.solve.network import linear_program
from a2aflow.solve.settings import SolveSettings
from a2aflow.solve.timestepped import TimedFlow, useful_variables

ROUNDS = 300
"""Rounds of negotiation before a try is given up; a try that succeeds takes a handful."""

TRIES, DEAR_TRIES = 4, 2
"""Orders of the chunks that are tried, each from its own seed: where it is cheap, where not."""

MOST_ENTRIES = 50_000_000
"""Links in the table of all chunks' paths; only networks of very many switches come near."""

MOST_CHUNKS = 20_000_000
"""Chunks of a whole schedule beyond which it is refused rather than attempted."""

CHEAP_WORK = 10_000_000
"""Chunks times links up to which every total is tried from the least on; beyond, few are."""

TOTALS = 12
"""Total durations tried for one number of chunks."""

REFINED_VARIABLES = 60_000
"""Up to this size the flow is solved again for the integer durations if the first try fails."""


FINEST_GRID = 2.0**40
"""Units of duration beyond which they are not counted, but measured."""

LEAST_SLACK = 1e-3
"""The slack over the fractional durations below which chunks of all sizes are not squeezed."""

SQUEEZES = 6
"""How often the slack is narrowed down."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """A timed path for each chunk of the sources that stand for all, and what whole chunks cost.

    `fits` is whether the chunks are within the budgets that they were routed for.
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


def round_flow(
    flow: TimedFlow,
    chunks_per_shard: int,
    most_loss: float,
    settings: SolveSettings,
    refine: bool = True,
) -> Rounded | None:
    """Return a schedule with C equal chunks per shard, or None if it would lose too much.

    With `refine`, small flows are solved again for the integer durations where rounding fails.
    """
    pieces = _Pieces(flow, chunks_per_shard, settings)
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    least = int(np.ceil(exact * (1 - 1e-9)))
    most = int(np.floor(exact * (1 + most_loss) * (1 + 1e-9)))
    # A handful of totals spread over the range does, where there are many.
    totals = list(
        dict.fromkeys(np.linspace(least, most, min(most - least + 1, TOTALS)).astype(int).tolist())
    )
    tries = TRIES if pieces.cheap else DEAR_TRIES

    def attempt(total: int) -> Rounded | None:
        for budgets, guide in _budgets(flow, chunks_per_shard, total, refine, settings):
            found = pieces.route(budgets.astype(np.float64), guide, tries)
            if found.within(most_loss):
                return found
        return None

    if pieces.cheap:
        return next((each for each in map(attempt, totals) if each is not None), None)
    return _few(totals, attempt)


def _few(totals: list[int], attempt: Callable[[int], Rounded | None]) -> Rounded | None:
    """Return the better of two attempts: the largest total, and if that works the middle one."""
    best = attempt(totals[-1]) if totals else None
    if best is None or len(totals) == 1:
        return best
    return attempt(totals[(len(totals) - 1) // 2]) or best


def squeezed(
    flow: TimedFlow, chunks_per_shard: int, most_loss: float, settings: SolveSettings
) -> Rounded:
    """Return the best schedule found with chunks of any sizes; it ends early within `most_loss`.

    Whatever the durations, there is one: that of the fractional paths, or of shortest ones. It is
    found even if time is up.
    """
    pieces = _Pieces(flow, chunks_per_shard, settings)
    unit = chunks_per_shard * capacity_unit(flow)
    best = pieces.route(np.full(flow.expansion.steps, np.inf), flow.volumes, late=never)
    low, high = LEAST_SLACK, best.loss
    for _ in range(SQUEEZES):
        if best.within(most_loss) or high <= low or settings.out_of_time():
            break
        slack = float(np.sqrt(low * high))
        found = pieces.route(flow.durations * unit * (1 + slack), flow.volumes)
        best = min(best, found, key=lambda each: each.loss)
        low, high = (low, min(slack, best.loss)) if found.fits else (slack, min(high, best.loss))
    if not np.isfinite(best.loss):
        raise InputError(
            f"{flow.expansion.problem.topology.name}: the paths of {len(best.paths):,} chunks are "
            f"longer than {best.paths.shape[1]} links; use fewer chunks per shard"
        )
    return best


def work(flow: TimedFlow, chunks_per_shard: int) -> int:
    """Return the size of rounding: the chunks to route times the links that a path may take."""
    counts = chunks_of(_amounts(flow), chunks_per_shard)
    return int(counts.sum()) * flow.expansion.graph.links


def _amounts(flow: TimedFlow) -> Floats:
    """Return what the sources that stand for all are to send to each destination."""
    return flow.expansion.problem.demand.rows(flow.groups.source)


def capacity_unit(flow: TimedFlow) -> float:
    """Return the capacity that carries one chunk per unit of duration: that of a busy link.

    It is the median over links, each counted as long as it is busy. So the result does not depend
    on the unit of capacity, and links that are wide enough to idle do not set the pace.
    """
    capacity = flow.program.class_capacity
    order = np.argsort(capacity, kind="stable")
    busy = np.cumsum((flow.program.busy(flow.load) * flow.program.class_size)[order])
    return float(capacity[order[np.searchsorted(busy, busy[-1] / 2 * (1 - 1e-9))]])


def on_grid(flow: TimedFlow, chunks_per_shard: int) -> bool:
    """Whether durations are to be whole: all chunks are as large, and a unit is not too long."""
    amounts = _amounts(flow)
    sizes = amounts[amounts > 0] / chunks_of(amounts[amounts > 0], chunks_per_shard)
    units = chunks_per_shard * capacity_unit(flow) * flow.time
    return bool(np.ptp(sizes) <= 1e-9 * sizes.max()) and 0.5 <= units <= FINEST_GRID


def choices_of(flow: TimedFlow, most: int) -> list[int]:
    """Return the numbers of chunks per shard to try.

    These are all up to `most` that make equal chunks, and those that cut a shard of mean size into
    up to `most`, doubling: chunks of an uneven demand are never quite equal.
    """
    amounts = _amounts(flow)
    mean = float(amounts[amounts > 0].mean())
    doubling = {min(2**power, most) for power in range(most.bit_length() + 1)}
    rough = {max(1, round(chunks / mean)) for chunks in doubling}
    return sorted(rough | {chunks for chunks in range(1, most + 1) if on_grid(flow, chunks)})


def least_loss(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return the loss that whole durations cost with C equal chunks per shard.

    No schedule can be below it where all links are equally wide.
    """
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1)


def floor_of(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return a loss that no schedule with C chunks per shard can be below."""
    capacity = flow.expansion.problem.topology.capacity
    alike = np.ptp(capacity) == 0 and on_grid(flow, chunks_per_shard)
    return max(0.0, least_loss(flow, chunks_per_shard)) if alike else 0.0


def _budgets(
    flow: TimedFlow, chunks: int, total: int, refine: bool, settings: SolveSettings
) -> Iterator[tuple[Ints, Floats]]:
    """Yield integer durations that sum to `total`, each with volumes to start from."""
    shared = rounded_to(flow.durations * total / flow.time, total)
    even = rounded_to(np.full(flow.expansion.steps, total / flow.expansion.steps), total)
    halfway = rounded_to((shared + even) / 2, total)
    yield shared, flow.volumes
    if not refine:
        return
    for durations in {tuple(each): each for each in (even, shared, halfway)}.values():
        refined = _refined(flow, durations / (chunks * capacity_unit(flow)), settings)
        if refined is not None:
            yield durations, refined


def rounded_to(values: Floats, total: int) -> Ints:
    """Round non-negative values that sum to `total` to integers that do, by largest remainder."""
    whole = np.floor(values + 1e-9).astype(np.int64)
    order = np.argsort(whole - values, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def _refined(flow: TimedFlow, durations: Floats, settings: SolveSettings) -> Floats | None:
    """Return the volumes of fewest hops whose steps take exactly `durations`, if there are any."""
    group, link = useful_variables(flow.program)
    if len(link) > REFINED_VARIABLES:
        return None
    free = linear_program(flow.program, group, link)
    matrix = csc_array(free.matrix)
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


class _Pieces:
    """All chunks of the flow's groups, in units of one chunk."""

    def __init__(self, flow: TimedFlow, chunks_per_shard: int, settings: SolveSettings) -> None:
        self.flow, self.per_shard, self.settings = flow, chunks_per_shard, settings
        rows = _amounts(flow)
        self.row, destination = np.nonzero(rows)
        demand = rows[self.row, destination]
        counts = chunks_of(demand, chunks_per_shard)
        total = int(counts.sum()) * flow.translations.order
        if total > MOST_CHUNKS:
            raise InputError(
                f"{total:,} chunks in all; expected at most {MOST_CHUNKS:,}: use fewer "
                "chunks per shard, or a demand in larger units"
            )
        self.cheap = work(flow, chunks_per_shard) <= CHEAP_WORK
        self.row = np.repeat(self.row, counts)
        self.source = flow.groups.source[self.row]
        self.destination = np.repeat(destination, counts)
        self.chunk = np.arange(len(self.source)) - np.repeat(np.cumsum(counts) - counts, counts)
        size = np.repeat(demand / np.maximum(counts, 1), counts) * chunks_per_shard
        expansion = flow.expansion
        self.chunks = Chunks(expansion.starts[self.source], expansion.ends[self.destination], size)

    def route(
        self,
        durations: Floats,
        volumes: Floats,
        tries: int = 1,
        late: Callable[[], bool] | None = None,
    ) -> Rounded:
        """Route every chunk, starting from volumes in shards, and within the durations if it can.

        Of several tries, the first that fits is taken, or else the one of least loss.
        """
        expansion, program = self.flow.expansion, self.flow.program
        width = program.class_capacity / capacity_unit(self.flow)
        sharing = Sharing(program.link_class, self._share, durations[program.budget] * width)
        guide = volumes * self.per_shard
        start = trace_paths(expansion.graph, self.chunks, guide, self.row, self._longest_path())
        start = without_detours(expansion, start)
        late = late or self.settings.out_of_time
        found: list[Rounded] = []
        for seed in range(tries):
            paths, fits = negotiate_steps(
                expansion, self.chunks, start, sharing, ROUNDS, seed, late
            )
            found.append(self._rounded(without_detours(expansion, paths), fits))
            if fits or late():
                break
        return found[-1] if fits else min(found, key=lambda each: each.loss)

    @property
    def _share(self) -> Floats:
        """What a chunk and all its images put on each link of a class, per link that it passes."""
        return np.asarray(self.flow.translations.order / self.flow.program.class_size)

    def _rounded(self, paths: Ints, fits: bool) -> Rounded:
        """Return the result with its time, from the paths; infinite if one is missing."""
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

    def _longest_path(self) -> int:
        """Return room for every link of a path: one hop per step, and all switches on the way."""
        expansion = self.flow.expansion
        switches = expansion.problem.topology.nodes - len(expansion.starts)
        longest = expansion.steps * (1 + switches)
        room = max(64, MOST_ENTRIES // max(1, len(self.source)))
        return min(longest, room)


def schedule_from(rounded: Rounded, certificate: Certificate, method: str) -> Schedule:
    """Write whole chunks on timed paths as the sends of each step, without empty steps."""
    flow = rounded.flow
    topology, under = flow.expansion.problem.topology, flow.translations
    chunk, hop = np.nonzero(
        (rounded.paths != NOTHING) & (rounded.paths < flow.expansion.timed_links)
    )
    timed = rounded.paths[chunk, hop]
    used, step = np.unique(timed // topology.links, return_inverse=True)
    # Sends of one step become consecutive; each is followed by its images.
    order = np.lexsort((timed % topology.links, chunk, step))
    chunk, link = chunk[order], timed[order] % topology.links
    position = np.zeros(topology.nodes, dtype=np.int64)
    position[topology.terminals] = np.arange(len(topology.terminals))
    moved = position[under.members[:, topology.terminals]]
    return Schedule(
        problem=flow.expansion.problem,
        chunks_per_shard=rounded.chunks_per_shard,
        steps=len(used),
        step=np.repeat(step[order], under.order),
        source=moved[:, rounded.source[chunk]].T.ravel(),
        destination=moved[:, rounded.destination[chunk]].T.ravel(),
        chunk=np.repeat(rounded.chunk[chunk], under.order),
        link=under.link_members[:, link].T.ravel(),
        certificate=certificate,
        fractional_time=flow.time,
        method=method,
    )
