"""Constraints: what a file says stays as it is, and what it leaves open is searched."""

from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.designs.constraints import read_constraints
from alltoall.errors import AlltoallError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import write_topology

SIDED = """
[fixed]
topology = "mesh:2x2x2"
copies = 2
""" + "".join(
    f"[[panels]]\nfirst = [{a}, {a + 8}]\nsecond = [{b}, {b + 8}]\n"
    for a, b in ((4, 0), (5, 1), (6, 2), (7, 3))
)
"""Two cubes, each port on a face joined only to the same place of an opposite face."""


def wiring_file(folder: Path, text: str) -> Path:
    """Write a file of constraints."""
    path = folder / "wiring.toml"
    path.write_text(text)
    return path


def cables_of(topology: Topology) -> set[tuple[int, int]]:
    """Return the cables, each from its lower end."""
    pairs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    return {(u, v) for u, v in pairs if u < v}


def test_fixed_cables_stay_and_panels_keep_their_ports(tmp_path: Path) -> None:
    """The other cables join ports of one panel and of different sides."""
    found = alltoall.design(constraints=wiring_file(tmp_path, SIDED))
    cables = cables_of(found.topology)
    board = cables_of(alltoall.topology("mesh:2x2x2"))
    fixed = {(u + 8 * copy, v + 8 * copy) for u, v in board for copy in (0, 1)}
    assert fixed <= cables or found.topology.links == 2 * (len(fixed) + 8)
    for u, v in cables - fixed:
        assert u % 4 == v % 4
        assert (u // 4 % 2) != (v // 4 % 2)
    assert found.bound <= found.best.time
    assert (found.degree, found.absent) == (None, {})


def test_any_port_may_be_joined_to_any(tmp_path: Path) -> None:
    """Every node then has as many ports as were asked for, and more freedom is no worse."""
    text = '[fixed]\ntopology = "mesh:2x2x2"\ncopies = 2\n[ports]\ndegree = 4\n'
    found = alltoall.design(constraints=wiring_file(tmp_path, text))
    assert set(found.topology.out_degree.tolist()) == {4}
    sided = alltoall.design(constraints=wiring_file(tmp_path, SIDED))
    assert found.best.time <= sided.best.time * (1 + 1e-3)


def test_panels_have_at_most_so_many_ports(tmp_path: Path) -> None:
    """Ports are dealt in rounds, one of every node; cables stay within a panel."""
    text = "nodes = 24\n[ports]\ndegree = 4\npanel = 24\n"
    wiring = read_constraints(wiring_file(tmp_path, text))
    assert wiring.panel is not None
    assert np.bincount(wiring.panel).tolist() == [12] * 4
    found = alltoall.design(constraints=tmp_path / "wiring.toml")
    assert set(found.topology.out_degree.tolist()) == {4}


def test_cables_cost_no_more_than_the_budget(tmp_path: Path) -> None:
    """By their length; the price of each candidate is told."""
    places = [[x, 0] for x in range(16)]
    prices = f"[prices]\npositions = {places}\nclasses = [[4, 1], [20, 10]]\nbudget = 150\n"
    text = "nodes = 16\n[ports]\ndegree = 4\n" + prices
    found = alltoall.design(constraints=wiring_file(tmp_path, text))
    assert found.best.price is not None
    assert found.best.price <= 150
    far = sum(v - u > 4 for u, v in cables_of(found.topology))
    assert found.best.price == 32 + 9 * far
    assert found.to_json()["best"]["price"] == found.best.price


def test_a_network_is_expanded_by_moving_few_cables(tmp_path: Path) -> None:
    """Two new nodes of degree 4 take the place of four cables, and no other is touched."""
    old = alltoall.topology("jellyfish:n=20,d=4,seed=1")
    write_topology(old, tmp_path / "old.json")
    text = f'[expand]\ntopology = "{tmp_path / "old.json"}"\nnodes = 2\n'
    found = alltoall.design(constraints=wiring_file(tmp_path, text))
    new = found.topology
    assert new.nodes == 22
    assert set(new.out_degree.tolist()) == {4}
    assert len(cables_of(old) - cables_of(new)) <= 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nodes = 8\nspeed = 3\n", "unknown 'speed'"),
        ("nodes = 8\n", r"either \[ports\] or \[\[panels\]\]"),
        ("nodes = 8\n[ports]\ndegree = 3\npanel = 7\n", "panel 0 has 7 and 0 ports"),
        ("nodes = 2\n[[panels]]\nports = [0, 0, 0, 1]\n", "without joining a node to itself"),
        ("nodes = 4\n[[panels]]\nports = [0, 9]\n", "has node 9; expected 0 to 3"),
        ("nodes = 4\n[[panels]]\nports = [0, 1]\n[[panels]]\nfirst = [2]\nsecond = [3]\n", "kind"),
        ('[fixed]\ntopology = "ring:6"\n[ports]\ndegree = 1\n', "has 2 fixed cables"),
        ('[fixed]\ntopology = "kautz:d=2,k=2"\n[ports]\ndegree = 4\n', "expected cables"),
        ('[expand]\ntopology = "ring:3"\nnodes = 9\n', "too many to splice in"),
        ('[expand]\ntopology = "hypercube:3"\nnodes = 2\n', "one even degree"),
        ("nodes = 4\n[ports]\ndegree = 2\n[prices]\npositions = [[1]]\n", "4 rows"),
        ("nodes =", "not TOML"),
    ],
)
def test_what_is_wrong_is_said(text: str, expected: str, tmp_path: Path) -> None:
    """Found, expected, and where."""
    with pytest.raises(AlltoallError, match=expected):
        alltoall.design(constraints=wiring_file(tmp_path, text))


def test_constraints_say_all(tmp_path: Path) -> None:
    """A number of nodes beside them is refused."""
    with pytest.raises(AlltoallError, match="the constraints say all"):
        alltoall.design(8, degree=3, constraints=wiring_file(tmp_path, SIDED))
    with pytest.raises(AlltoallError, match="a number of nodes and a degree"):
        alltoall.design(8)
