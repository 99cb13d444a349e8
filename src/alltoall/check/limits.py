"""The limits that options set, checked on the answer that is returned.

A search has many stages, and one may undo the work of another. So limits are checked on the final
answer, by the name of their option. `ROUTE_LIMITS` and `SCHEDULE_LIMITS` have every option that
promises something about the answer itself. Goals may be missed (`missed_goals`); gaps and time
limits are in the status of the answer.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.check.flow import shortest_distances
from alltoall.check.routes import check_destinations
from alltoall.check.sums import raise_if
from alltoall.errors import VerificationError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import chunks_of
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import counted

Asked = Mapping[str, Any]
"""The settings, by the names of the options."""

NEGLIGIBLE = 1e-8
"""Rounding error of a loss."""

GOALS = {"few": ("loss", "more routes (--max-routes)"), "fptas": ("epsilon", "more time")}
"""The option that sets the goal of a routing method, and a way to reach it."""

WHOLE = 1e-6
"""Largest distance of a weight from whole chunks."""


def check_limits(answer: Routes | Schedule, asked: Asked) -> None:
    """Raise if an answer breaks a limit; options that are None set none."""
    limits: dict[str, Any] = ROUTE_LIMITS if isinstance(answer, Routes) else SCHEDULE_LIMITS
    given = (find for name, find in limits.items() if asked.get(name) is not None)
    violations = [each for find in given for each in find(answer, asked)]
    raise_if(f"the answer on {answer.problem.topology.name}", violations)


def missed_goals(answer: Routes | Schedule, asked: Asked) -> tuple[str, ...]:
    """Return losses beyond the options' goals, with a remedy each.

    A schedule of a given number of chunks has no goal: there is nothing to choose.
    """
    if isinstance(answer, Schedule):
        goal, more = "loss", "more chunks (max-chunks=)"
        found = answer.loss if asked.get("chunks") is None else 0.0
        over = "the fractional time"
    else:
        goal, more = GOALS.get(answer.method, ("", ""))
        found, over = answer.gap, "the proven bound"
    if goal not in asked or found <= asked[goal] + NEGLIGIBLE:
        return ()
    return (f"{found:.2%} above {over}, --{goal} is {asked[goal]:g}; allow {more}",)


def _too_many(routes: Routes, most: int, option: str) -> Iterator[str]:
    pair, per_pair = np.unique(_pairs(routes), return_counts=True)
    wrong = np.flatnonzero(per_pair > most)
    if len(wrong):
        ends = _ends(routes, int(pair[wrong[0]]))
        more = f" (and {counted(len(wrong) - 1, 'more pair')})" if len(wrong) > 1 else ""
        yield f"{per_pair[wrong[0]]} routes {ends}{more}; expected at most {most} ({option})"


def _max_layers(routes: Routes, asked: Asked) -> Iterator[str]:
    layers, most = routes.layers or 0, asked["max_layers"]
    if layers > most:
        yield f"{counted(layers, 'virtual layer')}; expected at most {most} (--max-layers)"


def _layer_change(routes: Routes, asked: Asked) -> Iterator[str]:
    changing = int(routes.changes_layer.sum())
    if changing and not asked["layer_change"]:
        yield f"{counted(changing, 'route')} change layer; expected none without change=true"


def _destination_based(routes: Routes, asked: Asked) -> Iterator[str]:
    try:
        if asked["destination_based"]:
            check_destinations(routes)
    except VerificationError as error:
        yield f"{'; '.join(error.violations)}; expected one link (destination-based)"


def _route_chunks(routes: Routes, asked: Asked) -> Iterator[str]:
    demand = routes.problem.demand.of(routes.source, routes.destination)
    units = routes.weight / demand * chunks_of(demand, asked["chunks"])
    wrong = np.flatnonzero(np.abs(units - np.rint(units)) > WHOLE)
    if len(wrong):
        ends = _ends(routes, int(_pairs(routes)[wrong[0]]))
        yield (
            f"a route {ends} carries {units[wrong[0]]:.6g} chunks; expected whole ones "
            f"(--chunks {asked['chunks']})"
        )


def _paths(routes: Routes, asked: Asked) -> Iterator[str]:
    """Find routes outside the path set, if the method has one."""
    name = asked["paths"]
    if routes.method != "pmcf" or name == "columns":
        return
    if name == "k-shortest":
        yield from _too_many(routes, asked["k"], "k=")
    elif name == "disjoint":
        links = routes.problem.topology.links
        keys = np.sort(_pairs(routes)[routes.path_of_link] * links + routes.link)
        twice = keys[1:][keys[1:] == keys[:-1]]
        if len(twice):
            pair, link = divmod(int(twice[0]), links)
            shared = routes.problem.topology.link_name(link)
            yield f"two routes {_ends(routes, pair)} share {shared} (paths=disjoint)"
    else:
        slack = asked["slack"] if name == "bounded" else 0
        topology, ones = routes.problem.topology, np.ones(routes.problem.topology.links)
        graph = (topology.nodes, topology.tail, topology.head)
        fewest = shortest_distances(*graph, ones, topology.terminals)
        longer = routes.hops - fewest[routes.source, topology.terminals[routes.destination]]
        worst = int(np.argmax(longer))
        if longer[worst] > slack:
            ends = _ends(routes, int(_pairs(routes)[worst]))
            yield (
                f"a route {ends} is {counted(int(longer[worst]), 'hop')} longer than a shortest "
                f"one; expected at most {slack} (paths={name})"
            )


def _steps(schedule: Schedule, asked: Asked) -> Iterator[str]:
    if schedule.steps > asked["steps"]:
        yield f"{schedule.steps} steps; expected at most {asked['steps']} (--steps)"


def _schedule_chunks(schedule: Schedule, asked: Asked) -> Iterator[str]:
    demand = schedule.problem.demand.table()
    wanted = chunks_of(demand, asked["chunks"])
    yield from _wrong_counts(schedule, schedule.chunk_counts() != wanted, wanted, "--chunks")


def _max_chunks(schedule: Schedule, asked: Asked) -> Iterator[str]:
    """Find shards with too many chunks for their size."""
    demand = schedule.problem.demand.table()
    mean = float(demand[demand > 0].mean())
    most = chunks_of(demand, asked["max_chunks"] / mean)
    large = demand >= mean * (1 - 1e-9)
    wrong = large & (schedule.chunk_counts() > most)
    yield from _wrong_counts(schedule, wrong, most, "max-chunks=")


def _wrong_counts(
    schedule: Schedule, wrong: NDArray[np.bool_], wanted: Ints, option: str
) -> Iterator[str]:
    for source, destination in np.argwhere(wrong)[:1]:
        ends = schedule.problem.topology.pair_name(source, destination)
        found = schedule.chunk_counts()[source, destination]
        yield f"{found} chunks {ends}; expected {wanted[source, destination]} ({option})"


def _pairs(routes: Routes) -> Ints:
    return routes.pair(routes.problem.demand.terminals)


def _ends(routes: Routes, pair: int) -> str:
    return routes.problem.topology.pair_name(*divmod(pair, routes.problem.demand.terminals))


ROUTE_LIMITS: dict[str, Callable[[Routes, Asked], Iterator[str]]] = {
    "max_routes": lambda routes, asked: _too_many(routes, asked["max_routes"], "--max-routes"),
    "max_layers": _max_layers,
    "layer_change": _layer_change,
    "destination_based": _destination_based,
    "chunks": _route_chunks,
    "paths": _paths,
}
"""The limits on routes, by the names of their options."""

SCHEDULE_LIMITS: dict[str, Callable[[Schedule, Asked], Iterator[str]]] = {
    "steps": _steps,
    "chunks": _schedule_chunks,
    "max_chunks": _max_chunks,
}
"""The limits on schedules, by the names of their options."""
