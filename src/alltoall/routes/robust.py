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

Families of demands:

| name | amount from s to d, times that of the problem |
|---|---|
| pairs | lognormal with sigma 1, for each pair by itself |
| destinations | lognormal with sigma 0.8, the same for all sources: some are popular |
| skew | half of the matrices are of the one kind, half of the other |
| hose | any, as long as no terminal sends or receives more than its share: permutations are worst |

Anything else is the name of a file with one demand in it. `benchmarks/templates.py` judges by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from alltoall.check.template import Template, check_template
from alltoall.errors import InputError, UsageError
from alltoall.flows.methods import solve_master
from alltoall.flows.program import certify
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats, Ints, products
from alltoall.ir.demand import Demand
from alltoall.ir.files.node_tables import read_demand
from alltoall.ir.files.text import is_file
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.paths.candidates import candidate_paths
from alltoall.paths.shortest import shortest_distances
from alltoall.routes.pmcf import images_of, representative_part
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings, SolveSettings

HOSE, SKEW = "hose", "skew"
"""The family of all demands within the shares of terminals, and the mixture of lognormal ones."""

PAIR_SIGMA, DESTINATION_SIGMA = 1.0, 0.8
"""The spread of lognormal amounts: of each pair, and of each destination."""

MOST_FILES = 1000
"""Demands that may be given as files."""

Draw = Callable[[np.random.Generator, int, int], Floats]
"""Draws factors [count, n, n] from a generator, a count and a number of terminals."""


def _pairs(random: np.random.Generator, count: int, size: int) -> Floats:
    return random.lognormal(0.0, PAIR_SIGMA, (count, size, size))


def _destinations(random: np.random.Generator, count: int, size: int) -> Floats:
    popular = random.lognormal(0.0, DESTINATION_SIGMA, (count, 1, size))
    return np.broadcast_to(popular, (count, size, size)).copy()


def _permutations(random: np.random.Generator, count: int, size: int) -> Floats:
    """Return random permutations without fixed points: single cycles."""
    factors = np.zeros((count, size, size))
    for each in factors:
        cycle = random.permutation(size)
        each[cycle, np.roll(cycle, 1)] = 1.0
    return factors


SKEWS: dict[str, Draw] = {
    SKEW: lambda random, count, size: np.concatenate(
        (_pairs(random, count - count // 2, size), _destinations(random, count // 2, size))
    ),
    "pairs": _pairs,
    "destinations": _destinations,
    HOSE: _permutations,
}
"""The families that matrices are drawn from, by name."""


class Family:
    """The demands that a template serves: of some families, or from files."""

    def __init__(self, problem: Problem, names: Sequence[str]) -> None:
        self.names = tuple(names)
        if not self.names or len(self.names) > MOST_FILES:
            raise UsageError(
                f"{len(self.names)} families or files; expected 1 to {MOST_FILES}, of "
                f"{', '.join(SKEWS)} or files of demands"
            )
        self.base = problem.demand.table()
        files = [name for name in self.names if name not in SKEWS]
        if files and len(files) < len(self.names):
            raise UsageError(
                f"families and files at once: {files[0]!r} is none of {', '.join(SKEWS)}; expected "
                "names of families, or files"
            )
        for name in files:
            if not is_file(name):
                raise UsageError(
                    f"robust against {name!r}, which is no file; expected one of "
                    f"{', '.join(SKEWS)}, or files of demands"
                )
        self.given = (
            np.stack([self._given(name, problem) for name in files]) if files else np.zeros(0)
        )

    @property
    def hose(self) -> bool:
        """Whether the objective is the worst of all matrices rather than a mean."""
        return self.names == (HOSE,)

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Return matrices of the family [count, n, n], each of the total of the problem's demand.

        Given matrices are all there are.
        """
        if len(self.given):
            return self.given
        size, parts = len(self.base), len(self.names)
        counts = [(count + each) // parts for each in range(parts)]
        drawn = [
            SKEWS[name](random, some, size)
            for name, some in zip(self.names, counts, strict=True)
            if some
        ]
        matrices = np.concatenate(drawn) * self.base
        matrices[~matrices.any(axis=(1, 2))] = self.base  # of permutations among other pairs
        return self._scaled(matrices)

    def _given(self, name: str, problem: Problem) -> Floats:
        matrix = read_demand(Path(name), problem.topology).table()
        if np.any((matrix > 0) & (self.base == 0)):
            raise UsageError(
                f"{name} has amounts between pairs without any in the problem; expected a template "
                "for all pairs: leave the demand and the groups out"
            )
        return np.asarray(self._scaled(matrix[None])[0])

    def _scaled(self, matrices: Floats) -> Floats:
        total = np.maximum(matrices.sum(axis=(1, 2)), 1e-300)
        return np.asarray(matrices * (self.base.sum() / total)[:, None, None])


MOST_CELLS = 50_000_000
"""Links times pairs up to which the worst permutations of the hose model are looked for."""

JUDGED = 12
"""Demands by which a template is judged."""

OTHER_SEED = 2**31
"""Seed of the demands that judge a template, unlike those that made it."""


@dataclass(frozen=True)
class Judged:
    """The losses of a template, each against the certified bound of its demand, in order."""

    family: tuple[str, ...]
    losses: tuple[float, ...]

    @property
    def median(self) -> float:
        """The loss that half of the demands stay below."""
        return float(np.median(self.losses))

    @property
    def worst(self) -> float:
        """The largest loss."""
        return self.losses[-1]

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "family": list(self.family),
            "demands": len(self.losses),
            "median_loss": self.median,
            "worst_loss": self.worst,
            "losses": list(self.losses),
        }


def judge(
    template: Template, names: Sequence[str], seed: int, settings: SolveSettings
) -> Judged | None:
    """Return the losses under demands of a family with other seeds, or None if there is no time."""
    problem = template.problem
    family = Family(problem, names)
    losses: list[float] = []
    if family.hose and isinstance(template, Routes):
        share = template.weight / problem.demand.of(template.source, template.destination)
        matrices = worst_of_hose(problem, template, share)[:JUDGED]
    else:
        matrices = family.draw(np.random.default_rng([OTHER_SEED, seed]), JUDGED)
    for matrix in matrices:
        if settings.out_of_time():
            break
        demand = Demand(problem.demand.terminals, matrix)
        posed = normal_units(Problem(problem.topology, demand)).problem
        flow = solve_master(posed, replace(settings, gap=max(settings.gap, COARSE_BOUND_GAP)))
        losses.append(check_template(template, demand, flow.certificate.lengths).template_loss)
    return Judged(family.names, tuple(sorted(losses))) if losses else None


def worst_of_hose(problem: Problem, paths: Paths, share: Floats) -> Floats:
    """Return the worst matrix of the hose model for each link, the worst of all first.

    Each terminal sends and receives as much as a terminal does on average. A link's load is linear
    in the matrix, so its largest one is at a permutation: an assignment problem.
    """
    topology, size = problem.topology, len(problem.topology.terminals)
    if topology.links * size * size > MOST_CELLS:
        raise InputError(
            f"{topology.name}: {topology.links:,} links times {size * size:,} pairs; expected at "
            f"most {MOST_CELLS:,} for the hose model. Use robust skew"
        )
    taken = np.zeros((topology.links, size * size))
    taking = share[paths.path_of_link] / topology.capacity[paths.link]
    np.add.at(taken, (paths.link, paths.pair(size)[paths.path_of_link]), taking)
    shares = taken.reshape(topology.links, size, size)
    found = np.zeros_like(shares)
    for matrix, taking in zip(found, shares, strict=True):
        matrix[linear_sum_assignment(-taking)] = 1.0
    found *= taken.any(axis=0).reshape(size, size)  # What has no path sends nothing.
    loads = (found * shares).sum(axis=(1, 2))
    order = np.argsort(-loads, kind="stable")[: int((loads > 0).sum())]
    return np.asarray(found[order] * (problem.demand.total / size))


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
