"""The ways of the pairs: routes with weights and layers, paths of a flow, or sends of chunks.

A page has them all if there are no more than `MOST_HOPS` links in them. Else it has those of the
sources that were asked for, or of some that lie evenly among all.
"""

from typing import Any

import numpy as np

from alltoall.errors import UsageError
from alltoall.flows.decompose import of_sources, widest_paths
from alltoall.flows.symmetry.orbits import expand_if_small
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.reports.frames import frames_of
from alltoall.reports.packed import Packed, packed_floats, packed_ints
from alltoall.settings import SolveSettings

MOST_HOPS = 100_000
"""Links of routes, or sends, in a page: at most about 200 kilobytes of text."""


def shown_sources(hops: Ints, asked: Ints, room: int) -> Ints:
    """Return the sources whose ways a page has room for, of which each has so many hops."""
    if len(asked):
        if hops[asked].sum() > room:
            raise UsageError(
                f"the ways of {len(asked)} sources have {hops[asked].sum():,} hops; a page has "
                f"room for {room:,}, ask for fewer sources"
            )
        return asked
    sources = np.flatnonzero(hops)
    count = max(1, min(len(sources), int(len(sources) * room / max(hops.sum(), 1))))
    while count > 1 and hops[sources[_spread(count, len(sources))]].sum() > room:
        count -= 1
    return sources[_spread(count, len(sources))]


def _spread(count: int, total: int) -> Ints:
    """Return so many numbers below a total, evenly spaced."""
    return np.arange(count) * total // count


def route_content(routes: Routes, asked: Ints, room: int) -> dict[str, Any]:
    """Return routes: ends, weight and layer of each, and its links one after the other."""
    per_source = _hops_per_source(routes, len(routes.problem.topology.terminals))
    shown = shown_sources(per_source, asked, room)
    kept = routes.select(np.flatnonzero(np.isin(routes.source, shown)))
    return {
        "kind": "routes",
        **_of_sources(shown, per_source),
        **_path_content(kept, kept.weight),
        "denominator": routes.denominator,
        "layer": None if kept.layer is None else packed_ints(kept.layer),
        "hopLayer": None if kept.hop_layer is None else packed_ints(kept.hop_layer),
    }


def flow_content(flow: Flow, asked: Ints, room: int) -> dict[str, Any] | None:
    """Return the paths that a flow is made of, with weights; None if it is too large to take apart.

    A flow says how much crosses each link. All ways to take that apart into paths are as good, and
    these are the widest paths.
    """
    flow = expand_if_small(flow)
    if flow.generators is not None:
        return None
    # What is taken apart is chosen by the links that carry flow; only then hops are known.
    terminals = len(flow.problem.topology.terminals)
    links = np.bincount(flow.source, np.diff(flow.start), terminals).astype(np.int64)
    chosen = shown_sources(links, asked, room)
    paths, weight = widest_paths(of_sources(flow, chosen), SolveSettings())
    shown = shown_sources(_hops_per_source(paths, terminals), asked, room)
    kept = np.flatnonzero(np.isin(paths.source, shown))
    return {
        "kind": "paths",
        **_of_sources(shown, links),
        **_path_content(paths.select(kept), weight[kept]),
    }


def _hops_per_source(paths: Paths, terminals: int) -> Ints:
    return np.bincount(paths.source, paths.hops, terminals).astype(np.int64)


def _path_content(paths: Paths, weight: Floats) -> dict[str, Packed]:
    return {
        **_ends(paths.source, paths.destination),
        "weight": packed_floats(weight),
        "hops": packed_ints(paths.hops),
        "link": packed_ints(paths.link),
    }


def send_content(schedule: Schedule, asked: Ints, room: int, steps_each: int) -> dict[str, Any]:
    """Return sends in the order of their steps: chunk, ends, link and frame."""
    terminals = len(schedule.problem.topology.terminals)
    per_source = np.bincount(schedule.source, minlength=terminals)
    shown = shown_sources(per_source, asked, room)
    kept = np.flatnonzero(np.isin(schedule.source, shown))
    frame, _ = frames_of(schedule, steps_each)
    return {
        "kind": "sends",
        **_of_sources(shown, per_source),
        **_ends(schedule.source[kept], schedule.destination[kept]),
        "chunk": packed_ints(schedule.chunk[kept]),
        "step": packed_ints(schedule.step[kept] + 1),
        "frame": packed_ints(frame[kept]),
        "link": packed_ints(schedule.link[kept]),
    }


def _of_sources(shown: Ints, per_source: Ints) -> dict[str, Any]:
    total = int(np.count_nonzero(per_source))
    return {"sources": shown.tolist(), "all": len(shown) == total}


def _ends(source: Ints, destination: Ints) -> dict[str, Packed]:
    return {"source": packed_ints(source), "destination": packed_ints(destination)}
