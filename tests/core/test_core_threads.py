"""The same bytes on 1, 2, 3 and 8 threads, and calls so short that Ctrl-C is heard."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from alltoall import core
from alltoall.flows.exact import by_source, exact_flows
from alltoall.ir.arrays import Floats
from alltoall.ir.problem import Problem
from alltoall.paths import blocks
from alltoall.paths.shortest import core_graph
from alltoall.routes.baselines import tables
from alltoall.topologies.spec import build

GROUPS = 150
"""More groups than a block of any kernel has."""

JELLYFISH = build(f"jellyfish:n={GROUPS},d=4,seed=1")
EVERY = np.arange(GROUPS)
WANTED = 1.0 - np.eye(GROUPS)


def _lengths() -> Floats:
    return 1 + np.random.default_rng(1).random(JELLYFISH.links)


def _tree_flows(threads: int) -> Floats:
    """Return flows down trees under random lengths."""
    flows = np.zeros((GROUPS, JELLYFISH.links))
    core.add_tree_flows(core_graph(JELLYFISH), _lengths(), EVERY, WANTED, flows, threads)
    return flows


def _exact(threads: int) -> Floats:
    """Return exact flows near flows that deliver half of everything, and noise."""
    flows = 0.5 * _tree_flows(1)
    flows += np.random.default_rng(1).normal(0.0, 0.1, flows.shape)
    core.make_exact(core_graph(JELLYFISH), _lengths(), EVERY, WANTED, flows, threads)
    return flows


def _batch(threads: int) -> tuple[Floats, Floats]:
    """Return flows after a batch of eight parts, and how the times change."""
    links = JELLYFISH.links
    flows, ones = _tree_flows(1), np.ones(links)
    change = core.update_batch(
        core_graph(JELLYFISH), np.arange(links), ones, ones / links, ones / 50, EVERY,
        np.ones(GROUPS), WANTED, flows, flows.sum(axis=0), np.arange(9) * GROUPS // 8, 2.0, threads,
    )  # fmt: skip
    return flows, change


def _steps(threads: int) -> tuple[Floats, Floats]:
    """Return the loads and the flows of a primal-dual step."""
    links = JELLYFISH.links
    flows, ones = _tree_flows(1), np.ones(links)
    method = core.PrimalDual(
        core_graph(JELLYFISH), np.arange(links), np.array([0, links]), ones, ones, EVERY, WANTED,
        np.ones(GROUPS), flows, np.zeros((GROUPS, GROUPS)), ones / links,
    )  # fmt: skip
    method.set_steps(ones / 3, np.ones(GROUPS) / 3, ones / 3)
    load = method.step_flows(0.5, threads)
    method.write_flows(flows)
    return load, flows


def _responses(threads: int) -> tuple[Any, Floats]:
    """Return the paths and loads of chunks that moved twice."""
    source, end = np.nonzero(WANTED)
    first = np.searchsorted(source, np.arange(GROUPS + 1))
    table = np.full((len(end), 20), -1, np.int32)
    load, size, scale = np.zeros(JELLYFISH.links), np.ones(len(end)), np.full(JELLYFISH.links, 0.01)
    for prices in (None, scale):
        core.respond(
            core_graph(JELLYFISH), EVERY, first, end, size, np.ones(GROUPS), prices, 1.0, table,
            load, 16, threads,
        )  # fmt: skip
    return table, load


KERNELS: dict[str, Callable[[int], Any]] = {
    "distances": lambda threads: core.distances(core_graph(JELLYFISH), _lengths(), EVERY, threads),
    "add_tree_flows": _tree_flows,
    "make_exact": _exact,
    "update_batch": _batch,
    "PrimalDual.step_flows": _steps,
    "respond": _responses,
}
"""All exports that take a number of threads."""


@pytest.mark.parametrize("name", KERNELS)
def test_threads_change_no_byte(name: str) -> None:
    """Parts have a fixed order, however many threads share them."""

    def found(threads: int) -> list[bytes]:
        answer = KERNELS[name](threads)
        arrays = answer if isinstance(answer, tuple) else (answer,)
        return [each.tobytes() for each in arrays]

    alone = found(1)
    for threads in (2, 3, 8):
        assert found(threads) == alone


class Counted:
    """A kernel that is counted, with the most rows that a call had."""

    def __init__(self, kernel: Callable[..., Any], rows_at: int) -> None:
        self.kernel, self.rows_at, self.rows = kernel, rows_at, list[int]()

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        self.rows.append(len(arguments[self.rows_at]))
        return self.kernel(*arguments)


def test_calls_end_soon_at_400_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 sources times 1600 links each call takes its share: 50 ms of work at most."""
    problem = Problem.all_to_all(build("jellyfish:n=400,d=4,seed=1"))
    topology, groups = problem.topology, by_source(problem)
    monkeypatch.setattr(blocks, "BLOCK_CELLS", 64 * topology.links)
    exact, trees = Counted(core.make_exact, 2), Counted(core.grow_trees, 2)
    monkeypatch.setattr(core, "make_exact", exact)
    monkeypatch.setattr(core, "grow_trees", trees)
    exact_flows(topology, groups, np.zeros((400, topology.links)))
    tables.sssp_tables(problem)
    for counted in (exact, trees):
        assert sum(counted.rows) == 400
        assert max(counted.rows) <= 64
