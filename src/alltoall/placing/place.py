"""`place`: chunks on paths so that the largest load is low, by best responses to link prices.

The potential is the sum over links of exp(steepness * (load / (capacity * time) - 1)), where `time`
is the largest load over capacity so far. Source by source, the cheapest paths for one more chunk
are found, and each chunk of the source moves to its cheapest path if that lowers the potential. The
steepness grows from round to round: at first all loads count, in the end only the fullest links.

A round costs one search per source and a look at every path.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.lp.settings import never
from alltoall.paths.blocks import row_blocks
from alltoall.placing.chunks import Chunks, Table, grow_steeper, path_room
from alltoall.placing.network import Network
from alltoall.settings import Late


@dataclass(frozen=True)
class PlacementParams:
    """How prices grow steeper; `benchmarks/scale_routes.py` and `benchmarks/routes.py` measure it.

    Attributes:
        first: the first steepness; at 3 a full link is twenty times as expensive as an empty one.
        last: the last steepness; None for the number of chunks that fit on a link at the goal.
        rounds: rounds, in which the steepness grows.
        last_share: the share of the rounds that are at the last steepness.
        fresh_sources: up to this many sources, each sees the moves of those before it; of more, 16
            search at the same prices, in parallel.
        threads: threads for these searches.

    """

    first: float = 3.0
    last: float | None = None
    rounds: int = 50
    last_share: float = 0.2
    fresh_sources: int = 500
    threads: int = 1

    def steepness(self, goal: float, capacity: Floats, size: float) -> Floats:
        """Return the steepness of each round for chunks of a mean size.

        In the last ones, one chunk more or less on a link decides.
        """
        fit = goal * float(np.median(capacity)) / size
        last = self.last or min(LAST_STEEPNESS, max(10 * PlacementParams.first, fit))
        flat = int(self.last_share * self.rounds)
        growing = np.geomspace(min(self.first, last), last, self.rounds - flat)
        return np.append(growing, np.full(flat, last))


DEFAULTS = PlacementParams()
"""Default parameters."""

QUICK = PlacementParams(rounds=10)
"""Few rounds, for searches over many networks; measured by `benchmarks/deadlock_free.py`."""

SETTLED = PlacementParams(first=30.0, rounds=20)
"""Parameters for mostly well-placed chunks, which start at high steepness to stay in place.

`benchmarks/layers.py` measures it.
"""

LAST_STEEPNESS = 1e4
"""The last steepness at most; steeper prices lose digits."""

SOURCES_PER_CALL = 16
"""Sources that search at the same prices, in one call of the core, so that Ctrl-C is heard.

`benchmarks/scale_routes.py` measures it.
"""

Report = Callable[[int, float], object]
"""Receives the round and the time."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Chunks on paths.

    `table` has the best paths seen, `time` is their largest load over capacity, and `repaired` the
    paths after only chunks without one had moved. `prices` has the price of each link over its
    capacity, round by round, scaled to a sum of 1 over capacity: lengths that bound the time.
    """

    table: Table
    time: float
    repaired: Table
    prices: list[Floats]

    @property
    def lengths(self) -> Floats:
        """The mean price of each link in the later rounds: lengths that nearly prove the time."""
        return np.asarray(np.mean(self.prices[len(self.prices) // 2 :], axis=0), dtype=np.float64)


def place(
    network: Network,
    chunks: Chunks,
    goal: float,
    params: PlacementParams = DEFAULTS,
    start: Table | None = None,
    late: Late = never,
    report: Report | None = None,
) -> Placement | None:
    """Place chunks, sorted by their start, on paths with a time near or below `goal`.

    Chunks begin on the paths of `start`, whose empty rows are chunks without one; if it is None,
    on paths of fewest hops. Return None if some chunk has no path. When it is `late`, the best
    paths so far are returned.
    """
    state = _begin(network, chunks, goal, params, start, late)
    if state is None:
        return None
    state.repaired, state.report = state.table.copy(), report
    grow_steeper(state, state.steepnesses, state.is_done)
    return Placement(state.best, state.least, state.repaired, state.prices or [state.price()])


def _begin(
    network: Network,
    chunks: Chunks,
    goal: float,
    params: PlacementParams,
    start: Table | None,
    late: Late,
) -> "_BestResponse | None":
    """Give every chunk a path, None if some has none."""
    table = _empty_table(network, chunks) if start is None else start.copy()
    if table is None:
        return None
    load = network.loads(table, chunks.size)

    def without_path() -> Ints:
        return np.flatnonzero(table[:, 0] == NOTHING)

    def part(rows: Ints) -> _BestResponse:
        return _BestResponse(network, chunks.select(rows), goal, params, table[rows], load, late)

    if start is not None and len(rows := without_path()):
        some = part(rows)
        grow_steeper(some, some.steepnesses[-1:].repeat(QUICK.rounds), some.is_done)
        table[rows] = some.table
    if len(rows := without_path()):
        some = part(rows)
        for sources in row_blocks(some.count, network.links, least=1):
            some.respond(sources, None, 0.0)
        table[rows] = some.table
        if len(without_path()):
            return None
    state = _BestResponse(network, chunks, goal, params, table, load, late)
    state.keep_best()
    return state


def _empty_table(network: Network, chunks: Chunks) -> Table | None:
    """Return a table without paths, with room for detours; None if some chunk has no path."""
    start, first = _by_source(chunks)
    most = 0
    for rows in row_blocks(len(start), network.links, least=1):
        bounds = first[rows.start : rows.stop + 1]
        ends = chunks.end[bounds[0] : bounds[-1]]
        hops = core.most_hops(network.where, start[rows], bounds - bounds[0], ends)
        if hops < 0:
            return None
        most = max(most, hops)
    room = path_room(most, network.longest_path)
    return np.full((len(chunks.start), room), NOTHING, dtype=np.int32)


def _by_source(chunks: Chunks) -> tuple[Ints, Ints]:
    """Return the distinct starts, and the bounds of the chunks of each."""
    start, first = np.unique(chunks.start, return_index=True)
    return start, np.append(first, len(chunks.start)).astype(np.int64)


@dataclass(eq=False)
class _BestResponse:
    """Chunks by source, their paths, and the loads of the links."""

    network: Network
    chunks: Chunks
    goal: float
    params: PlacementParams
    table: Table
    load: Floats
    late: Late
    moved: int = 0
    round: int = 0
    steepness: float = PlacementParams.first
    scale: Floats = field(init=False)
    best: Table = field(init=False)
    least: float = np.inf
    repaired: Table = field(init=False)
    prices: list[Floats] = field(default_factory=list)
    report: Report | None = None

    def __post_init__(self) -> None:
        self.start, self.first = _by_source(self.chunks)
        self.best = np.empty_like(self.table)
        total = (
            np.add.reduceat(self.chunks.size, self.first[:-1]) if len(self.start) else np.zeros(0)
        )
        self.mean_size = total / np.diff(self.first)
        self.steepnesses = self.params.steepness(
            self.goal, self.network.capacity, float(self.chunks.size.mean())
        )

    @property
    def count(self) -> int:
        """The number of sources."""
        return len(self.start)

    @property
    def time(self) -> float:
        """The largest load over capacity."""
        return float((self.load / self.network.capacity).max())

    def is_done(self) -> bool:
        """Return whether the goal is reached or time is up."""
        return self.least <= self.goal * (1 + 1e-9) or self.late()

    def move(self, begin: int, steepness: float) -> int:
        """Let the chunks of some sources respond."""
        if begin == 0:
            self.moved, self.steepness = 0, steepness
            self.scale = steepness / (max(self.goal, self.time) * self.network.capacity)
        end = min(begin + SOURCES_PER_CALL, self.count)
        self.moved += self.respond(slice(begin, end), self.scale, steepness)
        return end

    def respond(self, sources: slice, scale: Floats | None, steepness: float) -> int:
        """Let the chunks of some sources move to cheaper paths; return how many did."""
        first = self.first[sources.start : sources.stop + 1]
        rows = slice(int(first[0]), int(first[-1]))
        few = self.count <= self.params.fresh_sources
        return core.respond(
            self.network.where, self.start[sources], first - first[0], self.chunks.end[rows],
            self.chunks.size[rows], self.mean_size[sources], scale, steepness, self.table[rows],
            self.load, 1 if few else SOURCES_PER_CALL, self.params.threads,
        )  # fmt: skip

    def end_round(self) -> bool:
        """Keep the best paths and the prices; stop if nothing moves at the last steepness."""
        self.round += 1
        if self.report is not None:
            self.report(self.round, self.time)
        self.prices.append(self.price())
        self.keep_best()
        return not self.moved and self.steepness == self.steepnesses[-1]

    def price(self) -> Floats:
        """Return the price of each link over its capacity, scaled to a sum of 1 over capacity."""
        capacity = self.network.capacity
        price = np.exp(self.steepness * (self.load / (self.time * capacity) - 1))
        return np.asarray(price / capacity / price.sum(), dtype=np.float64)

    def keep_best(self) -> None:
        """Remember the paths if they are the best so far."""
        if self.time < self.least:
            np.copyto(self.best, self.table)  # Fresh memory would take several times as long.
            self.least = self.time
