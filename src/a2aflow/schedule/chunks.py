"""From fractions to whole chunks: the one place where floats become integers.

With C chunks per shard a step of integer duration K[t] / C carries K[t] * cap[l] chunks on link l.
So a schedule is: integers K[t], whose sum B makes the time B / C, and a timed path per chunk that
respects them. For a given C the least conceivable B is C times the fractional time, rounded up.
The search tries, for B from there on, to route all chunks within budgets that follow the fractional
durations (`timed_paths`), starting from the paths of the fractional flow, so few chunks need to
move. Under translations this happens for one source per orbit, and is then mapped to all.

Rounding is thus an optimisation, and what it costs is known: B / C over the fractional time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csc_array

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Certificate
from a2aflow.ir.schedule import Schedule, chunks_of
from a2aflow.lp import LinearProgram, LPStatus, solve_program
from a2aflow.schedule.timed_paths import Sharing, negotiate_steps
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


@dataclass(frozen=True, eq=False)
class Rounded:
    """A timed path for each chunk of the sources that stand for all, and what whole chunks cost."""

    flow: TimedFlow
    chunks_per_shard: int
    time: float
    loss: float
    source: Ints
    destination: Ints
    chunk: Ints
    paths: Ints


def round_flow(
    flow: TimedFlow,
    chunks_per_shard: int,
    most_loss: float,
    settings: SolveSettings,
    refine: bool = True,
) -> Rounded | None:
    """Return a whole-chunk schedule with C chunks per shard, or None if it would lose too much.

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

    def attempt(total: int) -> Rounded | None:
        for budgets, guide in _budgets(flow, chunks_per_shard, total, refine, settings):
            paths = pieces.route(budgets, guide)
            if paths is not None:
                return pieces.rounded(paths)
        return None

    if work(flow, chunks_per_shard) <= CHEAP_WORK:
        return next((each for each in map(attempt, totals) if each is not None), None)
    return _few(totals, attempt)


def round_at_any_cost(flow: TimedFlow, chunks_per_shard: int, settings: SolveSettings) -> Rounded:
    """Return whole chunks on the paths of the flow, whatever the load: for when time is up."""
    pieces = _Pieces(flow, chunks_per_shard, replace(settings, time_limit=None))
    unlimited = np.full(flow.expansion.steps, len(pieces.source) * MOST_CHUNKS)
    paths = pieces.route(unlimited, flow.volumes)
    if paths is None:
        raise InputError(
            f"no paths of {chunks_per_shard} chunks per shard fit the table of paths on "
            f"{flow.expansion.problem.topology.name}; use fewer chunks"
        )
    return pieces.rounded(paths)


def _few(totals: list[int], attempt: Callable[[int], Rounded | None]) -> Rounded | None:
    """Return the better of two attempts: the largest total, and if that works the middle one."""
    best = attempt(totals[-1]) if totals else None
    if best is None or len(totals) == 1:
        return best
    return attempt(totals[(len(totals) - 1) // 2]) or best


def work(flow: TimedFlow, chunks_per_shard: int) -> int:
    """Return the size of rounding: the chunks to route times the links that a path may take."""
    pairs = int(np.count_nonzero(flow.expansion.problem.demand.rows(flow.groups.source)))
    return pairs * chunks_per_shard * flow.expansion.graph.links


def capacity_unit(flow: TimedFlow) -> float:
    """Return the capacity that carries one chunk per unit of duration: that of the median link.

    Wider links carry proportionally more, so the result does not depend on the unit of capacity;
    and a few links that are much narrower or wider than the others do not set the pace.
    """
    return float(np.quantile(flow.expansion.problem.topology.capacity, 0.5, method="lower"))


def least_loss(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return the loss that no schedule with C chunks per shard can be below, by whole durations.

    It is a bound only where all links are equally wide and all shards equally large.
    """
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1)


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
        rows = flow.expansion.problem.demand.rows(flow.groups.source)
        self.row, destination = np.nonzero(rows)
        demand = rows[self.row, destination]
        counts = chunks_of(demand, chunks_per_shard)
        total = int(counts.sum()) * flow.translations.order
        if total > MOST_CHUNKS:
            raise InputError(
                f"{total:,} chunks in all; expected at most {MOST_CHUNKS:,}: use fewer "
                "chunks per shard, or a demand in larger units"
            )
        self.row = np.repeat(self.row, counts)
        self.source = flow.groups.source[self.row]
        self.destination = np.repeat(destination, counts)
        self.chunk = np.arange(len(self.source)) - np.repeat(np.cumsum(counts) - counts, counts)
        size = np.repeat(demand / np.maximum(counts, 1), counts) * chunks_per_shard
        expansion = flow.expansion
        self.chunks = Chunks(expansion.starts[self.source], expansion.ends[self.destination], size)

    def route(self, durations: Ints, volumes: Floats) -> Ints | None:
        """Route every chunk within the durations, starting from volumes in shards."""
        expansion, program = self.flow.expansion, self.flow.program
        width = program.class_capacity / capacity_unit(self.flow)
        sharing = Sharing(program.link_class, self._share, durations[program.budget] * width)
        guide = volumes * self.per_shard
        start = trace_paths(expansion.graph, self.chunks, guide, self.row, self._longest_path())
        late = self.settings.out_of_time
        cheap = work(self.flow, self.per_shard) <= CHEAP_WORK
        for seed in range(TRIES if cheap else DEAR_TRIES):
            paths, done = negotiate_steps(
                expansion, self.chunks, start, sharing, ROUNDS, seed, late
            )
            if done:
                return paths
            if late():
                break
        return None

    @property
    def _share(self) -> Floats:
        """What a chunk and all its images put on each link of a class, per link that it passes."""
        return np.asarray(self.flow.translations.order / self.flow.program.class_size)

    def rounded(self, paths: Ints) -> Rounded:
        """Return the result with its time, recomputed from the paths."""
        program = self.flow.program
        chunk, hop = np.nonzero(paths != NOTHING)
        size = self.flow.translations.order * self.chunks.size[chunk] / self.per_shard
        load: Floats = np.zeros(program.graph.links)
        np.add.at(load, paths[chunk, hop], size)
        time = float(program.durations(load).sum())
        loss = time / self.flow.time - 1
        ends = (self.source, self.destination, self.chunk)
        return Rounded(self.flow, self.per_shard, time, loss, *ends, paths)

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
