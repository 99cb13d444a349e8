"""The paths of pairs: routes with weights and layers, paths of a flow, or sends of chunks.

A page has all paths up to `MOST_HOPS` links in total; beyond that, those of the requested sources
or of evenly spaced ones.
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


def path_content(
    answer: Flow | Routes | Schedule, asked: Ints, room: int, steps_each: int
) -> dict[str, Any] | None:
    """Return the paths that fit a page; a frame of the player has `steps_each` steps."""
    if isinstance(answer, Flow):
        return flow_content(answer, asked, room)
    if isinstance(answer, Routes):
        return route_content(answer, asked, room)
    return send_content(answer, asked, room, steps_each)


def shown_sources(hops: Ints, asked: Ints, room: int) -> Ints:
    """Return the sources whose paths fit a page, given the hops of each source."""
    if len(asked):
        if hops[asked].sum() > room:
            raise UsageError(
                f"the paths of {len(asked)} sources have {hops[asked].sum():,} hops; a page has "
                f"room for {room:,}, ask for fewer sources"
            )
        return asked
    sources = np.flatnonzero(hops)
    count = max(1, min(len(sources), int(len(sources) * room / max(hops.sum(), 1))))
    while True:
        chosen = sources[np.arange(count) * len(sources) // count]
        if count == 1 or hops[chosen].sum() <= room:
            return chosen
        count -= 1


def route_content(routes: Routes, asked: Ints, room: int) -> dict[str, Any]:
    """Return ends, weight, layer and links of routes."""
    per_source = _hops_per_source(routes, len(routes.problem.topology.terminals))
    shown = shown_sources(per_source, asked, room)
    kept = routes.select(np.flatnonzero(np.isin(routes.source, shown)))
    return {
        "kind": "routes",
        **_shown(shown, per_source),
        **_links(kept, kept.weight),
        "denominator": routes.denominator,
        "layer": None if kept.layer is None else packed_ints(kept.layer),
        "hopLayer": None if kept.hop_layer is None else packed_ints(kept.hop_layer),
    }


def flow_content(flow: Flow, asked: Ints, room: int) -> dict[str, Any] | None:
    """Return the widest paths of a flow; None if it is too large to decompose.

    A flow has many decompositions into paths, all equally good.
    """
    flow = expand_if_small(flow)
    if flow.generators is not None:
        return None
    # Sources are chosen by the links that carry their flow; hops are known after decomposing.
    terminals = len(flow.problem.topology.terminals)
    links = np.bincount(flow.source, np.diff(flow.start), terminals).astype(np.int64)
    chosen = shown_sources(links, asked, room)
    paths, weight = widest_paths(of_sources(flow, chosen), SolveSettings())
    shown = shown_sources(_hops_per_source(paths, terminals), asked, room)
    kept = np.flatnonzero(np.isin(paths.source, shown))
    return {"kind": "paths", **_shown(shown, links), **_links(paths.select(kept), weight[kept])}


def send_content(schedule: Schedule, asked: Ints, room: int, steps_each: int) -> dict[str, Any]:
    """Return chunk, ends, link and frame of sends, in the order of their steps."""
    terminals = len(schedule.problem.topology.terminals)
    per_source = np.bincount(schedule.source, minlength=terminals)
    shown = shown_sources(per_source, asked, room)
    kept = np.flatnonzero(np.isin(schedule.source, shown))
    frame, _ = frames_of(schedule, steps_each)
    columns = {
        "source": schedule.source,
        "destination": schedule.destination,
        "chunk": schedule.chunk,
        "step": schedule.step + 1,
        "frame": frame,
        "link": schedule.link,
    }
    packed = {name: packed_ints(column[kept]) for name, column in columns.items()}
    return {"kind": "sends", **_shown(shown, per_source), **packed}


def _hops_per_source(paths: Paths, terminals: int) -> Ints:
    return np.bincount(paths.source, paths.hops, terminals).astype(np.int64)


def _shown(shown: Ints, per_source: Ints) -> dict[str, Any]:
    """Return the sources of a page, and whether they are all sources."""
    return {"sources": shown.tolist(), "all": len(shown) == int(np.count_nonzero(per_source))}


def _links(paths: Paths, weight: Floats) -> dict[str, Packed]:
    return {
        "source": packed_ints(paths.source),
        "destination": packed_ints(paths.destination),
        "weight": packed_floats(weight),
        "hops": packed_ints(paths.hops),
        "link": packed_ints(paths.link),
    }
