"""Answers at a prompt: one line, a table for notebooks, and a DataFrame of their rows."""

from collections.abc import Callable
from typing import Any

import pytest

import alltoall

RING = "ring:4"

ANSWERS: dict[str, tuple[Callable[[], Any], int]] = {
    "topology": (lambda: alltoall.topology(RING), 8),
    "problem": (lambda: alltoall.problem(RING), 12),
    "solve": (lambda: alltoall.solve(RING), 0),
    "route": (lambda: alltoall.route(RING), 12),
    "schedule": (lambda: alltoall.schedule(RING, chunks=1), 0),
    "compare": (lambda: alltoall.compare(RING, ["sssp", "extp"]), 2),
    "failures": (lambda: alltoall.failures(alltoall.route(RING), only="0-1,2"), 2),
    "design": (lambda: alltoall.design(6, degree=2, time_limit=1), 0),
    "simulate": (lambda: alltoall.simulate(alltoall.schedule(RING), link_bandwidth="1G"), 1),
    "run": (lambda: alltoall.run(alltoall.schedule(RING), on="reference", bytes="1K:4K"), 3),
}
"""Calls of every verb that gives a table, and the number of its rows, 0 if several are as good."""


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_small_at_a_prompt(name: str) -> None:
    """It is one short line; a notebook shows a table, and pandas has every row."""
    call, count = ANSWERS[name]
    answer = call()
    assert len(repr(answer)) < 200
    assert repr(answer).isprintable()
    assert "<table" in answer._repr_html_()
    frame = answer.to_frame()
    assert len(frame) == count if count else len(frame) > 0
    assert not frame.columns.has_duplicates


def test_files_and_pages_are_not_printed() -> None:
    """A prompt shows their names and sizes."""
    lowered = alltoall.lower(alltoall.schedule(RING), "msccl")
    assert repr(lowered) == "<LoweredFiles of msccl: alltoall.msccl.xml>"
    assert len(repr(alltoall.report(alltoall.solve(RING)))) < 100


def test_parts_of_a_row_are_columns() -> None:
    """The times of a run are within its rows."""
    frame = alltoall.run(alltoall.schedule(RING), on="reference", bytes=1024).to_frame()
    assert {"bytes", "ours_mean", "ours_most"} <= set(frame.columns)
    assert frame["ours_least"][0] <= frame["ours_most"][0]


def test_the_package_has_few_names() -> None:
    """At most forty, so that it fits in the head."""
    assert len(alltoall.__all__) <= 40
