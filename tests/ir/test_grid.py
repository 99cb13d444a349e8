"""Grids are found from links alone, whatever the numbering, and only where there are some."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import InputError, TopologyError
from alltoall.ir.grid import Grid, Line, grid_of, grid_of_shape
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import remove_links
from alltoall.topologies.spec import build


def topology_of(grid: Grid) -> Topology:
    """Return the links of a grid as a topology."""
    ends = [grid.links(axis) for axis in range(len(grid.shape))]
    tail, head = (np.concatenate(each) for each in zip(*ends, strict=True))
    pairs = zip(tail.tolist(), head.tolist(), strict=True)
    return Topology.from_links("drawn", len(grid.node), pairs)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Draw a grid of up to three kinds of line, its nodes in any order."""
    shape = tuple(draw(st.lists(st.integers(2, 5), min_size=1, max_size=3)))
    lines = tuple(
        draw(st.sampled_from([line for line in Line if line.shortest <= side])) for side in shape
    )
    order = draw(st.permutations(range(prod(shape))))
    return Grid(shape, lines, np.array(order))


@given(grids())
def test_every_grid_is_found_in_any_numbering(grid: Grid) -> None:
    """What is found has the same links, and its coordinates are places of all nodes."""
    topology = topology_of(grid)
    found = grid_of(topology)
    assert found is not None
    assert sorted(found.node.tolist()) == list(range(topology.nodes))
    again = topology_of(found)
    links = [
        set(zip(each.tail.tolist(), each.head.tolist(), strict=True)) for each in (topology, again)
    ]
    assert links[0] == links[1]
    assert np.array_equal(found.node[np.ravel_multi_index(found.coordinates.T, found.shape)],
                          np.arange(topology.nodes))  # fmt: skip


@given(st.lists(st.sampled_from(["path", "cycle", "clique"]), min_size=1, max_size=3), st.data())
def test_row_by_row_keeps_sides_and_order(kinds: list[str], data: st.DataObject) -> None:
    """The sides are those that were built, in their order, fours included."""
    lines = tuple(map(Line, kinds))
    shape = tuple(data.draw(st.integers(max(2, line.shortest), 5)) for line in lines)
    found = grid_of(topology_of(Grid(shape, lines, np.arange(prod(shape)))))
    assert found is not None
    assert (found.shape, found.lines) == (shape, lines)


@pytest.mark.parametrize(
    "spec",
    [
        *("twisted-hypercube:3", "bipartite:3x3", "genkautz:n=12,d=3", "fattree:k=4"),
        *("jellyfish:n=16,d=4,seed=1", "dragonfly:a=4,h=2", "tpuv4:4x4x8,twisted=true"),
    ],
)
def test_what_is_no_grid(spec: str) -> None:
    """Other families are not taken for grids."""
    assert grid_of(build(spec)) is None


def test_a_machine_may_be_a_grid() -> None:
    """Two boards of four GPUs each, all joined on a board, and each to its partner."""
    found = grid_of(build("dgx1"))
    assert found is not None
    assert (found.shape, found.lines) == ((2, 4), (Line.PATH, Line.CLIQUE))


def test_a_grid_with_a_hole_is_none() -> None:
    """One missing cable, or one more, and it is another graph."""
    torus = build("torus:4x5")
    assert grid_of(remove_links(torus, [(0, 1)])) is None
    links = [*zip(torus.tail.tolist(), torus.head.tolist(), strict=True), (0, 12), (12, 0)]
    assert grid_of(Topology.from_links("more", 20, links)) is None
    one_way = replace(torus, tail=torus.tail[1:], head=torus.head[1:], capacity=torus.capacity[1:])
    assert grid_of(one_way) is None


def test_capacities_and_parallel_links_do_not_matter() -> None:
    """A grid is about who is whose neighbour."""
    found = grid_of(Topology.from_edges("double", 3, [(0, 1), (0, 1, 5), (1, 2), (2, 0, 3)]))
    assert found is not None
    assert (found.shape, found.lines) == ((3,), (Line.CYCLE,))


def test_a_told_shape_is_checked() -> None:
    """Further links are no matter, missing ones are."""
    torus = build("torus:3x4")
    assert grid_of_shape(torus, (3, 4)).lines == (Line.CYCLE, Line.CYCLE)
    assert grid_of_shape(build("mesh:3x4"), (3, 1, 4)).lines == (Line.PATH,) * 3
    assert grid_of_shape(build("complete:4"), (2, 2)).lines == (Line.PATH, Line.PATH)
    for shape, words in (((4, 3), "in dimension"), ((3, 3), "for 12 nodes"), ((), "no sides")):
        with pytest.raises(InputError, match=words):
            grid_of_shape(torus, shape)


def test_a_grid_is_whole() -> None:
    """Sides, kinds and nodes fit each other."""
    with pytest.raises(TopologyError, match="expected a kind for each side"):
        Grid((2, 2), (Line.PATH,), np.arange(4))
