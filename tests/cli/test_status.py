"""One status, one meaning: in text, in JSON, in files and in pages, for every verb and method."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall import Status
from alltoall.flows import METHODS
from alltoall.ir.answer import Certificate
from alltoall.ir.words import PROVEN, status_in_words
from alltoall.routes import ROUTERS
from command_line import Run

SPEC = "genkautz:n=6,d=2"
"""Its optimum is no whole number, and baselines do not reach it."""

CHOOSY = ("dor", "updown")
"""Methods that need a grid, or links in both directions."""

CALLS = [
    *(("solve", SPEC, "--method", method) for method in METHODS.known),
    *(("route", SPEC, "--method", method) for method in ROUTERS.known if method not in CHOOSY),
    *(("route", "torus:3x3", "--method", method) for method in CHOOSY),
    ("schedule", SPEC),
    ("schedule", SPEC, "--chunks", "1"),
    ("schedule", SPEC, "--method", "list"),
]


def check(found: dict[str, Any], asked: float) -> None:
    """Raise unless the status is what the certified gap says."""
    if found["gap"] <= PROVEN:
        assert found["status"] == "optimal"
    elif found["gap"] <= asked:
        assert found["status"] == "within_gap"
    else:
        assert found["status"] in ("gap_not_reached", "time_limit", "interrupted")


@pytest.mark.parametrize("gap", [1e-6, 0.9])
@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_text_and_json_say_the_same(run: Run, words: tuple[str, ...], gap: float) -> None:
    """The words of the text are those of the status, and both are proven by the gap."""
    found = run(*words, "--gap", gap, "--json").json
    check(found, gap)
    said = run(*words, "--gap", gap).out
    assert ("the proven minimum" in said) == (found["status"] == "optimal")
    assert ("within the gap asked for" in said) == (found["status"] == "within_gap")


def test_what_is_within_the_gap_is_not_called_optimal(run: Run, tmp_path: Path) -> None:
    """Neither by the verb, nor by the file, nor in a notebook."""
    path = tmp_path / "flow.json"
    words = ("solve", "jellyfish:n=40,d=4,seed=1", "--method", "first-order", "--gap", 0.05)
    found = run(*words, "-o", path, "--json").json
    assert PROVEN < found["gap"] <= 0.05
    assert found["status"] == json.loads(path.read_text())["status"] == "within_gap"
    assert "optimal" not in run("solve", *words[1:]).out
    flow = alltoall.load(path)
    assert isinstance(flow, alltoall.Flow)
    assert "within the gap asked for" in repr(flow._repr_html_())


def test_a_flow_is_optimal_only_if_its_certificate_proves_it() -> None:
    """Whatever a method, a file or a caller claims, and as soon as a better proof comes."""
    flow = alltoall.solve("torus:3x3")
    assert flow.status is Status.OPTIMAL
    weaker = Certificate(flow.certificate.lengths, flow.bound * 0.9)
    claimed = replace(flow, certificate=weaker, status=Status.OPTIMAL)
    assert claimed.status is Status.WITHIN_GAP
    assert replace(claimed, certificate=flow.certificate).status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("gap", "otherwise", "expected"),
    [
        (-1e-16, Status.GAP_NOT_REACHED, Status.OPTIMAL),
        (0.0, Status.TIME_LIMIT, Status.OPTIMAL),
        (PROVEN, Status.GAP_NOT_REACHED, Status.OPTIMAL),
        (2 * PROVEN, Status.INTERRUPTED, Status.WITHIN_GAP),
        (0.1, Status.TIME_LIMIT, Status.WITHIN_GAP),
        (0.11, Status.TIME_LIMIT, Status.TIME_LIMIT),
        (0.11, Status.OPTIMAL, Status.GAP_NOT_REACHED),
        (0.11, Status.WITHIN_GAP, Status.GAP_NOT_REACHED),
        (float("inf"), Status.INTERRUPTED, Status.INTERRUPTED),
    ],
)
def test_the_gap_decides(gap: float, otherwise: Status, expected: Status) -> None:
    """With a gap of 0.1 asked for; less than rounding may be asked for too."""
    assert Status.of_gap(gap, 0.1, otherwise) is expected
    assert Status.of_gap(1e-10, 1e-12, Status.INTERRUPTED) is Status.INTERRUPTED


def test_every_status_has_words_of_its_own() -> None:
    """So text and JSON map one to one."""
    assert len({status_in_words(each) for each in Status}) == len(Status)
