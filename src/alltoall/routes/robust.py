"""`robust`: a template, fixed shares of every pair on its routes, for a family of demands.

Over shares x[p] of the paths p of each pair, and demands D of the family, each with its own bound
B(D) on the time of any routes:

    minimise    the mean over D of  max over links l of  load[l] / (cap[l] B(D))
    where       load[l]  =  sum over p with l in p of  x[p] D(pair of p),   x >= 0, sum 1 per pair

and for given demands, or for the hose model, the worst D in place of the mean. Both are convex, so
the optimum over the candidate paths is found: shortest paths and those up to two hops longer.

It is solved by mirror descent: shares are multiplied by exp(-step * gradient) and averaged over the
second half of all steps. Every step draws new demands, which prevents overfitting; for the hose
model they are the worst permutations for the current shares. Where translations map the network to
itself, they map the family too, and of convex objectives the average over them is no worse: paths
that are images of each other have one share. `benchmarks/templates.py` measures it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from alltoall.errors import InputError
from alltoall.flows.program import certify
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats, Ints, products
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.candidates import candidate_paths
from alltoall.paths.shortest import shortest_distances
from alltoall.routes.pmcf import images_of, representative_part
from alltoall.routes.skews import SKEW, Family, worst_of_hose
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

METHOD = "robust"
"""The name of the method."""

STEPS = 400
"""Steps of mirror descent; the shares are those of the second half, on average."""

BATCH = 48
"""Demands drawn in every step; 16 lose 0.8 points more of pairs, 128 save 0.2."""

LINK_STEEPNESS = 40.0
"""Weight of saturated links: its exponential for a load at the bound."""

FIRST_STEP = 0.5
"""The first step, in multiples of the mean gradient; step k is shorter by the root of k."""

LONGER = 2
"""Extra hops of candidate paths, if these are few."""

ENOUGH_PATHS = 60_000
"""Number of paths beyond which longer ones are skipped."""

LEAST_SHARE = 0.01
"""Least share of a route."""

MOST_PATHS = 400_000
"""Paths of all pairs beyond which shares are not looked for."""


def route_robust(problem: Problem, settings: RouteSettings) -> Routes:
    """Return routes whose shares serve a family of demands; `skew` unless settings name others."""
    topology, terminals = problem.topology, len(problem.topology.terminals)
    family = Family(problem, settings.robust or (SKEW,))
    translations = find_translations(problem, settings.solve.symmetry)
    one = _candidates(problem, translations, settings)
    paths = images_of(one, translations)
    pool = _Pool(
        problem,
        paths,
        pair=paths.pair(terminals),
        variable=np.tile(np.arange(one.count), translations.order),
        first=one.pair(terminals),
        crossing=csr_array(
            (1 / topology.capacity[paths.link], (paths.link, paths.path_of_link)),
            shape=(topology.links, paths.count),
        ),
    )
    share = _descend(pool, family, settings)
    kept = np.where(share >= LEAST_SHARE, share, 0.0)[pool.variable]
    weight = kept * problem.demand.of(paths.source, paths.destination)
    order = np.argsort(pool.pair, kind="stable")
    proof = certify(problem, [])
    return routes_from_weights(problem, paths.select(order), weight[order], proof, METHOD)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Candidate paths of all pairs; images of each other have one `variable`.

    `first` is the pair of each variable, and `crossing` [links, paths] the time of each link per
    unit on each path.
    """

    problem: Problem
    paths: Paths
    pair: Ints
    variable: Ints
    first: Ints
    crossing: csr_array

    def shares(self, logs: Floats) -> Floats:
        """Return shares in proportion to exp(logs) that add up to 1 for each pair."""
        cells = len(self.problem.topology.terminals) ** 2
        top = np.full(cells, -np.inf)
        np.maximum.at(top, self.first, logs)
        share = np.exp(logs - top[self.first])
        return np.asarray(share / np.bincount(self.first, share, cells)[self.first])


def _candidates(problem: Problem, translations: Translations, settings: RouteSettings) -> Paths:
    """Return the paths of the first sources: the shortest, and longer ones while they are few."""
    part, order = representative_part(translations), translations.order
    found = candidate_paths(part, replace(settings, paths="shortest"))
    if found.count * order > MOST_PATHS:
        raise InputError(
            f"{problem.topology.name}: {found.count * order:,} shortest paths; expected at most "
            f"{MOST_PATHS:,} for robust routes. Use ewsp, which spreads evenly over all of them"
        )
    for longer in range(1, LONGER + 1):
        # They multiply from hop to hop, so what may be too many is not even listed.
        if found.count * order > ENOUGH_PATHS // 4:
            break
        more = candidate_paths(part, replace(settings, paths="bounded", slack=longer))
        if more.count * order > ENOUGH_PATHS:
            break
        found = more
    return found


def _descend(pool: _Pool, family: Family, settings: RouteSettings) -> Floats:
    """Return the share of each variable, after the steps possible in time."""
    random = np.random.default_rng(settings.seed)
    bounds, least = _quick_bounds(pool.problem), None
    logs = np.zeros(len(pool.first))
    total = np.zeros(len(logs))
    for step in range(STEPS):
        share = pool.shares(logs)
        if settings.solve.out_of_time() and least is not None:
            break
        if family.hose:
            matrices = worst_of_hose(pool.problem, pool.paths, share[pool.variable])[:BATCH]
        else:
            matrices = family.draw(random, BATCH)
        amounts = (matrices / bounds(matrices)[:, None, None]).reshape(len(matrices), -1)
        worst = family.hose or len(family.given) > 0
        gradient, mean = _gradient(pool, share, amounts[:, pool.pair].T, worst)
        logs = logs - FIRST_STEP / np.sqrt(1 + step) * gradient
        total = total + share if step >= STEPS // 2 else share
        least = mean if least is None else min(least, mean)
        if step % 20 == 0:
            settings.solve.report(f"robust: step {step}, about {mean - 1:.0%} over the bounds")
    # A time limit in the first half leaves the last shares, not their mean.
    return np.asarray(total / np.bincount(pool.first, total)[pool.first])


def _gradient(pool: _Pool, share: Floats, amounts: Floats, worst: bool) -> tuple[Floats, float]:
    """Return the slope of the objective in each share, in units of the mean one, and its value.

    `amounts` [paths, demands] are in units of their demand's bound.
    """
    load = pool.crossing @ (amounts * share[pool.variable][:, None])
    fullest = load.max(axis=0)
    price = np.exp(LINK_STEEPNESS * (load - (fullest.max() if worst else fullest)))
    price /= price.sum() if worst else price.sum(axis=0) * len(fullest)
    slope = np.bincount(pool.variable, ((pool.crossing.T @ price) * amounts).sum(axis=1))
    mean = np.bincount(pool.first, slope * share)
    slope = slope - mean[pool.first]
    pairs = int((mean > 0).sum())
    typical = float(np.sum(share * np.abs(slope))) / max(1, pairs)
    return np.asarray(slope / max(typical, 1e-300)), float(
        fullest.max() if worst else fullest.mean()
    )


def _quick_bounds(problem: Problem) -> Callable[[Floats], Floats]:
    """Return a function that bounds the time of any demands [demands, n, n] from below.

    The bounds are by distances and by the links of a node.
    """
    topology, ends = problem.topology, problem.topology.terminals
    hops = shortest_distances(topology, np.ones(topology.links), ends)[:, ends]
    # Without links there is nothing to send, so that any capacity does.
    out, into = (
        np.where(room > 0, room, 1.0)
        for node in (topology.tail, topology.head)
        for room in [np.bincount(node, topology.capacity, topology.nodes)[ends]]
    )

    def bounds(matrices: Floats) -> Floats:
        far = products(matrices, hops).sum(axis=(1, 2)) / topology.capacity.sum()
        sent = (matrices.sum(axis=2) / out).max(axis=1)
        received = (matrices.sum(axis=1) / into).max(axis=1)
        return np.asarray(np.maximum(far, np.maximum(sent, received)))

    return bounds
