"""The distributed transform: slabs, steps, and a checker that notices whatever is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_ranks import Hub, ThreadExchange, ThreadRanks, on_threads

from alltoall.errors import UsageError
from alltoall.workloads.fft3d import BANDS, Transform, needed_bytes, transform
from alltoall.workloads.ranks import Turns, Way
from alltoall.workloads.spectrum import (
    ITEM_BYTES,
    MAX_SIDE,
    TOLERANCE,
    Complex,
    Pencils,
    Truth,
    parse_grid,
    parse_pencils,
    planes,
    shape_of,
)

TURNS = Turns(iterations=2, warmup=1)
CALLS = 1 + 3 + 1
"""Exchanges of a way: checked, timed with warm-up, and checked again."""


def transformed(
    grid: tuple[int, int, int], size: int, gathered: int = 10**6, **wrong: int
) -> dict[str, Any]:
    """Transform by two ways, of which the second may be made to lie; return what rank 0 says."""
    parameters = {"grid": grid, "seed": 5, "gathered_points": gathered}

    def program(ranks: ThreadRanks) -> dict[str, Any]:
        ways = [
            Way("library", [ThreadExchange(ranks)]),
            Way("schedule", [ThreadExchange(ranks, **wrong)]),
        ]
        return transform(ranks, ways, parameters, TURNS)

    first, *others = on_threads(size, program)
    assert all(each == first for each in others)
    return dict(first)


@pytest.mark.parametrize("gathered", [10**6, 0], ids=["fftn", "sums"])
@pytest.mark.parametrize(
    ("grid", "size"),
    [((8, 8, 8), 4), ((10, 9, 7), 4), ((4, 5, 1), 4), ((7, 3, 5), 2), ((3, 2, 4), 1)],
)
def test_transforms_are_right(grid: tuple[int, int, int], size: int, gathered: int) -> None:
    """Of grids that divide by the ranks and of others, as both ways of checking find."""
    found = transformed(grid, size, gathered)
    assert found["violations"] == []
    assert found["checked"] == ("fftn" if gathered else "sums")
    assert [row["way"] for row in found["rows"]] == ["library", "schedule"]
    for row in found["rows"]:
        assert 0 <= row["error"] < TOLERANCE
        assert min(row[band] for band in ("seconds", *BANDS)) >= 0


def test_ranks_have_their_part_of_what_numpy_computes() -> None:
    """Held against `fftn` here, without anything of the workload's own checker."""
    grid, size = (10, 9, 7), 4
    slabs = Pencils(grid, size)

    def program(ranks: ThreadRanks) -> Complex:
        here = Transform(ranks, slabs, seed=3)
        for _, step in here.steps([ThreadExchange(ranks)]):
            step()
        return here.result

    parts = on_threads(size, program)
    assert [part.shape for part in parts] == [(10, 3, 7), (10, 2, 7), (10, 2, 7), (10, 2, 7)]
    expected = np.fft.fftn(planes(grid, 3, Pencils(grid, 1).before(0)))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), expected, atol=1e-12)


@pytest.mark.parametrize("call", [0, CALLS - 1], ids=["first", "last"])
@pytest.mark.parametrize("gathered", [10**6, 0], ids=["fftn", "sums"])
def test_a_wrong_byte_is_noticed(gathered: int, call: int) -> None:
    """The sign of one number, in the first call or in the last: three checks tell of it."""
    found = transformed((10, 9, 7), 4, gathered, wrong_call=call, wrong_byte=ITEM_BYTES * 20 + 7)
    told = found["violations"]
    assert "at rank 1 from rank 0 are not those that were sent" in told[0]
    assert any("by schedule: the transform is off by" in each for each in told)
    assert any("rank 1 has another result than by the first way" in each for each in told)
    assert not any("by library" in each for each in told)
    assert bool(found["rows"]) == (call > 0)


def test_a_wrong_bit_that_no_tolerance_sees_is_noticed() -> None:
    """The last bit of one number: a checksum sees it, whatever the numbers say."""
    found = transformed((8, 8, 8), 4, wrong_call=0, wrong_byte=16, flip=1)
    assert "are not those that were sent" in found["violations"][0]
    assert not any("off by" in each for each in found["violations"])


def test_a_shard_that_never_came_is_noticed() -> None:
    """What nobody has written to is not a number."""

    class Lazy(ThreadExchange):
        def exchange(self, send: Any, recv: Any, shard: Any) -> None:
            before = recv.copy()
            super().exchange(send, recv, shard)
            if self.ranks.rank == 2:
                recv[:16] = before[:16]

    def program(ranks: ThreadRanks) -> dict[str, Any]:
        parameters = {"grid": (4, 4, 4), "seed": 0, "gathered_points": 0}
        with np.errstate(invalid="ignore"):
            return transform(ranks, [Way("lazy", [Lazy(ranks)])], parameters, TURNS)

    told = on_threads(4, program)[0]["violations"]
    assert "at rank 2 from rank 0" in told[0]
    assert "off by nan" in told[1]


def _negative(result: Complex) -> None:
    result[3, 2, 1] *= -1


def _exchanged(result: Complex) -> None:
    result[:, [1, 2]] = result[:, [2, 1]]


def _conjugate(result: Complex) -> None:
    result[...] = result.conj()


def _millionth(result: Complex) -> None:
    result[0, 0, 0] *= 1 + 1e-6


@pytest.mark.parametrize("gathered", [10**6, 0], ids=["fftn", "sums"])
@pytest.mark.parametrize("spoil", [_negative, _exchanged, _conjugate, _millionth])
def test_wrong_results_are_noticed(spoil: Callable[[Complex], None], gathered: int) -> None:
    """By the comparison of all points, and by the sums alone; three have the right energy."""
    grid, ranks = (6, 5, 4), ThreadRanks(Hub(1), 0)
    given_planes = planes(grid, 1, Pencils(grid, 1).before(0))
    result = np.fft.fftn(given_planes)
    truth = Truth(ranks, Pencils(grid, 1), given_planes, 1, gathered)
    assert truth.compare(result, "it", again=False)[1] == []
    spoil(result)
    error, told = truth.compare(result, "it", again=False)
    assert error > TOLERANCE
    assert "it: the transform is off by" in told[0]
    assert "bit for bit" in told[1]


def test_numbers_of_the_grid_do_not_depend_on_the_ranks() -> None:
    """Each plane has its own, and another seed has others."""
    box = Pencils((5, 3, 2), 1).before(0)
    whole = planes((5, 3, 2), 7, box)
    part = (slice(2, 4), slice(1, 3), slice(0, 2))
    np.testing.assert_array_equal(whole[part], planes((5, 3, 2), 7, part))
    assert not np.any(whole == planes((5, 3, 2), 8, box))
    assert len(np.unique(whole)) == whole.size


@given(st.integers(1, 12), st.integers(12, 40), st.integers(12, 40), st.integers(1, 9))
def test_slabs_are_those_of_array_split(ranks: int, x: int, y: int, z: int) -> None:
    """Every plane is at one rank, and shards have all bytes of the grid."""
    slabs = Pencils((x, y, z), ranks)
    split = [len(part) for part in np.array_split(np.arange(x), ranks)]
    assert [shape_of(slabs.before(rank))[0] for rank in range(ranks)] == split
    split = [len(part) for part in np.array_split(np.arange(y), ranks)]
    assert [shape_of(slabs.after(rank))[1] for rank in range(ranks)] == split
    shard = slabs.shard()
    assert shard.stored == x * y * z * ITEM_BYTES
    assert shard.uniform == slabs.even == (x % ranks == 0 and y % ranks == 0)
    sent = [int(np.prod(shape_of(slabs.before(rank)))) * ITEM_BYTES for rank in range(ranks)]
    assert shard.inputs().tolist() == sent


@pytest.mark.parametrize("gathered", [10**6, 0], ids=["fftn", "sums"])
@pytest.mark.parametrize(
    ("grid", "pencils"), [((8, 8, 8), (2, 3)), ((7, 5, 6), (3, 2)), ((4, 4, 4), (2, 2))]
)
def test_pencils_are_right_beside_slabs(
    grid: tuple[int, int, int], pencils: tuple[int, int], gathered: int
) -> None:
    """Exchanges in rows and in columns; one number that is wrong in either is noticed."""
    size = pencils[0] * pencils[1]
    parameters = {"grid": grid, "seed": 5, "gathered_points": gathered, "pencils": pencils}

    def found(wrong: int) -> dict[str, Any]:
        def program(ranks: ThreadRanks) -> dict[str, Any]:
            both = [
                ThreadExchange(ranks, wrong_call=0 if each == wrong else -1, wrong_byte=7)
                for each in range(2)
            ]
            ways = [Way("pencils", both)]
            if size <= min(grid[:2]):
                ways.append(Way("slabs", [ThreadExchange(ranks)]))
            return transform(ranks, ways, parameters, TURNS)

        return dict(on_threads(size, program)[0])

    right = found(-1)
    assert right["violations"] == []
    assert right["checked"] == ("fftn" if gathered else "sums")
    assert [row["way"] for row in right["rows"]] == ["pencils", "slabs"][: len(right["rows"])]
    for row in right["rows"]:
        assert 0 <= row["error"] < TOLERANCE
        parts = row["compute"] + row["pack"] + row["alltoall"]
        assert parts == pytest.approx(row["seconds"], rel=0.9)
    for wrong in range(2):
        told = found(wrong)["violations"]
        assert "are not those that were sent" in told[0]
        assert any("by pencils: the transform is off by" in each for each in told)


def test_pencils_have_their_part_of_what_numpy_computes() -> None:
    """Held against `fftn` here, without anything of the workload's own checker."""
    grid, cut = (10, 9, 7), Pencils((10, 9, 7), 3, 2)

    def program(ranks: ThreadRanks) -> Complex:
        here = Transform(ranks, cut, seed=3)
        for _, step in here.steps([ThreadExchange(ranks), ThreadExchange(ranks)]):
            step()
        return here.result

    expected = np.fft.fftn(planes(grid, 3, Pencils(grid, 1).before(0)))
    for rank, part in enumerate(on_threads(6, program)):
        np.testing.assert_allclose(part, expected[cut.after(rank)], atol=1e-12)


@given(st.integers(2, 4), st.integers(2, 4), st.integers(4, 9), st.integers(4, 9))
def test_pencils_send_all_that_they_have(rows: int, columns: int, x: int, z: int) -> None:
    """To ranks of their row first, then of their column."""
    cut = Pencils((x, 7, z), rows, columns)
    shards = (cut.row_shard(), cut.before, cut.between), (cut.shard(), cut.between, cut.after)
    for shard, before, after in shards:
        for rank in range(cut.ranks):
            volumes = [int(np.prod(shape_of(each(rank)))) * ITEM_BYTES for each in (before, after)]
            assert [shard.inputs()[rank], shard.outputs()[rank]] == volumes
    row, column = (np.argwhere(np.array(shard.counts)) for shard, _, _ in shards)
    assert np.array_equal(row[:, 0] // columns, row[:, 1] // columns)
    assert np.array_equal(column[:, 0] % columns, column[:, 1] % columns)


def test_pencils_in_words() -> None:
    """Rows and columns; one column is slabs."""
    assert parse_pencils("4x8") == parse_pencils((4, 8)) == (4, 8)
    for wrong in ("4", "4x1", "2x2x2", "axb"):
        with pytest.raises(UsageError, match="expected rows and columns of ranks, such as 4x8"):
            parse_pencils(wrong)
    with pytest.raises(UsageError, match="pencils 4x4 for a grid of 8x3x8; expected at most 3x3"):
        Pencils((8, 3, 8), 4, 4)


def test_grids_in_words() -> None:
    """A side, three sides, or numbers."""
    assert parse_grid("216") == parse_grid(216) == (216, 216, 216)
    assert parse_grid("10x9x7") == parse_grid((10, 9, 7)) == (10, 9, 7)


@pytest.mark.parametrize(
    "text",
    ["", "0", "3x3", "3x3x3x3", "-4", "8x0x8", "axb", "1.5", "99999999", f"{MAX_SIDE}", 0, (2, 3)],
)
def test_what_is_no_grid_is_refused(text: Any) -> None:
    """Before anything is made of it."""
    with pytest.raises(UsageError, match=r"expected a side such as 64"):
        parse_grid(text)


def test_more_ranks_than_planes_are_refused() -> None:
    """Every rank has at least a plane, before and after."""
    for grid in ((3, 8, 8), (8, 3, 8)):
        with pytest.raises(UsageError, match=r"4 ranks for a grid of .* expected at most 3"):
            Pencils(grid, 4)
    assert Pencils((4, 4, 1), 4).points == 16


def test_memory_grows_with_the_grid() -> None:
    """What is gathered needs room, too."""
    slabs = Pencils((8, 8, 8), 4)
    assert needed_bytes(slabs, 0) >= 4 * 512 * ITEM_BYTES
    assert needed_bytes(slabs, 512) > needed_bytes(slabs, 511)
