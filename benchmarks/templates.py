"""What templates lose under skewed demands: plain routes, evenly spread ones, and robust ones.

A template is made for the uniform all-to-all and used under another demand; its loss is against the
certified bound of that demand. All are judged by the same demands, which made none of them. `ratio`
is the median loss over that of the plain template (extp).

`floor` says what bounds it: no shares fixed in advance have a smaller mean loss over the judged
demands and their images under the automorphisms of the network, whatever the paths, not even if
they are made for exactly these demands. It is proven by prices of links. With more demands there is
less to be gained from knowing them: in expectation the floor is at most, and in the limit equal to,
the least mean loss over the whole family.

    python benchmarks/templates.py [SPEC ...]
"""

import sys
from time import perf_counter

import numpy as np

import alltoall
from alltoall.check.template import template_time
from alltoall.flows import solve
from alltoall.flows.symmetry.automorphisms import find_generators
from alltoall.flows.symmetry.orbits import link_maps
from alltoall.flows.symmetry.translations import find_translations
from alltoall.paths.candidates import candidate_paths
from alltoall.routes.robust import Family
from alltoall.settings import RouteSettings, SolveSettings

SPECS = ("torus:4x4", "hypercube:4", "genkautz:n=32,d=4")
DEMANDS = {"pairs": 600, "destinations": 200}
"""What is drawn of each family: pairs have more to know, so knowing it must be made harder."""

BOUND_GAP = 2e-3
"""The gap asked of bounds; a bound that is too low raises all losses, and the floor, alike."""

LP_TERMINALS = 16
"""Terminals up to which a linear program is the quicker means to a bound."""

ROUNDS = 1000
LONGER = 3
FEWER_HOPS = 1.0
SHARE_STEP, PRICE_STEP = 0.3, 8.0
"""Of the game that finds prices: rounds, hops beyond shortest paths, first shares, and steps."""

MOST_IMAGES = 1000
"""Automorphisms beyond which only translations are used."""

PLAIN = "extp"
QUANTILES = (0.1, 0.5, 0.9, 1.0)


def main() -> None:
    """Print a block per topology and family."""
    for spec in sys.argv[1:] or SPECS:
        problem = alltoall.Problem.all_to_all(alltoall.topology(spec))
        made = templates(problem)
        for family, count in DEMANDS.items():
            random = np.random.default_rng(2026)
            matrices = Family(problem, (family,)).draw(random, count)
            bounds = np.array([bound(problem, each) for each in matrices])
            report(problem, f"{spec} {family}", made, matrices, bounds)


def templates(problem: alltoall.Problem) -> dict[str, alltoall.Routes | alltoall.Schedule]:
    """Make all templates of a topology."""
    begin = perf_counter()
    made: dict[str, alltoall.Routes | alltoall.Schedule] = {
        name: alltoall.route(problem, f"{name}:layering=none") for name in (PLAIN, "ewsp", "single")
    }
    plain = perf_counter() - begin
    for family in ("skew", *DEMANDS):
        made[f"robust {family}"] = alltoall.route(problem, f"robust:demands={family},layering=none")
    print(
        f"\nplain templates in {plain:.1f} s, robust ones in {perf_counter() - begin - plain:.1f} s"
    )
    made["schedule"] = alltoall.schedule(problem)
    made["schedule, robust skew"] = alltoall.schedule(problem, "auto:demands=skew")
    return made


def bound(problem: alltoall.Problem, matrix: np.ndarray) -> float:
    """Return the certified bound of a demand."""
    posed = alltoall.Problem(problem.topology, alltoall.Demand(len(matrix), matrix))
    method = "grouped" if len(matrix) <= LP_TERMINALS else "first-order"
    return solve(posed, method, SolveSettings(gap=BOUND_GAP, symmetry=False)).bound


def report(
    problem: alltoall.Problem,
    title: str,
    made: dict[str, alltoall.Routes | alltoall.Schedule],
    matrices: np.ndarray,
    bounds: np.ndarray,
) -> None:
    """Print the distribution of the losses of each template."""
    title = f"{title}, {len(matrices)} demands"
    print(
        f"{title:40} {'10 %':>7} {'median':>7} {'90 %':>7} {'worst':>7}  ratio  {'mean':>7}  ratio"
    )
    demands = [alltoall.Demand(len(each), each) for each in matrices]
    plain = np.zeros(2)
    for name, template in made.items():
        losses = np.array([template_time(template, each) for each in demands]) / bounds - 1
        middle = np.array([np.median(losses), losses.mean()])
        plain = middle if name == PLAIN else plain
        shown = "".join(f"{each:8.1%}" for each in np.quantile(losses, QUANTILES))
        ratios = middle / plain
        print(f"  {name:38}{shown}  {ratios[0]:5.2f} {losses.mean():8.1%}  {ratios[1]:5.2f}")
    begin = perf_counter()
    floor = Floor(problem, matrices, bounds).least()
    taken = f"floor of the mean, in {perf_counter() - begin:.0f} s"
    print(f"  {taken:38}{'':39} {floor:8.1%}  {floor / plain[1]:5.2f}", flush=True)


class Floor:
    """A mean loss that no shares fixed in advance can be below, proven by shortest paths.

    For any prices w[D, l] >= 0 that sum to 1 for each demand D, the mean of the largest loads is at
    least that of the loads weighted by prices, and a pair can do no better than its shortest path
    under the lengths mean over D of w[D, l] D(pair) / (cap[l] B(D)). The demands are the drawn ones
    and their images under automorphisms, which need the same time: one pair per orbit stands for
    all. Good prices are those of a game against shares of paths that are not much longer than
    shortest ones, each side in optimistic multiplicative steps. What the mean prices of all
    rounds prove is true of all paths.
    """

    def __init__(self, problem: alltoall.Problem, matrices: np.ndarray, bounds: np.ndarray) -> None:
        topology = self.topology = problem.topology
        self.size = len(topology.terminals)
        # What each demand has of each pair, in units of its bound: [demands, pairs].
        self.amounts = (matrices / bounds[:, None, None]).reshape(len(matrices), -1)
        group = members(problem)
        moved = topology.position[group[:, topology.terminals]]
        pairs = (moved[:, :, None] * self.size + moved[:, None, :]).reshape(len(group), -1)
        sent = np.flatnonzero(problem.demand.table().ravel())
        self.firsts, orbit = np.unique(pairs.min(axis=0)[sent], return_counts=True)
        self.orbit = orbit.astype(np.float64)
        links = link_maps(topology, group)
        images = pairs[:, self.firsts]
        # Where each member moves each link of each first pair, among all links and pairs.
        self.cells = (links[:, :, None] * self.size**2 + images[:, None, :]).reshape(len(group), -1)

    def lengths(self, prices: np.ndarray) -> np.ndarray:
        """Return the lengths [links, first pairs], each for all pairs of its orbit."""
        each = (prices / self.topology.capacity).T @ self.amounts / len(prices)
        mean = each.ravel()[self.cells].mean(axis=0)
        return np.asarray(mean.reshape(-1, len(self.firsts)) * self.orbit)

    def loads(self, taken: np.ndarray) -> np.ndarray:
        """Return what first pairs that take links so, and their images, cause [demands, links]."""
        each = np.broadcast_to(
            (taken * self.orbit / len(self.cells)).ravel(), self.cells.shape
        ).ravel()
        total = np.bincount(self.cells.ravel(), each, self.topology.links * self.size**2)
        loads = self.amounts @ total.reshape(self.topology.links, -1).T
        return np.asarray(loads / self.topology.capacity)

    def proven(self, prices: np.ndarray) -> float:
        """Return the mean loss that prices prove: shortest paths of all first pairs at once."""
        topology, number = self.topology, np.arange(len(self.firsts))
        source, to = topology.terminals[np.array(np.divmod(self.firsts, self.size))]
        by_head = np.argsort(topology.head, kind="stable")
        heads, starts = np.unique(topology.head[by_head], return_index=True)
        lengths, tails = self.lengths(prices)[by_head], topology.tail[by_head]
        distance = np.full((topology.nodes, len(number)), np.inf)
        distance[source, number] = 0.0
        for _ in range(topology.nodes - 1):
            arriving = np.minimum.reduceat(distance[tails] + lengths, starts, axis=0)
            distance[heads] = np.minimum(distance[heads], arriving)
        return float(distance[to, number].sum()) - 1

    def least(self) -> float:
        """Return the floor."""
        matrix = np.zeros(self.size**2)
        matrix[self.firsts] = 1.0
        demand = alltoall.Demand(self.size, matrix.reshape(self.size, -1))
        settings = RouteSettings(paths="bounded", slack=LONGER)
        paths = candidate_paths(alltoall.Problem(self.topology, demand), settings)
        first = np.searchsorted(self.firsts, paths.pair(self.size))
        cell = paths.link * len(self.firsts) + first[paths.path_of_link]
        cells = self.topology.links * len(self.firsts)
        logs = -FEWER_HOPS * paths.hops
        price_logs = np.zeros((len(self.amounts), self.topology.links))
        mean = last_slope = last_loads = np.zeros(1)
        for done in range(ROUNDS):
            share, prices = exponents(logs, first), np.exp(price_logs)
            prices /= prices.sum(axis=1, keepdims=True)
            # Later rounds count for more.
            mean = mean + prices * (done + 1) / (ROUNDS * (ROUNDS + 1) / 2)
            taken = np.bincount(cell, share[paths.path_of_link], cells)
            loads = self.loads(taken.reshape(-1, len(self.firsts)))
            cost = np.bincount(paths.path_of_link, self.lengths(prices).ravel()[cell])
            slope: np.ndarray = cost / np.bincount(first, cost * share)[first]
            # What comes next is about what changed last.
            logs -= SHARE_STEP * (2 * slope - last_slope)
            price_logs += PRICE_STEP * (2 * loads - last_loads)
            price_logs -= price_logs.max(axis=1, keepdims=True)
            last_slope, last_loads = slope, loads
        return self.proven(mean)


def members(problem: alltoall.Problem) -> np.ndarray:
    """Return all automorphisms [order, nodes], or only translations if there are too many."""
    generators = find_generators(problem)
    found = {tuple(range(problem.topology.nodes)): None}
    new = list(found)
    while new and len(found) <= MOST_IMAGES:
        moved = [tuple(each[list(one)].tolist()) for one in new for each in generators]
        new = [each for each in dict.fromkeys(moved) if each not in found]
        found.update(dict.fromkeys(new))
    return find_translations(problem).members if new else np.array(list(found))


def exponents(logs: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return shares in proportion to the exponents of logarithms; those of a pair add to 1."""
    top = np.full(first.max() + 1, -np.inf)
    np.maximum.at(top, first, logs)
    share = np.exp(logs - top[first])
    return np.asarray(share / np.bincount(first, share)[first])


if __name__ == "__main__":
    main()
