import networkx as nx
import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.topologies.algebraic import finite_field, slimfly, spectralfly
from alltoall.topologies.properties import diameter


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17])
def test_slimfly_has_diameter_two(q: int) -> None:
    """2 q^2 nodes of degree (3 q - delta) / 2 are all within two hops, without double links."""
    topology = slimfly(q)
    delta = {1: 1, 3: -1, 0: 0}[q % 4]
    assert topology.nodes == 2 * q * q
    assert np.all(topology.out_degree == (3 * q - delta) // 2)
    assert topology.bidirectional
    assert len(np.unique(topology.tail * topology.nodes + topology.head)) == topology.links
    assert diameter(topology) == 2


def test_slimfly_five_is_hoffman_singleton() -> None:
    """The q = 5 graph is the one of networkx with that name."""
    topology = slimfly(5)
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    assert nx.is_isomorphic(nx.Graph(arcs), nx.hoffman_singleton_graph())


@pytest.mark.parametrize(("prime", "digits"), [(2, 2), (2, 3), (3, 2), (5, 1), (3, 3)])
def test_finite_field(prime: int, digits: int) -> None:
    """Addition and multiplication are commutative groups, and distribute."""
    q = prime**digits
    field = finite_field(q, "a field")
    numbers = np.arange(q)
    assert np.array_equal(np.sort(field.powers), numbers[1:])
    for table, members in ((field.add, numbers), (field.multiply[1:, 1:], numbers[1:])):
        assert np.array_equal(table, table.T)
        assert np.all(np.sort(table, axis=1) == members)
    a, b, c = np.ix_(numbers, numbers, numbers)
    left = field.multiply[a, field.add[b, c]]
    assert np.array_equal(left, field.add[field.multiply[a, b], field.multiply[a, c]])
    assert np.array_equal(
        field.multiply[a, field.multiply[b, c]], field.multiply[field.multiply[a, b], c]
    )


@pytest.mark.parametrize("q", [-5, 0, 2, 6, 10, 12, 15, 100])
def test_slimfly_needs_a_prime_power(q: int) -> None:
    """Other numbers are refused."""
    with pytest.raises(TopologyError, match="expected a prime power"):
        slimfly(q)


@pytest.mark.parametrize(
    ("p", "q", "square"),
    [
        (3, 5, False),  # p = 3, q = 1 modulo 4
        (3, 7, False),  # p = 3, q = 3
        (5, 7, False),  # p = 1, q = 3
        (11, 7, True),
        (5, 11, True),
        (7, 13, False),
        (13, 17, True),  # p = 1, q = 1
        (23, 11, True),
    ],
)
def test_spectralfly_counts(p: int, q: int, square: bool) -> None:
    """The group is PSL(2, q) where p is a square modulo q, PGL(2, q) and bipartite otherwise."""
    topology = spectralfly(p, q)
    assert topology.nodes == q * (q * q - 1) // (2 if square else 1)
    assert np.all(topology.out_degree == p + 1)
    assert topology.bidirectional
    assert len(np.unique(topology.tail * topology.nodes + topology.head)) == topology.links
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    graph = nx.Graph(arcs)
    assert nx.is_connected(graph)
    assert nx.is_bipartite(graph) != square


@pytest.mark.parametrize(("p", "q"), [(3, 5), (11, 7), (5, 11)])
def test_spectralfly_is_ramanujan(p: int, q: int) -> None:
    """All eigenvalues but plus and minus the degree are at most 2 sqrt(p) in magnitude."""
    topology = spectralfly(p, q)
    matrix = np.zeros((topology.nodes, topology.nodes))
    matrix[topology.tail, topology.head] = 1
    values = np.abs(np.linalg.eigvalsh(matrix))
    assert np.all(values[values < p + 1 - 1e-6] <= 2 * np.sqrt(p) + 1e-9)


@pytest.mark.parametrize(
    ("p", "q", "problem"),
    [
        (5, 5, "distinct odd primes"),
        (2, 7, "distinct odd primes"),
        (13, 7, "q > 2 sqrt"),
        (9, 7, "p is 9"),
        (5, 9, "q is 9"),
        (4, 7, "p is 4"),
        (3, 10**17, "at most"),
        (3, 113, "at most"),
    ],
)
def test_impossible_spectralfly(p: int, q: int, problem: str) -> None:
    """Parameters without an LPS graph, or with too large a one, are refused."""
    with pytest.raises(TopologyError, match=problem):
        spectralfly(p, q)


def test_oversize_slimfly() -> None:
    """A large q is refused before it is factorised."""
    with pytest.raises(TopologyError, match="at most"):
        slimfly(10**17 + 3)
