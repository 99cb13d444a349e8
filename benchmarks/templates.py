"""What templates lose under skewed demands: plain routes, evenly spread ones, and robust ones.

A template is made for the uniform all-to-all and used under another demand; its loss is against the
certified bound of that demand. All are judged by the same demands, which made none of them. `ratio`
is the median loss over that of the plain template (extp).

`floor` says what bounds it: no shares fixed in advance have a smaller mean loss over the judged
demands and their images under the translations of the network, whatever the paths, not even if they
are made for exactly these demands. It is proven by prices of links.

    python benchmarks/templates.py [SPEC ...]
"""

import sys
from time import perf_counter

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

import a2aflow
from a2aflow.check.template import template_time
from a2aflow.flows import solve
from a2aflow.flows.symmetry.translations import find_translations
from a2aflow.routes.skews import Family
from a2aflow.settings import SolveSettings

SPECS = ("torus:4x4", "hypercube:4", "genkautz:n=32,d=4")
FAMILIES = ("pairs", "destinations")
DEMANDS = 24
ROUNDS = 300
STEEPNESS = 2.0
PLAIN = "extp"
QUANTILES = (0.1, 0.5, 0.9, 1.0)


def main() -> None:
    """Print a block per topology and family."""
    for spec in sys.argv[1:] or SPECS:
        problem = a2aflow.Problem.all_to_all(a2aflow.build(spec))
        made = templates(problem)
        for family in FAMILIES:
            random = np.random.default_rng(2026)
            matrices = Family(problem, (family,)).draw(random, DEMANDS)
            bounds = np.array([bound(problem, each) for each in matrices])
            report(problem, f"{spec} {family}", made, matrices, bounds)


def templates(problem: a2aflow.Problem) -> dict[str, a2aflow.Routes | a2aflow.Schedule]:
    """Make all templates of a topology."""
    begin = perf_counter()
    made: dict[str, a2aflow.Routes | a2aflow.Schedule] = {
        name: a2aflow.route(problem, method=name, layers=None) for name in (PLAIN, "ewsp", "single")
    }
    plain = perf_counter() - begin
    for family in ("skew", *FAMILIES):
        made[f"robust {family}"] = a2aflow.route(problem, robust=[family], layers=None)
    print(
        f"\nplain templates in {plain:.1f} s, robust ones in {perf_counter() - begin - plain:.1f} s"
    )
    made["schedule"] = a2aflow.schedule(problem)
    made["schedule, robust skew"] = a2aflow.schedule(problem, robust=["skew"])
    return made


def bound(problem: a2aflow.Problem, matrix: np.ndarray) -> float:
    """Return the certified bound of a demand."""
    posed = a2aflow.Problem(problem.topology, a2aflow.Demand(len(matrix), matrix))
    return solve(posed, "grouped", SolveSettings(gap=2e-3)).bound


def report(
    problem: a2aflow.Problem,
    title: str,
    made: dict[str, a2aflow.Routes | a2aflow.Schedule],
    matrices: np.ndarray,
    bounds: np.ndarray,
) -> None:
    """Print the distribution of the losses of each template."""
    print(f"{title:34} {'10 %':>7} {'median':>7} {'90 %':>7} {'worst':>7} {'mean':>7}  ratio")
    medians = {}
    for name, template in made.items():
        demands = [a2aflow.Demand(len(each), each) for each in matrices]
        times = np.array([template_time(template, each) for each in demands])
        losses = times / bounds - 1
        medians[name] = float(np.median(losses))
        shown = "".join(f"{each:8.1%}" for each in np.quantile(losses, QUANTILES))
        ratio = medians[name] / medians[PLAIN]
        print(f"  {name:32}{shown}{losses.mean():8.1%}  {ratio:5.2f}")
    print(f"  {'floor of the mean':32}{'':32}{Floor(problem, matrices, bounds).least():8.1%}")


class Floor:
    """A mean loss that no shares fixed in advance can be below, proven by shortest paths.

    For any prices w[D, l] >= 0 that sum to 1 for each demand D, the mean of the largest loads is at
    least that of the loads weighted by prices, and a pair can do no better than its shortest path
    under the lengths mean over D of w[D, l] D(pair) / (cap[l] B(D)). Prices follow the loads of
    these paths, and their mean over all rounds proves the floor. The demands are those that are
    judged by and their images under translations, so that one source per orbit stands for all.
    """

    def __init__(self, problem: a2aflow.Problem, matrices: np.ndarray, bounds: np.ndarray) -> None:
        topology = self.topology = problem.topology
        self.pairs = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
        found = find_translations(problem)
        self.links = found.link_members
        self.sources = (
            found.symmetry.representatives()[0] if found.order > 1 else np.arange(len(matrices[0]))
        )
        self.order = found.order
        moved = topology.position[found.members[:, topology.terminals]]
        back = np.argsort(moved, axis=1)
        scaled = matrices / bounds[:, None, None]
        # What the image of each demand under each member has from the sources: [order, D, s, d].
        self.images = np.stack([scaled[:, each[self.sources]][:, :, each] for each in back])

    def lengths(self, prices: np.ndarray) -> np.ndarray:
        """Return the lengths [links, s, d] of the pairs of the sources."""
        total = np.zeros((self.topology.links, *self.images.shape[2:]))
        for links, image in zip(self.links, self.images, strict=True):
            total[links] += np.einsum("kl,ksd->lsd", prices / self.topology.capacity, image)
        return total / (len(prices) * self.order)

    def paths(self, lengths: np.ndarray) -> tuple[np.ndarray, float]:
        """Return which links [links, s, d] are on the shortest paths, and the sum of distances."""
        topology, ends = self.topology, self.topology.terminals
        taken, total = np.zeros_like(lengths), 0.0
        number = {pair: link for link, pair in enumerate(self.pairs)}
        for row, source in enumerate(self.sources):
            for to in np.flatnonzero(np.arange(len(ends)) != source):
                # An edge of length 0 would be none.
                values = np.maximum(lengths[:, row, to], 1e-15)
                graph = coo_array((values, (topology.tail, topology.head)), 2 * (topology.nodes,))
                distance, before = dijkstra(
                    graph.tocsr(), indices=ends[source], return_predecessors=True
                )
                total += float(distance[ends[to]])
                node = ends[to]
                while node != ends[source]:
                    taken[number[int(before[node]), int(node)], row, to] = 1.0
                    node = before[node]
        # One source stands for all images of it.
        return taken, total * self.order

    def loads(self, taken: np.ndarray) -> np.ndarray:
        """Return what these paths and their images put on the links under each demand."""
        total = np.zeros((self.images.shape[1], self.topology.links))
        for links, image in zip(self.links, self.images, strict=True):
            total += np.einsum("lsd,ksd->kl", taken[links], image)
        return total / self.topology.capacity

    def least(self) -> float:
        """Return the floor."""
        mean = taken = np.zeros((self.images.shape[1], self.topology.links))
        logs = np.zeros_like(mean)
        for done in range(ROUNDS):
            prices = np.exp(logs - logs.max(axis=1, keepdims=True))
            prices /= prices.sum(axis=1, keepdims=True)
            mean = mean + prices
            taken = taken + self.loads(self.paths(self.lengths(prices))[0])
            # Prices that follow the mean loads so far, ever more steeply.
            logs = np.sqrt(done + 1) * STEEPNESS * taken / (done + 1)
        return self.paths(self.lengths(mean / ROUNDS))[1] - 1


if __name__ == "__main__":
    main()
