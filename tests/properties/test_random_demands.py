"""Random fabrics, matrices and groups on real ranks: every byte, with one start for all of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from programs_in_c import mpi_of, started, with_engine
from strategies import RINGS, hosts_in_a_ring

RANKS = Path(__file__).parents[1] / "runtime" / "demand_ranks.py"
MOST_RANKS, CASES = 6, 12


def drawn(seed: int) -> Problem:
    """Draw a fabric of four to six ranks, and a demand on it: groups, or a matrix with holes."""
    random = np.random.default_rng(seed)
    topology = _digraph(random) if seed % 3 else _hosts(random)
    count = len(topology.terminals)
    if seed % 2:
        groups = [random.permutation(count)[: random.integers(2, count)].tolist() for _ in "ab"]
        return Problem(topology, Demand.of_groups(count, groups))
    return Problem(topology, Demand(count, _matrix(random, count)))


def _digraph(random: np.random.Generator) -> Topology:
    """Draw a cycle and chords; the last node may be a switch."""
    ranks = int(random.integers(4, MOST_RANKS + 1))
    nodes = ranks + int(random.integers(2))
    cycle = random.permutation(nodes).tolist()
    links = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    ends = random.integers(0, nodes, (2 * nodes, 2)).tolist()
    links += [(tail, head) for tail, head in ends if tail != head]
    wide = [(tail, head, float(random.choice([0.5, 1.0, 3.0]))) for tail, head in links]
    return Topology.from_links("random", nodes, wide, list(range(ranks)))


def _hosts(random: np.random.Generator) -> Topology:
    hosts, each = ((2, 2), (2, 3), (3, 2))[random.integers(3)]
    return hosts_in_a_ring(hosts, each, 3.0, str(random.choice(list(RINGS))))


def _matrix(random: np.random.Generator, count: int) -> Floats:
    matrix = np.round(random.uniform(0, 3, (count, count)), 2)
    matrix[random.uniform(size=matrix.shape) < 0.4] = 0.0
    matrix[0, 1] = 1.5
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Save a schedule for every problem, by either method."""
    folder, found = tmp_path_factory.mktemp("demands"), []
    for seed in range(CASES):
        method = ("list", "tsmcf")[seed % 2]
        schedule = alltoall.schedule(drawn(seed), method=method, chunks=1 + seed % 3)
        schedule.save(folder / f"{seed}.json")
        found.append(str(folder / f"{seed}.json"))
    return found


@pytest.mark.parametrize(
    ("kind", "exchange"), [("mpich", "c"), ("mpich", "python"), ("openmpi", "c")]
)
def test_every_byte_of_any_demand(
    files: list[str],
    kind: str,
    exchange: str,
    tmp_path: Path,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the demand that a schedule was made for, and by sizes that it has never seen."""
    mpi, mpicc = mpi_of(kind)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ALLTOALL_EXCHANGE", exchange)
    if exchange == "c":
        with_engine(tmp_path, mpicc, shared)
    command = mpi.command(MOST_RANKS, [sys.executable, str(RANKS), *files])
    said = started(command, mpi.variables(MOST_RANKS), tmp_path)
    assert "wrong" not in said
    assert f"{CASES} files done" in said
