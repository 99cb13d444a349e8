"""ILP: one candidate path per pair, so that the largest load over capacity is least.

    minimise    z
    subject to  sum over paths p through l of amount[p] x[p]  <=  capacity[l] z    for every link l
                sum over paths p of pair i of x[p]  =  1                           for every pair i
                x[p] in {0, 1}

with the candidates link-disjoint (ILP-disjoint) or shortest (ILP-shortest). Where the demands over
capacities have a common measure, z is counted in whole units of it.

Pairs that negotiate make a first choice, and the duals of the relaxation prove a bound; if the two
meet, the search ends. Otherwise branch and bound starts from the first choice, and returns the best
choice found in time.

That bound holds for choices of one candidate per pair. It is reported, and kept in `Choice`, but
never becomes the certificate of the routes, which bounds every all-to-all.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import status_in_words
from alltoall.lp.highs import mip
from alltoall.lp.program import Entries, LinearProgram, sparse_matrix
from alltoall.lp.settings import LPStatus, never
from alltoall.lp.solve import solve_program
from alltoall.paths.candidates import candidate_paths
from alltoall.placing.chunks import largest_load
from alltoall.placing.listed import UNPLACED, ListedChunks, first_found, negotiate_listed
from alltoall.placing.listed import Choice as Places
from alltoall.placing.negotiate import NEGOTIATION, NegotiationParams
from alltoall.routes.weights import TARGETS, routes_from_weights
from alltoall.settings import Late, RouteSettings, SolveSettings

DEFAULT_SECONDS = 60.0
"""The program is NP-hard: seconds after which to stop if the caller set no time limit."""

MOST_UNITS = 64
"""Times are counted in whole units if few different ones occur and the least has few units."""


@dataclass(frozen=True, eq=False)
class Choice:
    """One path per pair, their time, and a bound on that of any choice of candidates."""

    path: Ints
    time: float
    bound: float = 0.0
    status: LPStatus = LPStatus.OPTIMAL

    @property
    def gap(self) -> float:
        """The most by which the time can exceed that of the best choice."""
        return max(0.0, self.time / self.bound - 1.0) if self.bound > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Choosing:
    """The question: which candidate of each pair; the answers' times and a program for them."""

    problem: Problem
    candidates: Paths

    @cached_property
    def first(self) -> Ints:
        """The first path of each pair, and the number of paths; paths are ordered by pair."""
        source, destination = self.candidates.source, self.candidates.destination
        changed = np.flatnonzero((np.diff(source) != 0) | (np.diff(destination) != 0))
        return np.concatenate(([0], changed + 1, [len(source)])).astype(np.int64)

    @cached_property
    def amount(self) -> Floats:
        """The demand of each path's pair."""
        return self.problem.demand.of(self.candidates.source, self.candidates.destination)

    @cached_property
    def unit(self) -> float | None:
        """A common divisor of all possible times, if there is one."""
        return common_measure(self.amount, self.problem.topology.capacity)

    @cached_property
    def scale(self) -> float:
        """The time in which the program counts."""
        return self.unit or float(self.amount.max() / self.problem.topology.capacity.max())

    def time(self, path: Ints) -> float:
        """Return the time of a choice."""
        return largest_load(self.problem.topology, self.candidates.select(path), self.amount[path])

    def bound(self, lengths: Floats) -> float:
        """Return the bound that link lengths prove for every choice of candidates."""
        lengths = np.maximum(lengths, 0.0)
        volume = float(self.problem.topology.capacity @ lengths)
        if volume <= 0.0:
            return 0.0
        path = np.add.reduceat(lengths[self.candidates.link], self.candidates.start[:-1])
        shortest = np.minimum.reduceat(path, self.first[:-1])
        proven = float(self.amount[self.first[:-1]] @ shortest) / volume
        return proven if self.unit is None else math.ceil(proven / self.unit - 1e-9) * self.unit

    def program(self) -> LinearProgram:
        """Build the program; variables are x by candidate, then z over `scale`.

        Rows of links are divided by their capacity and the scale, so that all numbers are whole
        where there is a unit.
        """
        topology, paths, pairs = self.problem.topology, len(self.amount), len(self.first) - 1
        pair = np.repeat(np.arange(pairs), np.diff(self.first))
        path = self.candidates.path_of_link
        links = np.arange(topology.links)
        row = np.concatenate((self.candidates.link, links, len(links) + pair))
        column = np.concatenate((path, np.full(len(links), paths), np.arange(paths)))
        load = self.amount[path] / (self.scale * topology.capacity[self.candidates.link])
        value = np.concatenate((load, -np.ones(len(links)), np.ones(paths)))
        shape, ones = (len(links) + pairs, paths + 1), np.ones(pairs)
        return LinearProgram(
            cost=np.append(np.zeros(paths), 1.0),
            matrix=sparse_matrix(shape, Entries(value, row, column)),
            row_lower=np.concatenate((np.full(len(links), -np.inf), ones)),
            row_upper=np.concatenate((np.zeros(len(links)), ones)),
            integer=np.append(np.ones(paths, dtype=np.bool_), self.unit is not None),
        )


def route_ilp_disjoint(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the best choice of one out of a pair's link-disjoint paths."""
    return _route(problem, replace(settings, paths="disjoint"))


def route_ilp_shortest(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the best choice of one out of a pair's shortest paths."""
    return _route(problem, replace(settings, paths="shortest"))


def _route(problem: Problem, settings: RouteSettings) -> Routes:
    method = f"ilp-{settings.paths}"
    candidates = candidate_paths(problem, settings)
    choice = choose_paths(Choosing(problem, candidates), settings)
    # Only a proven choice is optimal.
    proven = Status.of_gap(choice.gap, settings.solve.gap, Status.GAP_NOT_REACHED)
    ended = status_in_words(proven if choice.status is LPStatus.OPTIMAL else choice.status)
    settings.solve.report(
        f"{method}: {ended}, {choice.gap:.2%} at most from the best choice of these paths"
    )
    chosen = candidates.select(choice.path)
    weight = problem.demand.of(chosen.source, chosen.destination)
    return routes_from_weights(problem, chosen, weight, certify(problem, []), method)


def choose_paths(choosing: Choosing, settings: RouteSettings) -> Choice:
    """Return the best choice found within the time limit, at worst the heuristic's."""
    if settings.solve.time_limit is None:
        settings = replace(settings, solve=settings.solve.limited(DEFAULT_SECONDS))
    solving = settings.solve
    capacity, quick = choosing.problem.topology.capacity, _quick_choice(choosing, settings)
    if solving.out_of_time():
        return replace(quick, status=LPStatus.TIME_LIMIT)
    # The duals of the relaxation prove a bound.
    program, left = choosing.program(), solving.seconds_left() or 0.0
    relaxed = replace(solving.lp_settings(), tolerance=1e-8, time_limit=left / 2, vertex=False)
    dual = solve_program(program, solving.solver, relaxed).row_dual
    if dual is not None:
        quick = replace(quick, bound=choosing.bound(-dual[: len(capacity)] / capacity))
    if quick.time <= quick.bound * (1 + solving.gap):
        return quick
    return _search(choosing, program, quick, solving)


def _quick_choice(choosing: Choosing, settings: RouteSettings) -> Choice:
    """Return the choice of least time that pairs reach by negotiation."""
    paths, topology = choosing.candidates, choosing.problem.topology
    low, high = choosing.first[:-1], choosing.first[1:]
    chunks = ListedChunks(paths.start, paths.link, low, high, choosing.amount[low])
    nowhere = Places(low, np.full(chunks.count, UNPLACED))
    best, least = Choice(low, choosing.time(low)), choosing.bound(1 / topology.capacity)
    span = best.time - least
    step = choosing.unit or max(span / TARGETS, 1e-12 * least)

    def attempt(
        index: int, late: Late = settings.solve.out_of_time, params: NegotiationParams = NEGOTIATION
    ) -> Choice | None:
        nonlocal best
        asked = np.array([(least + index * step) * (1 + 1e-12)]), settings.seed, late, params
        places, fits = negotiate_listed(topology, chunks, nowhere, *asked)
        found = Choice(places.path, choosing.time(places.path))
        best = min(found, best, key=lambda each: each.time)
        return found if fits else None

    attempt(0, never, replace(NEGOTIATION, rounds=1))  # One round is always done.
    first_found(math.ceil(span / step * (1 - 1e-9)) - 1, attempt)
    return best


def _search(
    choosing: Choosing, program: LinearProgram, quick: Choice, settings: SolveSettings
) -> Choice:
    """Branch and bound from the quick choice on."""
    start = np.zeros(program.size)
    start[quick.path], start[-1] = 1.0, quick.time / choosing.scale
    left = settings.seconds_left() or 0.0
    limits = replace(settings.lp_settings(), tolerance=settings.gap, time_limit=left)
    result = mip(program, limits, start)
    proven = (result.bound or 0.0) * choosing.scale
    found = replace(quick, bound=max(quick.bound, proven), status=result.status)
    if result.x is None:
        return found
    pair = np.repeat(np.arange(len(choosing.first) - 1), np.diff(choosing.first))
    # The largest value of each pair comes last: it is nearly 1.
    path = np.lexsort((result.x[:-1], pair))[choosing.first[1:] - 1].astype(np.int64)
    reached = choosing.time(path)
    return replace(found, path=path, time=reached) if reached < quick.time else found


def common_measure(amount: Floats, capacity: Floats) -> float | None:
    """Return a common divisor of all amounts over all capacities, or None."""
    amounts, capacities = np.unique(amount), np.unique(capacity)
    if len(amounts) * len(capacities) > MOST_UNITS:
        return None
    times = np.unique(np.divide.outer(amounts, capacities))
    ratios = [Fraction(each).limit_denominator(MOST_UNITS) for each in times / times[0]]
    if not np.allclose(times / times[0], [float(each) for each in ratios], rtol=1e-12, atol=0):
        return None
    shared = math.lcm(*(each.denominator for each in ratios))
    unit = Fraction(math.gcd(*(int(each * shared) for each in ratios)), shared)
    return float(unit * Fraction(times[0])) if unit * MOST_UNITS >= 1 else None
