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
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import block_array, coo_array

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.lp import LinearProgram, LPResult, solve_program
from a2aflow.solve.candidates import Candidates, candidate_paths
from a2aflow.solve.certificate import certify
from a2aflow.solve.path_search import tree_paths
from a2aflow.solve.paths import Adjacency
from a2aflow.solve.route_settings import RouteSettings
from a2aflow.solve.routing import join_paths, routes_from_weights

MOST_COLUMN_ROUNDS = 200
"""Rounds of column generation before the best answer so far is returned."""


def route_pmcf(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the best weights on the path set of the settings."""
    if settings.paths == "columns":
        return _generate_columns(problem, settings)
    paths = candidate_paths(problem, settings)
    weight, lengths = _solve(problem, paths, settings)
    return routes_from_weights(problem, paths, weight, certify(problem, [lengths]), "pmcf")


def path_program(problem: Problem, paths: Candidates) -> tuple[LinearProgram, Ints]:
    """Build the program over w by path, then z; also return the row of each path's pair."""
    topology, terminals = problem.topology, len(problem.topology.terminals)
    pair = paths.source * terminals + paths.destination
    pairs, row = np.unique(pair, return_inverse=True)
    every = np.arange(terminals, dtype=np.int64)
    demand = problem.demand.rows(every).ravel()[pairs]
    column = np.repeat(np.arange(paths.count), np.diff(paths.start))
    ones = np.ones(paths.count)
    crossing = coo_array(
        (np.ones(len(column)), (paths.link, column)), shape=(topology.links, paths.count)
    )
    carried = coo_array((ones, (row, np.arange(paths.count))), shape=(len(pairs), paths.count))
    blocks: list[list[coo_array | None]] = [
        [carried, None],
        [crossing, coo_array(-topology.capacity[:, None])],
    ]
    program = LinearProgram(
        cost=np.append(np.zeros(paths.count), 1.0),
        matrix=block_array(blocks, format="csc"),
        row_lower=np.concatenate((demand, np.full(topology.links, -np.inf))),
        row_upper=np.concatenate((demand, np.zeros(topology.links))),
    )
    return program, row.astype(np.int64)


def _solve(problem: Problem, paths: Candidates, settings: RouteSettings) -> tuple[Floats, Floats]:
    """Return weights, and the link lengths from the duals; equal weights if the solver has none."""
    program, row = path_program(problem, paths)
    result = solve_program(program, settings.solve.solver, settings.solve.lp_settings())
    lengths = np.zeros(problem.topology.links)
    if result.row_dual is not None:
        lengths = np.maximum(0.0, -result.row_dual[-problem.topology.links :])
    return _weights(result, row), lengths


def _weights(result: LPResult, row: Ints) -> Floats:
    if result.x is None:
        return 1.0 / np.bincount(row)[row]
    weight = np.maximum(result.x[:-1], 0.0)
    lost = np.bincount(row, weight)[row] <= 0
    return np.where(lost, 1.0, weight)


def _generate_columns(problem: Problem, settings: RouteSettings) -> Routes:
    """Add shortest paths under the current prices until the certified gap is small enough."""
    paths = candidate_paths(problem, replace(settings, paths="disjoint"))
    certificate = certify(problem, [])
    for done in range(MOST_COLUMN_ROUNDS):
        weight, price = _solve(problem, paths, settings)
        certificate = max(certificate, certify(problem, [price]), key=lambda each: each.bound)
        routes = routes_from_weights(problem, paths, weight, certificate, "pmcf")
        settings.solve.report(f"columns: round {done}, {paths.count} paths, gap {routes.gap:.2e}")
        if routes.gap <= settings.solve.gap or settings.solve.out_of_time():
            break
        grown = join_paths([paths, priced_paths(problem, price)])
        if grown.count == paths.count:
            break
        paths = grown
    return routes


def priced_paths(problem: Problem, lengths: Floats) -> Candidates:
    """Return a shortest path of every pair under the given lengths, fewest hops among equals."""
    topology = problem.topology
    # A hop costs a little, so that free links do not lead anywhere.
    nudged = lengths + 1e-9 * max(float(lengths.max()), 1e-300)
    first, out = Adjacency(topology).outgoing
    source, destination = problem.demand.pairs()
    start, link = tree_paths(
        topology.nodes,
        (first, out),
        (topology.tail, topology.head),
        nudged,
        topology.terminals[source],
        topology.terminals[destination],
    )
    return Candidates(source, destination, start, link)
