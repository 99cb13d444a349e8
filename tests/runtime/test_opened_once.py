"""A command opens and parses its file once, and an answer passed from Python is not saved."""

import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.ir.files import artefacts
from alltoall.ir.files.json.saved_answers import answer_from_json
from alltoall.runtime import launch
from alltoall.runtime.bench import Report
from alltoall.testbed import public as testbed

NAME = "opened_once.schedule.json"
OPENED: list[str] = []
sys.addaudithook(
    lambda event, given: (
        OPENED.append(str(given[0]))
        if event == "open" and str(given[0]).endswith(NAME) and "r" in str(given[1])
        else None
    )
)

SCHEDULE = alltoall.schedule("ring:4")


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count parsed schedules; start no ranks, and make no fabric."""
    found: list[str] = []

    def counted(read: Callable[..., Any]) -> Callable[..., Any]:
        def parse(value: object, where: str) -> Any:
            found.append(where)
            return read(value, where)

        return parse

    readers = {key: counted(read) for key, read in artefacts._FROM_JSON.items()}
    monkeypatch.setattr(artefacts, "_FROM_JSON", readers)
    monkeypatch.setattr(artefacts, "answer_from_json", counted(answer_from_json))
    monkeypatch.setattr(
        launch, "run_ranks", lambda *_: Report("none", None, 4, False, (), ()).to_json()
    )
    monkeypatch.setattr(testbed, "bed_for", lambda *_: nullcontext())
    monkeypatch.setattr(testbed, "require_same", lambda *_: None)
    monkeypatch.setattr(testbed, "require_paths", lambda *_: None)
    monkeypatch.setattr(testbed, "run_on_bed", lambda _bed, work, *_: work)
    OPENED.clear()
    return found


@pytest.mark.parametrize("on", ["reference", "testbed"])
def test_a_file_is_opened_and_parsed_once(on: str, parsed: list[str], tmp_path: Path) -> None:
    """By whichever runtime."""
    path = tmp_path / NAME
    SCHEDULE.save(path)
    OPENED.clear()
    alltoall.run(path, on=on)
    assert (len(OPENED), len(parsed)) == (1, 1)


@pytest.mark.parametrize("on", ["reference", "testbed"])
def test_an_answer_is_passed_on(
    on: str, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither saved nor read again."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a scratch directory")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    alltoall.run(SCHEDULE, on=on)
    assert parsed == []
