"""Chunks of every pair: how many, where they lie, and what files say of them."""

from typing import Any

import numpy as np
import pytest

from alltoall.check.schedule import check_schedule
from alltoall.errors import AlltoallError, InputError
from alltoall.ir.chunks import Chunks, chunks_of
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json, format_name
from alltoall.ir.files.npz import artefact_from_bytes, artefact_to_bytes
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule, uneven_hops

COUNTS = np.array([[0, 3, 0], [1, 0, 2], [0, 5, 0]])
DEMAND = np.array([[0, 1.5, 0], [0.25, 0, 1.0], [0, 2.0, 0]])


def uneven() -> Schedule:
    """Return a schedule in which chunks of two pairs differ in number and size."""
    problem = Problem(build("ring:3"), Demand(3, DEMAND))
    return uneven_hops(problem, Chunks(3, counts=COUNTS))


def test_offsets_are_the_chunks_before() -> None:
    """By destination in an input, by source in an output, whatever the counts."""
    for chunks in (Chunks(3, counts=COUNTS), Chunks(3, 4), Chunks(3, 2).times(2)):
        counts = chunks.of(*np.indices((3, 3)))
        for source in range(3):
            for destination in range(3):
                ends = (np.array(source), np.array(destination))
                assert chunks.in_input(*ends) == counts[source, :destination].sum()
                assert chunks.in_output(*ends) == counts[:source, destination].sum()
        assert chunks.inputs().tolist() == counts.sum(axis=1).tolist()
        assert chunks.outputs().tolist() == counts.sum(axis=0).tolist()
        assert chunks.total == counts.sum() - np.trace(counts)
        assert chunks.most == counts.max()


def test_chunks_of_a_demand_are_about_equal() -> None:
    """As many as the demand times the number for one shard, at least one, and none of nothing."""
    assert chunks_of(np.array([0.0, 0.01, 1.0, 2.6]), 2).tolist() == [0, 1, 2, 5]
    assert Chunks.of_demand(Demand(3), 4).per_shard == 4
    found = Chunks.of_demand(Demand(3, DEMAND), 2)
    assert found.counts is not None
    assert found.counts.tolist() == [[0, 3, 0], [1, 0, 2], [0, 4, 0]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "not both"),
        ({"per_shard": 1, "counts": COUNTS}, "not both"),
        ({"per_shard": 0}, "0 chunks per shard; expected at least one chunk of"),
        ({"per_shard": 2**63}, "9223372036854775808 of one shard; expected 0 to"),
        ({"counts": -COUNTS}, "-5 of one shard; expected 0 to"),
        ({"counts": COUNTS[:2]}, r"shape \(2, 3\); expected 3 rows"),
        ({"counts": 0 * COUNTS}, "0 chunks per shard"),
    ],
)
def test_what_are_no_chunks(arguments: dict[str, Any], problem: str) -> None:
    """Neither nor, both, too few, too many, and of another size."""
    with pytest.raises(InputError, match=problem):
        Chunks(3, **arguments)


def test_a_chunk_is_its_demand_over_its_count() -> None:
    """Whatever the counts; the time follows, also that of the checker."""
    schedule = uneven()
    size = {(s, d): DEMAND[s, d] / COUNTS[s, d] for s, d in np.argwhere(COUNTS).tolist()}
    pairs = zip(schedule.source.tolist(), schedule.destination.tolist(), strict=True)
    assert schedule.sizes().tolist() == [size[pair] for pair in pairs]
    assert check_schedule(schedule).time == schedule.time == 2.0
    assert schedule.chunks_per_shard == round(11 / 4.75)


def test_uneven_schedules_are_saved_as_such() -> None:
    """As alltoall.schedule/2 with the count of each pair, in both forms, and nothing is lost."""
    schedule = uneven()
    value = answer_to_json(schedule)
    assert value["format"] == format_name(schedule) == "alltoall.schedule/2"
    assert value["chunks"] == [[0, 1, 3], [1, 0, 1], [1, 2, 2], [2, 1, 5]]
    assert "chunks_per_shard" not in value
    for again in (
        answer_from_json(value, "file"),
        artefact_from_bytes(artefact_to_bytes(schedule), "file"),
    ):
        assert isinstance(again, Schedule)
        assert again.chunk_counts().tolist() == COUNTS.tolist()
        assert answer_to_json(again) == value


def test_even_schedules_are_saved_as_before() -> None:
    """As alltoall.schedule/1, which older versions read."""
    value = answer_to_json(hop_schedule(build("ring:3"), 2))
    assert (value["format"], value["chunks_per_shard"]) == ("alltoall.schedule/1", 2)
    assert "chunks" not in value


def test_older_files_of_uneven_demand_still_load() -> None:
    """They have the number of chunks of a shard of size 1, from which those of each follow."""
    problem = Problem(build("ring:3"), Demand(3, DEMAND))
    value = answer_to_json(uneven_hops(problem, Chunks.of_demand(problem.demand, 2)))
    del value["chunks"]
    older = value | {"format": "alltoall.schedule/1", "chunks_per_shard": 2}
    found = answer_from_json(older, "file")
    assert found.chunk_counts().tolist() == [[0, 3, 0], [1, 0, 2], [0, 4, 0]]
    assert check_schedule(found).time == 2.0


@pytest.mark.parametrize(
    ("chunks", "problem"),
    [
        (None, "chunks is missing; expected an array"),
        ([], "0 chunks per shard; expected at least one"),
        ([[0, 1]], r"chunks\[0\] is \[0, 1\]; expected \[src, dst, count\]"),
        ([[0, 1, 1.5]], r"chunks\[0\] is \[0, 1, 1.5\]; expected"),
        ([[0, 1, 2], [0, 1, 2]], r"shard 1: 2 chunks .* each pair once"),
        ([[0, 3, 2]], r"chunks\[0\] is \[0, 3, 2\]; expected terminals"),
        ([[0, 1, 0]], "at least one chunk"),
        ([[0, 1, 3], [1, 0, 1], [1, 2, 2]], "0 chunks from node 2 to node 1, with a demand of 2"),
        ([[0, 1, 3], [1, 0, 1], [1, 2, 2], [2, 1, 5], [0, 0, 1]], "1 chunks from node 0 to node 0"),
        ([[0, 1, 1], [1, 0, 1], [1, 2, 2], [2, 1, 5]], "chunk 1 of a shard with 1 chunks"),
    ],
)
def test_counts_that_do_not_fit(chunks: Any, problem: str) -> None:
    """Rows of another shape, and pairs that have a demand and no chunks, or the reverse."""
    value = answer_to_json(uneven()) | {"chunks": chunks}
    with pytest.raises(AlltoallError, match=problem):
        answer_from_json(value, "file")
