"""From a problem to checked routes: a method, then limits, chunks, layers and phases."""

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from alltoall.check.limits import check_limits, missed_goals
from alltoall.check.routes import check_routes
from alltoall.errors import UsageError
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes import route, route_status
from alltoall.routes.deadlock_free.best import METHOD
from alltoall.routes.layers.assign import layers_after, layers_in_time
from alltoall.routes.renew import Renewed, count_moved, renew_routes, require_same_network
from alltoall.routes.robust import METHOD as ROBUST
from alltoall.routes.robust import SKEW, Judged, judge
from alltoall.routes.whole_chunks import bounded_chunks, common_factor_chunks, limit_routes
from alltoall.settings import RouteSettings


@dataclass(frozen=True, eq=False)
class FoundRoutes:
    """Routes, and facts of their search.

    `status` compares their time with the certified bound, and `notes` mention omissions. `robust`
    has the losses of robust routes under fresh demands, `renewed` those of the last routes after a
    failure.
    """

    routes: Routes
    status: Status
    notes: tuple[str, ...] = ()
    robust: Judged | None = None
    renewed: Renewed | None = None

    def learnt(self) -> dict[str, Any]:
        """Return facts of the search as plain values."""
        found: dict[str, Any] = {"notes": self.notes, "status": self.status.value}
        found["common_factor_chunks"] = common_factor_chunks(self.routes)
        if self.robust is not None:
            found["robust"] = self.robust.summary()
        if self.renewed is not None:
            found["last"] = self.renewed.summary()
        return found


def find_routes(
    problem: Problem,
    method: str = "extp",
    settings: RouteSettings | None = None,
    last: Routes | str | PathLike[str] | None = None,
) -> FoundRoutes:
    """Return checked routes by a method, with the requested layers and chunks.

    With the last routes, of a problem a little different, it is these that are renewed.
    """
    settings = settings or RouteSettings()
    if settings.destination_based and last is not None:
        raise UsageError(
            "destination-based with --from: renewed routes need not go on together where they "
            "meet; leave out one of the two, or route the remaining fabric anew"
        )
    if settings.destination_based and settings.layer_change:
        raise UsageError(
            "destination-based with change=true: tables by destination are free of deadlocks "
            "in one layer; leave out one of the two"
        )
    is_last = settings.layers is None or method == METHOD
    solving = settings.solve if is_last else settings.solve.sharing()
    renewed, judged = None, None
    before = last if last is None or isinstance(last, Routes) else read_as(Path(last), Routes)
    if before is None:
        routes = route(problem, method, replace(settings, solve=solving))
    else:
        require_same_network(before.problem.topology, problem.topology)
        renewed = renew_routes(problem, before, solving)
        routes = renewed.routes
    if settings.max_routes is not None:
        routes = limit_routes(routes, settings.max_routes, settings)
    if settings.chunks is not None:
        routes = bounded_chunks(routes, settings.chunks, settings)
    routes, notes = _layered(routes, before, settings)
    check_routes(routes)
    check_limits(routes, vars(settings))
    notes += missed_goals(routes, vars(settings))
    if renewed is not None and before is not None:
        renewed = replace(renewed, moved=count_moved(routes, before))
    if routes.method == ROBUST:  # by other demands of their family than those that made them
        judged = judge(routes, settings.robust or (SKEW,), settings.seed, settings.solve)
    return FoundRoutes(routes, route_status(routes, settings), notes, judged, renewed)


def _layered(
    routes: Routes, last: Routes | None, settings: RouteSettings
) -> tuple[Routes, tuple[str, ...]]:
    """Return routes with layers, if they need some, and notes on them."""
    if routes.layers is not None or settings.layers is None:
        return routes, ()
    algorithm, most = settings.layers, settings.max_layers
    if last is not None:
        return layers_after(routes, last, settings.solve, algorithm, most)
    return layers_in_time(routes, algorithm, most, settings.solve)
