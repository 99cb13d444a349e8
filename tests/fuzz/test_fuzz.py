"""Some fuzzing with fixed seeds, and every input that has ever failed."""

from pathlib import Path

import pytest
from fuzz_case import Case
from fuzz_drive import drive
from fuzz_table import FUZZERS, case_of

CORPUS = Path(__file__).parent / "corpus"
SAVED = sorted(CORPUS.rglob("*.json"))
INPUTS = {"files": 250, "words": 80, "problems": 14, "scales": 20, "cables": 60, "calls": 60}
"""Inputs of each fuzzer: about six seconds of one core; `make fuzz` is for more."""

SEED = 1


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    """No traceback, no crash, no hang, no memory beyond 2 GiB, no wrong answer."""
    tally = drive(name, SEED, tmp_path, inputs=INPUTS[name])
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.inputs == INPUTS[name]


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_once_failed_does_not_fail_again(path: Path) -> None:
    """Replay a saved input with the check of its fuzzer."""
    FUZZERS[path.parent.name].check(Case.from_bytes(path.read_bytes()))


@pytest.mark.parametrize("name", FUZZERS)
def test_same_seed_same_input(name: str) -> None:
    """A seed and an index are enough to come back to an input, and a saved one is the same."""
    case = case_of(name, 1, 2)
    assert case == case_of(name, 1, 2) == Case.from_bytes(case.to_bytes())
