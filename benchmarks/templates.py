"""What templates lose under skewed demands: plain routes, evenly spread ones, and robust ones.

A template is made for the uniform all-to-all and used under another demand; its loss is against the
certified bound of that demand. All are judged by the same demands, which made none of them. `ratio`
is the median loss over that of the plain template (extp).

`floor` says what bounds it: prices of links under each of the judged demands, and all their images
under the translations of the network, prove that no shares fixed in advance have a smaller mean
loss over these, whatever the paths, not even if they are made for exactly these demands.

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
STEEPNESS = (10.0, 20.0, 40.0, 80.0)
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
    print(f"  {'floor of the mean':32}{'':32}{floor(problem, made, matrices, bounds):8.1%}")


def floor(
    problem: a2aflow.Problem,
    made: dict[str, a2aflow.Routes | a2aflow.Schedule],
    matrices: np.ndarray,
    bounds: np.ndarray,
) -> float:
    """Return a mean loss that no fixed shares can be below, proven by shortest paths.

    For any prices w[D, l] >= 0 that sum to 1 for each demand D, the mean of the largest loads is at
    least that of the loads weighted by prices, and a pair can do no better than its shortest path
    under the lengths mean over D of w[D, l] D(pair) / (cap[l] B(D)).
    """
    best = 0.0
    for name, template in made.items():
        if not isinstance(template, a2aflow.Routes) or not name.startswith("robust"):
            continue
        share = template.weight / problem.demand.of(template.source, template.destination)
        for steepness in STEEPNESS:
            lengths = priced(problem, template, share, matrices / bounds[:, None, None], steepness)
            best = max(best, proven(problem.topology, lengths))
    return best - 1


def priced(
    problem: a2aflow.Problem,
    routes: a2aflow.Routes,
    share: np.ndarray,
    matrices: np.ndarray,
    steepness: float,
) -> np.ndarray:
    """Return lengths [links, n, n] of each pair: mean prices of all demands and their images."""
    topology, size = problem.topology, len(matrices[0])
    translations = find_translations(problem)
    lengths = np.zeros((topology.links, size, size))
    moved = topology.position[translations.members[:, topology.terminals]]
    for matrix in matrices:
        amount = matrix[routes.source, routes.destination] * share
        load = routes.load(amount) / topology.capacity
        price = np.exp(steepness * (load - load.max()))
        price /= price.sum()
        for nodes, links in zip(moved, translations.link_members, strict=True):
            # Of a symmetric template, the loads of an image are the image of the loads.
            image = np.zeros_like(matrix)
            image[np.ix_(nodes, nodes)] = matrix
            lengths[links] += (price / topology.capacity)[:, None, None] * image
    return lengths / (len(matrices) * len(moved))


def proven(topology: a2aflow.Topology, lengths: np.ndarray) -> float:
    """Return the sum over pairs of the distance under the lengths of each."""
    total, ends = 0.0, topology.terminals
    # An edge of length 0 would be none.
    for source, start in enumerate(ends):
        for to, end in enumerate(ends):
            if source != to:
                values = np.maximum(lengths[:, source, to], 1e-15)
                graph = coo_array((values, (topology.tail, topology.head)), 2 * (topology.nodes,))
                total += float(dijkstra(graph.tocsr(), indices=start)[end])
    return total - 1e-15 * topology.links * len(ends) ** 2


if __name__ == "__main__":
    main()
