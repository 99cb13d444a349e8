"""Where an answer came from: saved beside it, read back, and never part of it."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.errors import FormatError
from alltoall.flows import solve
from alltoall.ir.answer import Answer
from alltoall.ir.files.artefacts import file_bytes
from alltoall.ir.flow import Flow
from alltoall.ir.noun import Provenance
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.loading import load
from alltoall.routes import route
from alltoall.topologies.formats import write_topology
from alltoall.topologies.operators import remove_links, scale_capacities
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

MADE = Provenance(
    "1.2", "alltoall solve ring:3", "link", 7, "highs", 1e-6, 0.5, "2026-01-02T03:04:05Z"
)
PROBLEM = Problem.all_to_all(build("ring:3"))
ANSWERS: list[Any] = [solve(PROBLEM), route(PROBLEM, "single"), hop_schedule(build("ring:3"))]
FORMS = pytest.mark.parametrize("name", ["answer.json", "answer.npz"])


@FORMS
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_saved_and_read_back(answer: Any, name: str, tmp_path: Path) -> None:
    """What is known comes back, and the answer is equal to one of which nothing is known."""
    made = replace(answer, provenance=MADE)
    made.save(tmp_path / name)
    found = load(tmp_path / name)
    assert isinstance(found, Answer)
    assert found.provenance == MADE
    assert found == made == answer
    assert hash(found) == hash(answer)


@FORMS
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_files_without_it_are_the_same_bytes(answer: Any, name: str, tmp_path: Path) -> None:
    """It can be left out, and then nothing tells from which run an answer is."""
    answer.save(tmp_path / name)
    expected = (tmp_path / name).read_bytes()
    replace(answer, provenance=MADE).save(tmp_path / name, provenance=False)
    assert (tmp_path / name).read_bytes() == expected
    assert load(tmp_path / name).provenance is None  # type: ignore[union-attr]


def test_it_is_a_block_of_its_own(tmp_path: Path) -> None:
    """Taken out of the JSON, what is left is the file without it."""
    path = tmp_path / "answer.json"
    replace(ANSWERS[0], provenance=MADE).save(path)
    value = json.loads(path.read_text())
    assert value.pop("provenance") == MADE.known()
    ANSWERS[0].save(path)
    assert json.loads(path.read_text()) == value


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (3, "provenance is 3; expected an object"),
        ({"seconds": "long"}, 'provenance.seconds is "long"; expected a number'),
        ({"seed": 1.5}, "provenance.seed is 1.5; expected an integer"),
        ({"command": ["alltoall"]}, "provenance.command is .*; expected a string"),
    ],
)
def test_what_is_no_provenance(block: object, words: str, tmp_path: Path) -> None:
    """A file from anywhere may say where it is from, but in the form that readers expect."""
    path = tmp_path / "answer.json"
    ANSWERS[0].save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"provenance": block}))
    with pytest.raises(FormatError, match=words):
        load(path)


def test_fields_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    """Whoever adds a field does not make files that others cannot read."""
    path = tmp_path / "answer.json"
    ANSWERS[0].save(path)
    more = {"provenance": {"version": "9", "weather": {"sun": True}}}
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    found = load(path)
    assert isinstance(found, Flow)
    assert found.provenance == Provenance(version="9")


@pytest.mark.parametrize("verb", [alltoall.solve, alltoall.route, alltoall.schedule])
def test_the_library_says_what_it_knows(verb: Any) -> None:
    """An answer of the library has the settings with which it was found."""
    made = verb("ring:3", gap=1e-4).provenance
    assert made.command == f"alltoall.{verb.__name__}"
    assert (made.gap, made.solver) == (1e-4, "auto")
    assert made.seconds >= 0


def test_a_topology_keeps_it_until_it_is_changed(tmp_path: Path) -> None:
    """It is in a file of a topology, but neither in one of an answer nor of another topology."""
    path, ring = tmp_path / "ring.json", build("ring:3")
    plain = file_bytes(path, ring)
    made = replace(ring, provenance=MADE)
    for write in (made.save, partial(write_topology, made)):
        write(path)
        found = load(path)
        assert isinstance(found, Topology)
        assert (found, found.provenance) == (ring, MADE)
        assert alltoall.verify(path).facts["provenance"] == MADE.known()
    made.save(path, provenance=False)
    assert path.read_bytes() == plain
    assert scale_capacities(made, 2).provenance is None
    assert remove_links(made, [(0, 1)]).provenance is None
    assert b"provenance" not in file_bytes(path, Problem.all_to_all(made))


def test_made_now() -> None:
    """Version and date are those of this moment; the rest is what the caller knows."""
    found = Provenance.of_now(method="link", seconds=0.1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.date or "")
    assert list(found.known()) == ["version", "method", "seconds", "date"]
    assert str(MADE) == "alltoall 1.2 on 2026-01-02T03:04:05Z: alltoall solve ring:3"
    assert str(Provenance()) == "an unknown version"
    assert "alltoall 1.2" in replace(ANSWERS[0], provenance=MADE)._repr_html_()


def test_the_version_needs_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that was copied and not installed has none; its answers are not lost."""
    monkeypatch.setattr("sys.meta_path", [])
    assert Provenance.of_now().version == alltoall.__version__
