"""`--survive`: routes ready for every failure, found before it happens.

For each link or node that may fail, the healthy routes are renewed (`routes.renew`) on what is left
of the topology, given layers and checked. What is kept of each is a file of routes to switch over
to, and how much longer than the healthy ones they take. Failures are independent, so they can run
on a Dask cluster.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from a2aflow.check.routes import check_routes
from a2aflow.errors import A2AFlowError, FormatError, InputError, UsageError
from a2aflow.flows.workers import Local, run_all
from a2aflow.ir.demand import Demand
from a2aflow.ir.files.artefacts import file_bytes
from a2aflow.ir.files.text import read_text, write_bytes
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.routes.layers.assign import layers_in_time
from a2aflow.routes.renew import renew_routes
from a2aflow.settings import RouteSettings, SolveSettings
from a2aflow.topologies.operators import remove_links, remove_nodes

LINKS, NODES = "links:1", "nodes:1"
"""Every single link (cable, where links come in pairs), and every single node."""


@dataclass(frozen=True)
class Failure:
    """What fails together: links by their ends, and nodes."""

    links: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What a file of it is called."""
        return "_".join(
            [*(f"link-{u}-{v}" for u, v in self.links), *map("node-{}".format, self.nodes)]
        )

    def left_of(self, problem: Problem) -> Problem:
        """Return the problem on what is left."""
        topology = remove_nodes(remove_links(problem.topology, self.links), self.nodes)
        if not self.nodes or problem.demand.uniform:
            terminals = len(topology.terminals)
            return Problem(topology, problem.demand if not self.nodes else Demand(terminals))
        stays = np.flatnonzero(~np.isin(problem.topology.terminals, self.nodes))
        matrix = problem.demand.of(*np.meshgrid(stays, stays, indexing="ij"))
        return Problem(topology, Demand(len(stays), matrix))


@dataclass(frozen=True)
class Survivor:
    """A failure, the time and bound after it, and what the healthy routes would lose.

    Where some pair is cut off, `time` is infinite and there is no `file`.
    """

    failure: Failure
    time: float
    bound: float = 0.0
    unserved: float = 1.0
    moved: int = 0
    file: bytes = b""


@dataclass(frozen=True)
class Survival:
    """The outcome of all failures, next to the healthy time."""

    healthy: float
    survivors: tuple[Survivor, ...]

    def summary(self) -> dict[str, Any]:
        """Return the worst and the mean loss, as plain values."""
        left = [each for each in self.survivors if each.time < np.inf]
        loss = {each.failure.name: each.time / self.healthy - 1 for each in left}
        worst = max(loss, key=lambda name: loss[name], default=None)
        return {
            "failures": len(self.survivors),
            "cut_off": [each.failure.name for each in self.survivors if each.time == np.inf],
            "worst": worst,
            "worst_loss": None if worst is None else loss[worst],
            "mean_loss": float(np.mean(list(loss.values()))) if loss else None,
            "worst_gap": max((each.time / each.bound - 1 for each in left), default=None),
            "worst_unserved": max((each.unserved for each in left), default=None),
        }


def failures_of(topology: Topology, text: str) -> list[Failure]:
    """Return the failures of `links:1`, `nodes:1`, or a file with one a line, such as `3-4, 7`.

    Nodes are names or numbers, and what stands on a line fails together.
    """
    if text == LINKS:
        pairs = sorted(set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)))
        both = topology.bidirectional
        return [Failure(links=((u, v),)) for u, v in pairs if u < v or not both]
    if text == NODES:
        return [Failure(nodes=(node,)) for node in range(topology.nodes)]
    path = Path(text)
    if not path.exists():
        raise UsageError(f"--survive {text}; expected {LINKS}, {NODES}, or a file of failures")
    lines = [line.split("#")[0].strip() for line in read_text(path).splitlines()]
    found = [
        _failure(topology, line, f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line
    ]
    if not found:
        raise FormatError(f"{path}: no failures; expected one a line, such as 3-4 or 7")
    return found


def _failure(topology: Topology, line: str, where: str) -> Failure:
    """Return what fails together by a line: nodes and links, by names or numbers."""
    links, nodes = [], []
    try:
        for word in line.replace(",", " ").split():
            if "-" in word and not topology.has_node(word):
                links.append(topology.ends_of(word))
            else:
                nodes.append(topology.node_of(word))
        remove_nodes(remove_links(topology, links), nodes)
    except A2AFlowError as error:  # What is not there cannot fail, and is refused by name.
        raise FormatError(f"{where}: {error}") from None
    return Failure(tuple(links), tuple(nodes))


def survive(routes: Routes, what: str, settings: RouteSettings) -> Survival:
    """Renew routes for every failure; leave a file of each in a folder, if one is given."""
    solving = SolveSettings(settings.solve.gap, workers=settings.solve.workers)
    failures = failures_of(routes.problem.topology, what)
    items = ((routes, each, settings.layers, settings.max_layers, solving) for each in failures)
    found = run_all(_renewed, items, len(failures), settings.solve, Local.ONE_BY_ONE, "failures")
    return Survival(routes.time, tuple(_kept(found, settings.switch_over)))


def _kept(found: Iterator[Survivor], folder: Path | None) -> Iterator[Survivor]:
    """Write the files as they come, and keep all but their bytes."""
    for each in found:
        if folder is not None and each.file:
            write_bytes(folder / f"{each.failure.name}.npz", each.file)
        yield Survivor(each.failure, each.time, each.bound, each.unserved, each.moved)


def _renewed(item: tuple[Routes, Failure, str | None, int | None, SolveSettings]) -> Survivor:
    """Renew routes after one failure; those of a pair that is cut off do not exist."""
    routes, failure, layers, max_layers, settings = item
    try:
        found = renew_routes(failure.left_of(routes.problem), routes, settings)
    except InputError:
        return Survivor(failure, np.inf)
    renewed = found.routes
    if layers is not None:
        renewed, _ = layers_in_time(renewed, layers, max_layers, settings)
    check_routes(renewed)
    file = file_bytes(Path("routes.npz"), renewed, False)
    return Survivor(failure, renewed.time, renewed.bound, found.unserved, found.moved, file)
