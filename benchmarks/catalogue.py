"""Make the catalogue: the best network found for N = 8..256 and d = 2..8, one-way and cables.

    python benchmarks/catalogue.py search STATE [--effort E] [--seed S] [--workers K]
        [--cluster ADDRESS]
    python benchmarks/catalogue.py pack STATE

`search` appends an entry a line to the file STATE and goes on from there when started again; an
entry that was searched with the same effort and seed is not searched again, and only what is better
takes its place. `pack` writes the entries into the package. More effort, or another seed, over the
same STATE improves entries. Work is by processes here, or on a Dask cluster.
"""

import argparse
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import a2aflow
from a2aflow.designs.entry import Entry, Task, packed, search_entry
from a2aflow.flows.workers import Local, run_all
from a2aflow.settings import SolveSettings, cores

NODES, DEGREES = range(8, 257), range(2, 9)
"""The sizes and degrees of the catalogue."""

TARGET = Path(a2aflow.__file__).parent / "topologies" / "catalogue.npz"
"""Where the package keeps it."""


def tasks(effort: float, seed: int) -> list[Task]:
    """Return what is in the catalogue, small sizes first."""
    return [
        Task(nodes, degree, directed, effort, seed)
        for nodes in NODES
        for degree in DEGREES
        for directed in (True, False)
        if degree < nodes and (directed or nodes * degree % 2 == 0)
    ]


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


def search(state: Path, effort: float, seed: int, settings: SolveSettings) -> None:
    """Search for every entry that this effort and seed have not been spent on."""
    done = {tuple(each["key"]) for each in entries(state) if each["run"] == [effort, seed]}
    left = [
        task for task in tasks(effort, seed) if (task.nodes, task.degree, task.directed) not in done
    ]
    local = Local.PROCESSES if settings.workers > 1 else Local.ONE_BY_ONE
    with state.open("a") as file:
        for entry in run_all(search_entry, left, len(left), settings, local, "entries"):
            file.write(line_of(entry) + "\n")
            file.flush()


def pack(state: Path) -> None:
    """Write the best entry of every key into the package, and say how good they are."""
    best: dict[tuple[int, int, bool], dict[str, Any]] = {}
    for each in entries(state):
        key = tuple(each["key"])
        if key not in best or each["time"] < best[key]["time"]:
            best[key] = each
    rows = [best[key] for key in sorted(best)]
    heads = [np.frombuffer(base64.b64decode(row["heads"]), np.uint8) for row in rows]
    np.savez_compressed(
        TARGET,
        key=np.array([row["key"] for row in rows], dtype=np.int64),
        time=np.array([row["time"] for row in rows]),
        bound=np.array([row["bound"] for row in rows]),
        kautz=np.array([row["kautz"] for row in rows]),
        start=np.cumsum([0, *map(len, heads)]),
        heads=np.concatenate(heads),
    )
    print(f"{len(rows)} entries, {TARGET.stat().st_size:,} bytes")


def main() -> None:
    """Do what the words ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("search", "pack"))
    parser.add_argument("state", type=Path)
    parser.add_argument("--effort", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--cluster")
    asked = parser.parse_args()
    if asked.what == "search":
        settings = SolveSettings(workers=asked.workers, cluster=asked.cluster, report=print)
        search(asked.state, asked.effort, asked.seed, settings)
    else:
        pack(asked.state)


if __name__ == "__main__":
    main()
