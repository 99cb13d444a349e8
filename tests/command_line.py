"""Run the command line in this process, as a user would see it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from alltoall.cli.app import run as run_words


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


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls alltoall with words."""

    def call(*words: object) -> Outcome:
        code = run_words([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
