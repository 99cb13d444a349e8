"""Layer assignment against plain rereadings of the definitions: the same layers, route by route."""

from collections import Counter
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
import pytest
from layer_cases import random_routes

from alltoall import Problem
from alltoall.flows import sizes
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never
from alltoall.routes.layers import lash as layers
from alltoall.routes.layers.assign import LAYERINGS
from alltoall.routes.layers.dependencies import dependencies_of, pack_by_orders
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build

Turn = tuple[int, int]
SETTINGS = SolveSettings()

CASES = {
    f"{spec} {seed}": random_routes(Problem.all_to_all(build(spec)), seed, per_pair)
    for spec, seed, per_pair in (
        ("ring:5", 0, 1),
        ("torus:3x3", 1, 2),
        ("torus:4x4", 2, 1),
        ("genkautz:n=12,d=3", 3, 2),
        ("jellyfish:n=16,d=3,seed=2", 4, 1),
        ("complete:4", 5, 1),
    )
}


def turns_of(routes: Routes) -> list[list[Turn]]:
    """Return the channel dependencies of every route."""
    ends = zip(routes.start[:-1].tolist(), routes.start[1:].tolist(), strict=True)
    return [list(pairwise(routes.link[low:high].tolist())) for low, high in ends]


def acyclic(turns: set[Turn]) -> bool:
    """Whether dependencies have no cycle."""
    graph: dict[int, set[int]] = {}
    for held, wanted in turns:
        graph.setdefault(wanted, set()).add(held)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True


def filled(turns: list[list[Turn]], order: list[int]) -> list[int]:
    """Return the routes that a layer takes, offered one by one."""
    present: set[Turn] = set()
    taken = []
    for route in order:
        if acyclic(present | set(turns[route])):
            present |= set(turns[route])
            taken.append(route)
    return taken


def packed(turns: list[list[Turn]], key: Callable[[int, list[int]], float]) -> list[int]:
    """Return a layer per route: layers are filled in the order of a key of what is left."""
    layer = [0] * len(turns)
    left, level = [route for route, mine in enumerate(turns) if mine], 0
    while left:
        order = sorted(left, key=lambda route: key(route, left))
        for route in filled(turns, order):
            layer[route] = level
            left.remove(route)
        level += 1
    return layer


def shared(turns: list[list[Turn]], route: int, left: list[int]) -> float:
    """Return how many of the routes left have a dependency of a route, on average."""
    users = Counter(turn for each in left for turn in turns[each])
    return sum(users[turn] for turn in turns[route]) / len(turns[route])


@pytest.mark.parametrize("name", CASES)
def test_lash_is_first_fit(name: str) -> None:
    """Each route in the first layer that takes it."""
    routes = CASES[name]
    turns, held = turns_of(routes), list[set[Turn]]()
    for route, layer in enumerate(LAYERINGS["lash"](routes, 0, SETTINGS).tolist()):
        fits = [acyclic(each | set(turns[route])) for each in held]
        assert layer == (fits.index(True) if True in fits else len(held) if turns[route] else 0)
        held += [set() for _ in range(layer + 1 - len(held))]
        held[layer] |= set(turns[route])


@pytest.mark.parametrize("name", ["torus:3x3 1", "genkautz:n=12,d=3 3", "ring:5 0"])
def test_every_order_offers_routes_as_it_says(name: str) -> None:
    """Longest first, by source, by destination, and most shared first, anew for every layer."""
    routes = CASES[name]
    turns = turns_of(routes)
    keys: list[Callable[[int, list[int]], float]] = [
        lambda route, _: -len(turns[route]),
        lambda route, _: int(routes.source[route]),
        lambda route, _: int(routes.destination[route]),
        lambda route, left: -shared(turns, route, left),
    ]
    for order, key in zip(layers.ORDERS, keys, strict=True):
        found = layers.pack(routes, dependencies_of(routes), [order], routes.count, never)
        assert found is not None
        assert found.tolist() == packed(turns, key)


def test_of_several_orders_the_fullest_is_taken() -> None:
    """The first layer has as many dependencies as the best order alone puts there."""
    routes = CASES["genkautz:n=12,d=3 3"]
    dependencies = dependencies_of(routes)

    def first(orders: list[layers.Order]) -> int:
        layer = layers.pack(routes, dependencies, orders, routes.count, never)
        assert layer is not None
        return int(dependencies.length[layer == 0].sum())

    alone = [first([order]) for order in layers.ORDERS]
    assert len(set(alone)) > 1
    assert first(list(layers.ORDERS)) == max(alone)
    assert first(list(layers.ORDERS)[::-1]) == max(alone)


def test_a_packing_beyond_the_limit_is_given_up() -> None:
    """With as many layers as are needed it is made, with one less it is not."""
    routes = CASES["genkautz:n=12,d=3 3"]
    dependencies, order = dependencies_of(routes), [layers.ORDERS[0]]
    needed = 1 + int(layers.pack(routes, dependencies, order, routes.count, never).max())  # type: ignore[union-attr]
    assert layers.pack(routes, dependencies, order, needed, never) is not None
    assert layers.pack(routes, dependencies, order, needed - 1, never) is None


def test_attempts_are_as_many_as_the_work_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four orders, all of them together, then sources in random order."""
    routes = CASES["torus:3x3 1"]
    dependencies = dependencies_of(routes)
    turns = len(dependencies.turn)

    def shuffles() -> int:
        return len(list(layers._attempts(routes, dependencies, 0))) - len(layers.ORDERS) - 1

    assert shuffles() == layers.SHUFFLES
    monkeypatch.setattr(layers, "SHUFFLE_WORK", 7 * turns)
    assert shuffles() == 7
    monkeypatch.setattr(layers, "SHUFFLE_WORK", 7 * turns - 1)
    assert shuffles() == 6
    orders = list(layers._attempts(routes, dependencies, 0))[-1]
    left = np.flatnonzero(dependencies.length)
    place = orders[0](routes, dependencies, left)
    for source in np.unique(routes.source[left]):
        assert len(set(place[routes.source[left] == source])) == 1
    assert len(set(place)) == len(np.unique(routes.source[left]))


def test_the_best_packing_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt has fewer layers than the result; routes offered or not is decided by the work."""
    routes = random_routes(Problem.all_to_all(build("genkautz:n=24,d=3")), 1, 2)
    dependencies = dependencies_of(routes)
    found = LAYERINGS["lash-sequential"](routes, 0, SETTINGS)
    by_orders = pack_by_orders(dependencies, 0, SETTINGS)
    packings = [
        layers.pack(routes, dependencies, orders, routes.count, never)
        for orders in layers._attempts(routes, dependencies, 0)
    ]
    least = min(int(each.max()) for each in (*packings, by_orders) if each is not None)
    assert int(found.max()) == least
    monkeypatch.setattr(sizes, "OFFERED_DEPENDENCIES", len(dependencies.turn) - 1)
    assert LAYERINGS["lash-sequential"](routes, 0, SETTINGS).tolist() == by_orders.tolist()
    monkeypatch.setattr(sizes, "OFFERED_DEPENDENCIES", len(dependencies.turn))
    assert LAYERINGS["lash-sequential"](routes, 0, SETTINGS).tolist() == found.tolist()


def first_cycle(turns: Counter[Turn]) -> list[Turn]:
    """Return the first cycle of a depth-first search that goes by link numbers, if any."""
    onwards: dict[int, list[int]] = {}
    for held, wanted in sorted(turn for turn, users in turns.items() if users):
        onwards.setdefault(held, []).append(wanted)
    finished: set[int] = set()

    def search(path: list[int]) -> Iterator[list[Turn]]:
        for wanted in onwards.get(path[-1], []):
            if wanted in path:
                yield list(pairwise([*path[path.index(wanted) :], wanted]))
            elif wanted not in finished:
                yield from search([*path, wanted])
        finished.add(path[-1])

    roots = sorted(onwards)
    return next((cycle for root in roots if root not in finished for cycle in search([root])), [])


@pytest.mark.parametrize("name", CASES)
def test_df_sssp_breaks_cycles_at_the_rarest_dependency(name: str) -> None:
    """All routes start in a layer; those with the rarest dependency of a cycle move on."""
    routes = CASES[name]
    turns = turns_of(routes)
    layer, level = np.zeros(routes.count, dtype=np.int64), 0
    while (layer == level).any():
        while True:
            here = np.flatnonzero(layer == level).tolist()
            users = Counter(turn for route in here for turn in turns[route])
            cycle = first_cycle(users)
            if not cycle:
                break
            rarest = min(cycle, key=lambda turn: users[turn])
            for route in here:
                layer[route] += rarest in turns[route]
        level += 1
    assert LAYERINGS["df-sssp"](routes, 0, SETTINGS).tolist() == layer.tolist()
