"""The same bytes on 1, 2, 3 and 8 threads, and calls so short that Ctrl-C is heard."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from alltoall import core
from alltoall.flows import decompose, first_order, guess, program, sweeps
from alltoall.flows.exact import by_source, exact_flows
from alltoall.ir.arrays import Floats
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.paths import blocks
from alltoall.paths.shortest import core_graph, tree_paths
from alltoall.placing import negotiate
from alltoall.placing.chunks import Chunks
from alltoall.placing.listed import UNPLACED, Choice, ListedChunks, negotiate_listed
from alltoall.placing.negotiate import NegotiationParams
from alltoall.placing.network import any_path
from alltoall.placing.place import PlacementParams, place
from alltoall.routes.baselines import tables
from alltoall.settings import SolveSettings
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


CELLS = 64 * 1600
"""Sources times links that a call may read here; as many as 64 sources of 400 nodes have."""

UNITS: dict[str, Callable[..., int]] = {
    "distances": lambda graph, lengths, starts, *_: len(starts) * len(lengths),
    "add_tree_flows": lambda graph, lengths, starts, *_: len(starts) * len(lengths),
    "make_exact": lambda graph, lengths, source, *_: len(source) * len(lengths),
    "tree_paths": lambda graph, lengths, begin, *_: len(np.unique(begin)) * len(lengths),
    "split_flows": lambda graph, begin, flow, wanted: len(flow[1]) + len(wanted[1]),
    "update_batch": lambda *given: int(given[10][-1] - given[10][0]) * given[8].shape[1],
    "most_hops": lambda where, start, *_: len(start) * 1600,
    "respond": lambda where, start, *given: len(start) * len(given[7]),
    "reroute": lambda *given: given[6] * len(given[7]),
    "choose_within": lambda *given: given[9],
}
"""What a call of each export does, by its arguments: links that it reads, or choices."""

LARGEST = {"choose_within": 1_000_000, "split_flows": 1 << 18}
"""Units of the others: a choice costs a tenth of a link of a shortest path."""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Count the units of all calls, by export."""
    found: dict[str, list[int]] = {name: [] for name in UNITS}

    def counted(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            found[name].append(UNITS[name](*given))
            return kernel(*given)

        return call

    for name in UNITS:
        monkeypatch.setattr(core, name, counted(name, getattr(core, name)))
    monkeypatch.setattr(sweeps, "update_batch", core.update_batch)
    monkeypatch.setattr(blocks, "BLOCK_CELLS", CELLS)
    monkeypatch.setattr(negotiate, "BLOCK_CELLS", CELLS)
    return found


def test_calls_end_soon_at_400_nodes(work: dict[str, list[int]]) -> None:
    """Each call takes its share, 50 ms of work at most, and then Ctrl-C and the clock are heard."""
    problem = Problem.all_to_all(build("jellyfish:n=400,d=4,seed=1"))
    topology, groups = problem.topology, by_source(problem)
    nothing, ones = np.zeros((400, topology.links)), np.ones(topology.links)
    exact = exact_flows(topology, groups, nothing)
    tables.sssp_tables(problem)
    source, end = problem.demand.pairs()
    tree_paths(topology, ones, source, end)
    decompose.paths_of_volumes(problem, groups, exact, SolveSettings())
    late = iter([False] * 2)
    settings = SolveSettings(gap=1e-9, stopped=lambda: next(late, True))
    whole = program.whole_program(problem, groups)
    first_order.answer_by_steps(whole, settings)
    guess.fill_missing(whole, nothing)
    source, end = source[source < 100], end[source < 100]
    network, chunks = any_path(topology), Chunks(source, end, np.ones(len(source)))
    placed = place(network, chunks, 1.0, PlacementParams(rounds=1))
    assert placed is not None
    budget, rounds = np.full(topology.links, 0.9 * placed.time), NegotiationParams(rounds=1)
    negotiate.negotiate(network, chunks, placed.table, budget, 0, params=rounds)
    paths = Paths.from_table(source, end, placed.table.astype(np.int64))
    every = np.arange(paths.count)
    listed = ListedChunks(paths.start, paths.link, every, every + 1, np.ones(paths.count))
    begin = Choice(every, np.full(paths.count, UNPLACED))
    negotiate_listed(topology, listed, begin, np.full(2, 0.5 * placed.time), 0)
    for name, units in work.items():
        assert units, f"{name} was never called"
        assert max(units) <= LARGEST.get(name, CELLS), f"{name}: {max(units)} units"
    assert len(work["make_exact"]) > 6
