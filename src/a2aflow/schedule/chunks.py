"""From fractions to whole chunks: the one place where floats become integers.

With C chunks per shard a step of integer duration K[t] / C carries K[t] * cap[l] chunks on link l.
So a schedule is: integers K[t], whose sum B makes the time B / C, and a timed path per chunk that
respects them. For a given C the least conceivable B is C times the fractional time, rounded up.
The search tries, for B from there on, to route all chunks within budgets that follow the fractional
durations (`negotiate`), starting from the paths of the fractional flow, so few chunks need to move.

Rounding is thus an optimisation, and what it costs is known: B / C over the fractional time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Certificate
from a2aflow.ir.schedule import Schedule, chunks_of
from a2aflow.lp import LinearProgram, LPSettings, LPStatus, solve_program
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.negotiate import NOTHING, Chunks, negotiate, trace_paths
from a2aflow.solve.timestepped import TimedFlow, timestepped_program, useful_variables

ROUNDS = 300
"""Rounds of negotiation before a try is given up; a try that succeeds takes a handful."""

TRIES = 4
"""Orders of the chunks that are tried, each from its own seed."""

MOST_ENTRIES = 50_000_000
"""Links in the table of all chunks' paths; only networks of very many switches come near."""

MOST_CHUNKS = 20_000_000
"""Chunks of a whole schedule beyond which it is refused rather than attempted."""

TOTALS = 12
"""Total durations tried for one number of chunks."""

REFINED_VARIABLES = 60_000
"""Up to this size the flow is solved again for the integer durations if the first try fails."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """A timed path for each of the chunks, and what whole chunks cost."""

    chunks_per_shard: int
    time: float
    loss: float
    source: Ints
    destination: Ints
    chunk: Ints
    paths: Ints


def round_flow(
    flow: TimedFlow, chunks_per_shard: int, most_loss: float, refine: bool = True
) -> Rounded | None:
    """Return a whole-chunk schedule with C chunks per shard, or None if it would lose too much.

    With `refine`, small flows are solved again for the integer durations where rounding fails.
    """
    pieces = _Pieces(flow, chunks_per_shard)
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    least = int(np.ceil(exact * (1 - 1e-9)))
    most = int(np.floor(exact * (1 + most_loss) * (1 + 1e-9)))
    # A handful of totals spread over the range does, where there are many.
    for total in dict.fromkeys(np.linspace(least, most, min(most - least + 1, TOTALS)).astype(int)):
        for budgets, guide in _budgets(flow, chunks_per_shard, int(total), refine):
            paths = pieces.route(budgets, guide)
            if paths is not None:
                return pieces.rounded(paths)
    return None


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
    flow: TimedFlow, chunks: int, total: int, refine: bool
) -> Iterator[tuple[Ints, Floats]]:
    """Yield integer durations that sum to `total`, each with volumes to start from."""
    shared = rounded_to(flow.durations * total / flow.time, total)
    even = rounded_to(np.full(flow.expansion.steps, total / flow.expansion.steps), total)
    halfway = rounded_to((shared + even) / 2, total)
    yield shared, flow.volumes
    if not refine:
        return
    for durations in {tuple(each): each for each in (even, shared, halfway)}.values():
        refined = _refined(flow, durations / (chunks * capacity_unit(flow)))
        if refined is not None:
            yield durations, refined


def rounded_to(values: Floats, total: int) -> Ints:
    """Round non-negative values that sum to `total` to integers that do, by largest remainder."""
    whole = np.floor(values + 1e-9).astype(np.int64)
    order = np.argsort(whole - values, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def _refined(flow: TimedFlow, durations: Floats) -> Floats | None:
    """Return the volumes of fewest hops whose steps take exactly `durations`, if there are any."""
    group, link = useful_variables(flow.expansion, flow.groups)
    if len(link) > REFINED_VARIABLES:
        return None
    free = timestepped_program(flow.expansion, flow.groups, group, link)
    matrix = csc_array(free.matrix)
    fixed = np.asarray(matrix[:, len(link) :] @ durations)
    program = LinearProgram(
        cost=(link < flow.expansion.timed_links).astype(np.float64),
        matrix=matrix[:, : len(link)],
        row_lower=free.row_lower - fixed,
        row_upper=free.row_upper - fixed,
    )
    result = solve_program(program, "auto", LPSettings())
    if result.x is None or result.status is not LPStatus.OPTIMAL:
        return None
    volumes = np.zeros((len(flow.groups.start), flow.expansion.graph.links))
    volumes[group, link] = result.x
    return exact_flows(flow.expansion.graph, flow.groups, volumes)


class _Pieces:
    """All chunks of a problem, in units of one chunk."""

    def __init__(self, flow: TimedFlow, chunks_per_shard: int) -> None:
        self.flow, self.per_shard = flow, chunks_per_shard
        problem = flow.expansion.problem
        source, destination = problem.demand.pairs()
        every = np.arange(len(problem.topology.terminals), dtype=np.int64)
        demand = problem.demand.rows(every)[source, destination]
        counts = chunks_of(demand, chunks_per_shard)
        if counts.sum() > MOST_CHUNKS:
            raise InputError(
                f"{int(counts.sum()):,} chunks in all; expected at most {MOST_CHUNKS:,}: use fewer "
                "chunks per shard, or a demand in larger units"
            )
        self.source = np.repeat(source, counts)
        self.destination = np.repeat(destination, counts)
        self.chunk = np.arange(len(self.source)) - np.repeat(np.cumsum(counts) - counts, counts)
        size = np.repeat(demand / np.maximum(counts, 1), counts) * chunks_per_shard
        expansion = flow.expansion
        self.chunks = Chunks(expansion.starts[self.source], expansion.ends[self.destination], size)
        self.row = np.searchsorted(flow.groups.source, self.source)

    def route(self, durations: Ints, volumes: Floats) -> Ints | None:
        """Route every chunk within the durations, starting from volumes in shards."""
        graph, problem = self.flow.expansion.graph, self.flow.expansion.problem
        budget = np.full(graph.links, np.inf)
        capacity = problem.topology.capacity / capacity_unit(self.flow)
        widths = durations[:, None] * capacity[None, :]
        budget[: self.flow.expansion.timed_links] = widths.ravel()
        guide = volumes * self.per_shard
        start = trace_paths(graph, self.chunks, guide, self.row, self._longest_path())
        for seed in range(TRIES):
            paths, done = negotiate(graph, self.chunks, start, budget, ROUNDS, seed)
            if done:
                return paths
        return None

    def rounded(self, paths: Ints) -> Rounded:
        """Return the result with its time, recomputed from the paths."""
        topology, steps = self.flow.expansion.problem.topology, self.flow.expansion.steps
        load = np.zeros(steps * topology.links)
        chunk, hop = np.nonzero((paths != NOTHING) & (paths < len(load)))
        np.add.at(load, paths[chunk, hop], self.chunks.size[chunk] / self.per_shard)
        durations = (load.reshape(steps, topology.links) / topology.capacity).max(axis=1)
        time = float(durations.sum())
        loss = time / self.flow.time - 1
        ends = (self.source, self.destination, self.chunk)
        return Rounded(self.per_shard, time, loss, *ends, paths)

    def _longest_path(self) -> int:
        """Return room for every link of a path: one hop per step, and all switches on the way."""
        expansion = self.flow.expansion
        switches = expansion.problem.topology.nodes - len(expansion.starts)
        longest = expansion.steps * (1 + switches)
        room = max(64, MOST_ENTRIES // max(1, len(self.source)))
        return min(longest, room)


def schedule_from(
    rounded: Rounded, flow: TimedFlow, certificate: Certificate, method: str
) -> Schedule:
    """Write whole chunks on timed paths as the sends of each step, without empty steps."""
    links = flow.expansion.problem.topology.links
    chunk, hop = np.nonzero(
        (rounded.paths != NOTHING) & (rounded.paths < flow.expansion.timed_links)
    )
    timed = rounded.paths[chunk, hop]
    order = np.lexsort((timed % links, chunk, timed // links))
    used, step = np.unique(timed[order] // links, return_inverse=True)
    return Schedule(
        problem=flow.expansion.problem,
        chunks_per_shard=rounded.chunks_per_shard,
        steps=len(used),
        step=step,
        source=rounded.source[chunk[order]],
        destination=rounded.destination[chunk[order]],
        chunk=rounded.chunk[chunk[order]],
        link=timed[order] % links,
        certificate=certificate,
        fractional_time=flow.time,
        method=method,
    )
