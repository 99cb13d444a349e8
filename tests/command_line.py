"""Run the command line in this process, as a user would see it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from alltoall.cli.app import run as run_words
from alltoall.cli.compiling import MESSAGE


@dataclass(frozen=True)
class Outcome:
    """What a call printed and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it must be."""
        value: dict[str, Any] = json.loads(self.out)
        return value


Run = Callable[..., Outcome]


def without_compiling(said: str) -> str:
    """Return what was said on standard error as if every kernel had been compiled before."""
    return said.replace(f"{MESSAGE}\n", "")


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls alltoall with words."""

    def call(*words: object) -> Outcome:
        code = run_words([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, without_compiling(captured.err))

    return call
