"""The programs of the paper written down again, and its extraction by trying all paths."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.optimize import linprog

import alltoall
from alltoall.ir.problem import Problem
from outside import SMALL, demand_of, links_of, simple_paths

SPECS = ("bipartite:3x3", "hypercube:3", "genkautz:n=7,d=2", "mesh:2x3", "torus:3x3")


def over_links(problem: Problem) -> float:
    """Return the time of the program per pair and link: maximise f, as it is printed."""
    links, nodes = links_of(problem), problem.topology.nodes
    pairs = list(demand_of(problem))
    conserved, capacity = np.zeros((len(pairs) * nodes, len(pairs) * len(links) + 1)), []
    for number, (source, end) in enumerate(pairs):
        for link, (tail, head, _) in enumerate(links):
            conserved[number * nodes + tail, number * len(links) + link] += 1
            conserved[number * nodes + head, number * len(links) + link] -= 1
        conserved[number * nodes + source, -1], conserved[number * nodes + end, -1] = -1, 1
    carried = np.tile(np.eye(len(links)), len(pairs))
    capacity = [width for _, _, width in links]
    return rate(np.pad(carried, ((0, 0), (0, 1))), capacity, conserved)


def over_paths(problem: Problem, paths: list[tuple[int, list[int]]]) -> float:
    """Return the time of the program over given paths of numbered pairs."""
    links, pairs = links_of(problem), demand_of(problem)
    carried = np.zeros((len(links), len(paths) + 1))
    delivered = np.zeros((len(pairs), len(paths) + 1))
    delivered[:, -1] = -1
    for column, (number, path) in enumerate(paths):
        carried[path, column] = delivered[number, column] = 1
    return rate(carried, [width for _, _, width in links], delivered)


def rate(carried: np.ndarray, capacity: list[float], equal: np.ndarray) -> float:
    """Return the least time, one over the largest common rate, the last variable."""
    cost = np.zeros(carried.shape[1])
    cost[-1] = -1
    found = linprog(cost, carried, capacity, equal, np.zeros(len(equal)))
    assert found.status == 0
    return -1 / float(found.fun or 0.0)


@pytest.mark.parametrize("spec", SPECS)
def test_the_program_over_links_has_the_time_of_every_method(spec: str) -> None:
    """Of one program per pair, of master and children, and of the routes extracted from them."""
    problem = alltoall.problem(spec)
    time = over_links(problem)
    found = [alltoall.solve(problem, method=method).time for method in ("link", "decomposed-lp")]
    found += [alltoall.route(problem, "extp:raw=true,layering=none").time]
    assert found == pytest.approx([time] * 3, rel=SMALL)


@pytest.mark.parametrize("spec", SPECS)
def test_the_program_over_shortest_paths_has_the_time_of_pmcf(spec: str) -> None:
    """Of all paths that visit no node twice, those of as few links as can be."""
    problem = alltoall.problem(spec)
    paths = []
    for number, pair in enumerate(demand_of(problem)):
        every = list(simple_paths(links_of(problem), *pair))
        least = min(map(len, every))
        paths += [(number, path) for path in every if len(path) == least]
    routes = alltoall.route(problem, "pmcf:paths=shortest,layering=none")
    assert routes.time == pytest.approx(over_paths(problem, paths), rel=SMALL)


@pytest.mark.parametrize("spec", SPECS)
def test_extracted_paths_are_the_widest_of_their_pair_one_after_the_other(spec: str) -> None:
    """By trying all paths in what the routes of a pair still carry: the widest, then the rest."""
    problem = alltoall.problem(spec)
    routes = alltoall.route(problem, "extp:raw=true,layering=none")
    by_pair = defaultdict(list)
    for route in range(routes.count):
        path = routes.link[routes.start[route] : routes.start[route + 1]].tolist()
        pair = (int(routes.source[route]), int(routes.destination[route]))
        by_pair[pair].append((float(routes.weight[route]), path))
    assert by_pair.keys() == demand_of(problem).keys()
    for pair, found in by_pair.items():
        volume = np.zeros(len(links_of(problem)))
        for weight, path in found:
            volume[path] += weight
        every = list(simple_paths(links_of(problem), *pair))
        for weight, path in sorted(found, reverse=True):
            assert weight == pytest.approx(max(volume[each].min() for each in every), abs=SMALL)
            volume[path] -= weight
        assert abs(volume).max() < SMALL
