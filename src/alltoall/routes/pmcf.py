"""pMCF: the path-based maximum concurrent flow, and column generation, which makes it exact.

Over weights w[p] of candidate paths p and the time z = 1/F (eq:mcmcf-path-F ff., divided by F):

    minimise    z
    subject to  sum over p with l in p of w[p]  <=  cap[l] z      for every link l   (capacity)
                sum over p of pair (s, d) of w[p]  =  D(s, d)     for every pair     (demand)
                w >= 0

With a fixed path set the optimum is that of the set. With `columns` it is that of all paths: the
duals of the capacity rows are link lengths, a shortest path under them that is shorter than the
dual of its pair would improve the program and is added, and when none is, the same lengths certify
that nothing better exists.

**Symmetry.** Let H be translations (`flows.symmetry`): of all sources in an orbit each is the
image of a representative under exactly one member. Where there are many paths, only those of the
representatives are searched for, their images are the path set of the other sources, and the
capacity rows of an orbit O of links are summed up into one:

    sum over p of w[p] * (links of O in p)  <=  z * (sum over l in O of cap[l]) / |H|

The routes of h(s) are then the images under h of those of s, with the same weights. All links of an
orbit carry the same, so z is the time of the whole. Where all images of candidates are candidates
(shortest, bounded, columns), the average over H of a solution of the whole is one of these, so the
optimum is the same; which disjoint or k-shortest paths are taken among equals may change, and the
optimum with them. A dual of an orbit is the length of each of its links.
"""

from dataclasses import replace

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.by_lp import MOST_PROGRAM_BYTES
from alltoall.flows.program import certify_program, reduced_program
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.demand import Demand
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.lp.program import Entries, LinearProgram, LPResult, least_time
from alltoall.lp.solve import solve_program
from alltoall.paths.candidates import candidate_paths
from alltoall.paths.shortest import tree_paths
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

MOST_COLUMN_ROUNDS = 200
"""Rounds of column generation before the best answer so far is returned."""

ENTRY_BYTES = 250
"""Memory per matrix entry until the program is solved."""


def route_pmcf(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the best weights on the path set of the settings.

    Under symmetry the set is that of one source per orbit and its images.
    """
    columns = settings.paths == "columns"
    named = replace(settings, paths="disjoint") if columns else settings
    one = candidate_paths(_sending(problem, problem.sources[:1]), named)
    many = one.count * len(problem.sources) >= sizes.WHOLE_PATHS
    translations = find_translations(problem, settings.solve.symmetry and many)
    part = representative_part(translations)
    paths = candidate_paths(part, named)
    if columns:
        return _lifted(_generate_columns(part, paths, translations, settings), translations)
    weight, lengths = _solve(part, paths, translations, settings)
    routes = routes_from_weights(part, paths, weight, _certify(translations, lengths), "pmcf")
    return _lifted(routes, translations)


def path_program(
    problem: Problem, paths: Paths, translations: Translations | None = None
) -> tuple[LinearProgram, Ints]:
    """Build the program over w by path, then z; also return the row of each path's pair.

    Rows are pairs, then orbits of links, which are the links unless there are translations.
    """
    needed = ENTRY_BYTES * (paths.count + len(paths.link))
    if needed > MOST_PROGRAM_BYTES:
        raise InputError(
            f"{problem.topology.name}: a program over {paths.count:,} paths of "
            f"{len(paths.link):,} links needs about {needed / 2**30:.1f} GiB; expected at most "
            f"{MOST_PROGRAM_BYTES / 2**30:g} GiB. Choose fewer paths, or the method extp or single"
        )
    link_class, room = _capacity_rows(translations or find_translations(problem, wanted=False))
    pair = paths.pair(len(problem.topology.terminals))
    _, first, row = np.unique(pair, return_index=True, return_inverse=True)
    demand = problem.demand.of(paths.source[first], paths.destination[first])
    rows = len(room)
    # A path may cross several links of an orbit.
    cell, times = np.unique(paths.path_of_link * rows + link_class[paths.link], return_counts=True)
    carried = Entries(np.ones(paths.count), row, np.arange(paths.count))
    crossing = Entries(times.astype(np.float64), cell % rows, cell // rows)
    return least_time(carried, demand, crossing, room), row.astype(np.int64)


def _capacity_rows(translations: Translations) -> tuple[Ints, Floats]:
    """Return the row of each link, and the capacity of each row."""
    symmetry = translations.symmetry
    total = np.bincount(symmetry.link_orbit, symmetry.problem.topology.capacity)
    return symmetry.link_orbit, total / translations.order


def _solve(
    problem: Problem, paths: Paths, translations: Translations, settings: RouteSettings
) -> tuple[Floats, Floats]:
    """Return weights, and the link lengths from the duals; equal weights if the solver has none."""
    program, row = path_program(problem, paths, translations)
    result = solve_program(program, settings.solve.solver, settings.solve.lp_settings())
    lengths = np.zeros(problem.topology.links)
    if result.row_dual is not None:
        link_class, room = _capacity_rows(translations)
        lengths = np.maximum(0.0, -result.row_dual[-len(room) :])[link_class]
    return weights_of(result, row), lengths


def weights_of(result: LPResult, row: Ints) -> Floats:
    """Return the weights of a solution, equal ones of pairs without any."""
    if result.x is None:
        return 1.0 / np.bincount(row)[row]
    weight = np.maximum(result.x[:-1], 0.0)
    lost = np.bincount(row, weight)[row] <= 0
    return np.where(lost, 1.0, weight)


def _generate_columns(
    problem: Problem, paths: Paths, translations: Translations, settings: RouteSettings
) -> Routes:
    """Add shortest paths under the current prices until the certified gap is small enough."""
    topology, (source, destination) = problem.topology, problem.demand.pairs()
    ends = topology.terminals[source], topology.terminals[destination]
    link_class, room = _capacity_rows(translations)
    certificate = _certify(translations)
    for done in range(MOST_COLUMN_ROUNDS):
        weight, price = _solve(problem, paths, translations, settings)
        certificate = max(certificate, _certify(translations, price), key=lambda each: each.bound)
        routes = routes_from_weights(problem, paths, weight, certificate, "pmcf")
        # The routes of the representatives, together with all their images.
        gap = float((np.bincount(link_class, routes.load()) / room).max()) / certificate.bound - 1
        text = f"columns: round {done}, {paths.count} paths, certified gap {gap:.2e}"
        settings.solve.report(ProgressMessage.of_gap(text, gap, settings.solve.gap))
        if gap <= settings.solve.gap or settings.solve.out_of_time():
            break
        # A hop costs a little, so that free links do not lead anywhere.
        nudged = price + 1e-9 * max(float(price.max()), 1e-300)
        priced = Paths(source, destination, *tree_paths(topology, nudged, *ends))
        joined = Paths.join([paths, priced])
        grown = joined.select(joined.equal()[0])
        if grown.count == paths.count:
            break
        paths = grown
    return routes


def representative_part(translations: Translations) -> Problem:
    """Return the part of the problem that one source of each orbit sends."""
    problem = translations.symmetry.problem
    if translations.order == 1:
        return problem
    return _sending(problem, translations.symmetry.representatives()[0])


def _sending(problem: Problem, sources: Ints) -> Problem:
    """Return the problem in which only the given terminals send."""
    terminals = len(problem.topology.terminals)
    matrix = np.zeros((terminals, terminals))
    matrix[sources] = problem.demand.rows(sources)
    return Problem(problem.topology, Demand(terminals, matrix))


def _certify(translations: Translations, *lengths: Floats) -> Certificate:
    """Return the best certificate of the whole problem; lengths are equal within each orbit."""
    return certify_program(reduced_program(translations.symmetry), lengths)


def images_of(paths: Paths, translations: Translations) -> Paths:
    """Return the images of paths under all translations, one translation after the other."""
    topology = translations.symmetry.problem.topology
    moved = topology.position[translations.members[:, topology.terminals]]
    return Paths(
        source=moved[:, paths.source].ravel(),
        destination=moved[:, paths.destination].ravel(),
        start=starts_of(np.tile(paths.hops, translations.order)),
        link=translations.link_members[:, paths.link].ravel(),
    )


def _lifted(routes: Routes, translations: Translations) -> Routes:
    """Return the images of the routes under all translations, ordered by pair."""
    if translations.order == 1:
        return routes
    problem, images = translations.symmetry.problem, images_of(routes, translations)
    order = np.lexsort((images.destination, images.source))
    chosen = images.select(order)
    weight = np.tile(routes.weight, translations.order)[order]
    return routes_from_weights(problem, chosen, weight, routes.certificate, routes.method)
