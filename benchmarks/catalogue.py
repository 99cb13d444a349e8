"""Make the catalogue: the best network found for N = 8..256 and d = 2..8, one-way and cables.

    python benchmarks/catalogue.py search STATE [--effort E] [--seed S] [--workers K]
        [--most N] [--cluster ADDRESS]
    python benchmarks/catalogue.py pack STATE

`search` appends an entry a line to the file STATE and goes on from there when started again; an
entry that was searched with the same effort and seed is not searched again, and only what is better
takes its place. `pack` adds to the package's entries what of STATE is new or better, and says how
good all are; a STATE that is packed is not needed again. More effort, or another seed, improves
entries. Work is by processes here, or on a Dask cluster. `catalogue_picture.py` draws them.
"""

import argparse
import base64
import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import alltoall
from alltoall.designs.candidate import Candidate, DesignParams, certify_candidate
from alltoall.designs.design import Wanted
from alltoall.designs.fitting import FITTING, fitting_specs
from alltoall.designs.search import search_regular
from alltoall.designs.wiring import regular_wiring, wiring_of
from alltoall.errors import UsageError
from alltoall.flows.bounds import cable_bound, distance_bound, regular_bound
from alltoall.flows.workers import Local, run_all
from alltoall.ir.demand import Demand
from alltoall.ir.topology import Topology
from alltoall.settings import DESIGN_GAP, SolveSettings, cores
from alltoall.topologies.digraphs import genkautz
from alltoall.topologies.expanders import catalogued, times
from alltoall.topologies.spec import build

NODES, DEGREES = range(8, 257), range(2, 9)
"""The sizes and degrees of the catalogue."""

BLOCK = 32
"""Sizes are searched in blocks of so many nodes, the smallest first."""

NEAT = 96
"""Nodes below which a search is given more effort: it costs less there."""

TARGET = Path(alltoall.__file__).parent / "topologies" / "catalogue.npz"
"""Where the package keeps it."""


COMPARED = sorted(FITTING.keys() - {"best", "genkautz", "jellyfish", "xpander"})
"""Families that an entry may be, besides generalized Kautz graphs."""

NEAR = 1.1
"""Families with distances further above the bound are not compared."""


@dataclass(frozen=True)
class Task:
    """A size and a degree, with the effort and the seed of the search."""

    nodes: int
    degree: int
    directed: bool
    effort: float
    seed: int


@dataclass(frozen=True, eq=False)
class Entry:
    """The best network found, with its certified time and bound.

    `kautz` is the certified time of the generalized Kautz graph with its self-loops rewired, 0 for
    cables and if the catalogue has it already.
    """

    task: Task
    name: str
    topology: Topology
    time: float
    bound: float
    kautz: float


def search_entry(task: Task) -> Entry:
    """Search for an entry that is never worse than the catalogue or any family."""
    wiring = regular_wiring(task.nodes, task.degree, task.directed)
    wanted = Wanted(wiring, task.degree, Demand(task.nodes))
    settings = SolveSettings(gap=DESIGN_GAP, workers=1)
    known = list(_catalogued(wanted, settings)) or list(_families(wanted, settings))
    best = min(known, key=lambda each: each.time, default=None)
    start = None if best is None else wiring_of(best.topology, task.directed)
    pool = search_regular(
        wanted.wiring, task.degree, task.seed, settings, DesignParams.kept, task.effort, start
    )
    for each in pool:
        if best is None or each.time < best.time * (1 - 1e-9):
            topology = each.wiring.topology(each.name)
            found = certify_candidate(wanted.problem_on(topology), wanted.bound, True, settings)
            best = found if best is None or found.time < best.time else best
    if best is None:
        raise UsageError(f"{task}: the search found no wiring; expected more effort")
    kautz = next((each.time for each in known if each.name.startswith("genkautz")), 0.0)
    return Entry(task, best.name, best.topology, best.time, best.flow.bound, kautz)


def _catalogued(wanted: Wanted, settings: SolveSettings) -> Iterator[Candidate]:
    """Yield the entries of the catalogue; cables count as networks of one-way links too."""
    for topology in map(build, catalogued(wanted.wiring.nodes, wanted.degree or 1)):
        if wanted.wiring.directed or topology.bidirectional:
            yield certify_candidate(wanted.problem_on(topology), wanted.bound, False, settings)


def _families(wanted: Wanted, settings: SolveSettings) -> Iterator[Candidate]:
    """Yield generalized Kautz graphs, and families with short distances."""
    nodes, degree = wanted.wiring.nodes, wanted.degree or 1
    if wanted.wiring.directed:
        kautz = genkautz(nodes, degree, rewire=True)
        yield certify_candidate(wanted.problem_on(kautz), wanted.bound, False, settings)
    specs = [spec for name in COMPARED for spec in fitting_specs(name, nodes, degree)]
    for topology in map(build, specs):
        regular = {*topology.out_degree.tolist(), *topology.in_degree.tolist()} == {degree}
        fits = regular and (wanted.wiring.directed or topology.bidirectional)
        if fits and distance_bound(wanted.problem_on(topology)) < NEAR * wanted.bound:
            yield certify_candidate(wanted.problem_on(topology), wanted.bound, False, settings)


def packed(topology: Topology) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """Return the heads of all links in order of their tails, as bytes: at most 256 nodes."""
    order = np.lexsort((topology.head, topology.tail))
    return topology.head[order].astype(np.uint8)


def tasks(effort: float, seed: int, most: int) -> list[Task]:
    """Return the entries up to a size that may be improved: small ones, far from the bound, first.

    Small networks are searched longer, up to four times.
    """
    found = {
        Task(nodes, degree, directed, effort * min(max(NEAT / nodes, 1), 4), seed): distance
        for nodes in range(min(NODES), most + 1)
        for degree in DEGREES
        for directed in (True, False)
        if degree < nodes and (directed or nodes * degree % 2 == 0)
        if (distance := distance_to_bound(nodes, degree, directed)) > 1e-9
    }
    return sorted(found, key=lambda task: (task.nodes // BLOCK, -found[task]))


def distance_to_bound(nodes: int, degree: int, directed: bool) -> float:
    """Return the share by which the package's entry is above the bound; infinite if none."""
    known = best_times().get((nodes, degree, directed), np.inf)
    bound = regular_bound(nodes, degree) if directed else cable_bound(nodes, degree)
    return known / float(bound) - 1


@cache
def best_times() -> dict[tuple[int, int, bool], float]:
    """Return the certified time of every entry of the package."""
    known = times()
    keys = [(n, d, bool(one_way)) for n, d, one_way in known["key"].tolist()]
    return dict(zip(keys, known["time"].tolist(), strict=True))


def line_of(entry: Entry) -> str:
    """Return an entry as a line of JSON."""
    task = entry.task
    found: dict[str, Any] = {
        "key": [task.nodes, task.degree, task.directed],
        "run": [task.effort, task.seed],
        "name": entry.name,
        "time": entry.time,
        "bound": entry.bound,
        "kautz": entry.kautz,
        "heads": base64.b64encode(packed(entry.topology).tobytes()).decode(),
    }
    return json.dumps(found)


def entries(state: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a state; a last line that was cut off is none."""
    if state.exists():
        for line in state.read_text().splitlines():
            if line.endswith("}"):
                yield json.loads(line)


def search(state: Path, effort: float, seed: int, most: int, settings: SolveSettings) -> None:
    """Search for every entry that this effort and seed have not been spent on."""
    done = {(*each["key"], *each["run"]) for each in entries(state)}
    left = [task for task in tasks(effort, seed, most) if astuple(task) not in done]
    local = Local.PROCESSES if settings.workers > 1 else Local.ONE_BY_ONE
    with state.open("a") as file:
        for entry in run_all(search_entry, left, len(left), settings, local, "entries"):
            file.write(line_of(entry) + "\n")
            file.flush()


def known_entries() -> Iterator[dict[str, Any]]:
    """Yield what the package has already."""
    with np.load(TARGET) as file:
        parts = np.split(file["heads"], file["start"][1:-1])
        columns = (file[name].tolist() for name in ("key", "time", "bound", "kautz"))
        for key, time, bound, kautz, heads in zip(*columns, parts, strict=True):
            yield {"key": key, "time": time, "bound": bound, "kautz": kautz, "heads": heads}


def pack(state: Path) -> None:
    """Put what is better than the package's entries, or new, into it, and say how good all are."""
    best = {tuple(each["key"]): each for each in known_entries()}
    before, better = len(best), 0
    for each in entries(state):
        key = each["key"] = (*each["key"][:2], int(each["key"][2]))
        if key not in best or each["time"] < best[key]["time"] * (1 - 1e-9):
            better += key in best
            heads = np.frombuffer(base64.b64decode(each["heads"]), np.uint8)
            kautz = each["kautz"] or best.get(key, each)["kautz"]
            best[key] = each | {"heads": heads, "kautz": kautz}
    rows = [best[key] for key in sorted(best)]
    np.savez_compressed(
        TARGET,
        key=np.array([row["key"] for row in rows], dtype=np.int64),
        time=np.array([row["time"] for row in rows]),
        bound=np.array([row["bound"] for row in rows]),
        kautz=np.array([row["kautz"] for row in rows]),
        start=np.cumsum([0, *(len(row["heads"]) for row in rows)]),
        heads=np.concatenate([row["heads"] for row in rows]),
    )
    new = len(rows) - before
    print(f"{len(rows)} entries ({new} new, {better} better), {TARGET.stat().st_size:,} bytes")


def bound_of(nodes: int, degree: int) -> float:
    """Return the bound for any network of one-way links."""
    return float(regular_bound(nodes, degree))


def tell() -> None:
    """Print how much of the distance of generalized Kautz graphs to the bound is closed."""
    known = times()
    one_way = known["key"][:, 2] == 1
    key, time, kautz = (known[name][one_way] for name in ("key", "time", "kautz"))
    bound = np.array([bound_of(n, d) for n, d, _ in key.tolist()])
    print(f"| degree | genkautz over bound | best over bound | of the gap closed |\n{'|---' * 4}|")
    for degree in DEGREES:
        rows = (key[:, 1] == degree) & (kautz > bound * (1 + 1e-3))
        closed = ((kautz - time)[rows] / (kautz - bound)[rows]).mean()
        ratios = [(each[rows] / bound[rows]).mean() for each in (kautz, time)]
        print(f"| {degree} | {ratios[0]:.4f} | {ratios[1]:.4f} | {closed:.0%} |")
    rows = kautz > bound * (1 + 1e-3)
    print(f"all: {((kautz - time)[rows] / (kautz - bound)[rows]).mean():.1%} closed on average;")
    print(f"largest N {key[:, 0].max()}; worse than genkautz: {(time > kautz * (1 + 1e-9)).sum()}")


def main() -> None:
    """Do what the words ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("search", "pack"))
    parser.add_argument("state", type=Path)
    parser.add_argument("--effort", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--most", type=int, default=max(NODES))
    parser.add_argument("--cluster")
    asked = parser.parse_args()
    if asked.what == "search":
        settings = SolveSettings(workers=asked.workers, cluster=asked.cluster, report=print)
        search(asked.state, asked.effort, asked.seed, asked.most, settings)
    else:
        pack(asked.state)
        tell()


if __name__ == "__main__":
    main()
