"""The noun `Paths`: what all that make and read paths rely on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import InputError
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes import route
from alltoall.topologies.spec import build

FOUR = Paths(
    source=np.array([1, 0, 1, 0]),
    destination=np.array([2, 1, 2, 1]),
    start=np.array([0, 2, 3, 5, 7]),
    link=np.array([4, 5, 3, 4, 5, 3, 6]),
)
"""Of which the first and the third are equal, and the last begins like the second."""


def as_lists(paths: Paths) -> list[list[int]]:
    """Return the links of every path."""
    return [part.tolist() for part in np.split(paths.link, paths.start[1:-1])]


@st.composite
def some_paths(draw: st.DrawFn) -> Paths:
    """Draw up to eight paths between three terminals over six links."""
    link = st.integers(0, 5)
    ways = draw(st.lists(st.lists(link, min_size=1, max_size=4), min_size=1, max_size=8))
    ends = st.lists(st.integers(0, 2), min_size=len(ways), max_size=len(ways))
    start = np.cumsum([0, *map(len, ways)])
    return Paths(np.array(draw(ends)), np.array(draw(ends)), start, np.concatenate(ways))


def test_equal_paths_are_merged_and_their_weights_added() -> None:
    """Ordered by pair, then by links; a path that begins like another is not equal to it."""
    merged, weight = FOUR.merge_equal(np.array([1.0, 2.0, 4.0, 8.0]))
    assert merged.source.tolist() == [0, 0, 1]
    assert merged.start.tolist() == [0, 1, 3, 5]
    assert merged.link.tolist() == [3, 3, 6, 4, 5]
    assert weight.tolist() == [2.0, 8.0, 5.0]


def test_paths_with_different_labels_are_not_equal() -> None:
    """As routes in different layers are not; labels come before links in the order."""
    first, same = FOUR.equal(np.array([1, 1, 0, 0]))
    assert first.tolist() == [3, 1, 2, 0]
    assert same.tolist() == [3, 1, 2, 0]


@given(paths=some_paths())
def test_a_table_holds_all_of_a_set_of_paths(paths: Paths) -> None:
    """There and back, with room to spare and without; a narrow table is no less."""
    for table in (paths.table(), paths.table(9), paths.table().astype(np.int32)):
        again = Paths.from_table(paths.source, paths.destination, table)
        assert as_lists(again) == as_lists(paths)
        assert again.source.tolist() == paths.source.tolist()
    assert (paths.table(9)[:, 4:] == NOTHING).all()


@given(paths=some_paths(), other=some_paths(), data=st.data())
def test_joined_and_selected_paths_are_the_same_ones(
    paths: Paths, other: Paths, data: st.DataObject
) -> None:
    """Whatever is selected of a join, in whatever order, has the links and ends that it had."""
    joined = Paths.join([paths, other])
    assert as_lists(joined) == as_lists(paths) + as_lists(other)
    which = np.array(data.draw(st.lists(st.integers(0, joined.count - 1), min_size=1)))
    some = joined.select(which)
    assert as_lists(some) == [as_lists(joined)[each] for each in which]
    assert some.pair(3).tolist() == joined.pair(3)[which].tolist()
    assert some.keys().shape == (len(which), 2 + int(some.hops.max()))


@given(paths=some_paths())
def test_merging_changes_no_load(paths: Paths) -> None:
    """And a load is what a loop over the links of all paths adds up."""
    weight = np.arange(1.0, paths.count + 1)
    expected = np.zeros(6)
    for path, links in enumerate(as_lists(paths)):
        for link in links:
            expected[link] += weight[path]
    merged, total = paths.merge_equal(weight)
    assert paths.load(weight, 6).tolist() == expected.tolist()
    assert merged.load(total, 6) == pytest.approx(expected)


def test_paths_cannot_be_changed() -> None:
    """Neither through their own arrays nor through those that they were made of."""
    link = np.array([0])
    paths = Paths(np.array([0]), np.array([1]), np.array([0, 1]), link)
    link[0] = 7
    assert paths.link.tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        paths.link[0] = 1


@pytest.mark.parametrize(
    ("destination", "start"), [([1, 1], [0, 1]), ([1], [0, 2]), ([1], [1, 1]), ([1], [0])]
)
def test_arrays_that_are_no_paths_are_refused(destination: list[int], start: list[int]) -> None:
    """Ends, starts and links have to fit together, and a path without links leads nowhere."""
    with pytest.raises(InputError, match="arrays of the paths do not fit together"):
        Paths(np.array([0]), np.array(destination), np.array(start), np.array([0]))


def test_selected_routes_keep_weights_and_layers() -> None:
    """Routes are paths, and what is selected of them are routes."""
    routes = route(Problem.all_to_all(build("ring:4")), "ecmp")
    layered = replace(routes, layer=np.arange(routes.count))
    some = layered.select(np.array([5, 2]))
    assert isinstance(some, Routes)
    assert some.layer is not None
    assert some.layer.tolist() == [5, 2]
    assert some.weight.tolist() == routes.weight[[5, 2]].tolist()
    assert as_lists(some) == [as_lists(routes)[each] for each in (5, 2)]
