"""One input of a fuzzer: files and the commands that are given them, and what no command may do."""

import base64
import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz_mutate import FORGED

from alltoall.cli.app import run

CODES = (0, 2, 3, 4, 5)
"""How a command may end: done, usage, invalid input, failed verification, missing component."""

OUT_OF_MEMORY = "not enough memory"
"""What the command line says where an allocation failed instead of being refused beforehand."""


class FuzzFailureError(Exception):
    """What went wrong with an input; `kind` is the column of the table that it is counted in."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


@dataclass(frozen=True)
class Case:
    """Files in an empty directory, and commands that run there one after the other.

    `code` is how every command has to end; None: in any of the ways that are allowed. `facts` is
    what the fuzzer that made the case needs for its own check.
    """

    commands: list[list[str]]
    files: dict[str, bytes] = field(default_factory=dict)
    code: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the case as it is saved in the corpus: readable where its files are."""
        value = {
            "commands": self.commands,
            "files": {name: _packed(data) for name, data in self.files.items()},
            "code": self.code,
            "facts": self.facts,
        }
        return (json.dumps(value, indent=1) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Case":
        """Return the case that was saved."""
        value = json.loads(data)
        files = {name: _unpacked(each) for name, each in value["files"].items()}
        return cls(value["commands"], files, value["code"], value["facts"])


def _packed(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpacked(value: dict[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["base64"])


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and how it ended."""

    words: list[str]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, parsed."""
        return json.loads(self.out)


@contextmanager
def directory_of(case: Case) -> Iterator[None]:
    """Work in a new directory that holds the files of a case, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="alltoall-fuzz-") as name, chdir(name):
        for path, data in case.files.items():
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_bytes(data)
        yield


def run_case(case: Case) -> list[Outcome]:
    """Run the commands of a case in this directory; every one has to behave."""
    outcomes = []
    for words in case.commands:
        outcome = call(words)
        require_manners(outcome)
        if case.code is not None and outcome.code != case.code:
            raise FuzzFailureError("wrong", f"{shown(words)} exits {outcome.code}: {outcome.err}")
        outcomes.append(outcome)
    return outcomes


def call(words: list[str]) -> Outcome:
    """Call the command line in this process; what is not raised on purpose comes through."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return Outcome(words, code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def require_manners(outcome: Outcome) -> None:
    """Hold a command to what is promised whatever it was given."""
    name = shown(outcome.words)
    if outcome.code not in CODES:
        raise FuzzFailureError("wrong", f"{name} exits {outcome.code}; expected one of {CODES}")
    if OUT_OF_MEMORY in outcome.err + outcome.out:
        raise FuzzFailureError("memory", f"{name}: {outcome.err}")
    if outcome.code and not outcome.err.strip():
        raise FuzzFailureError("wrong", f"{name} exits {outcome.code} without a word on stderr")
    if not (outcome.out + outcome.err).replace("\n", "").replace("\t", "").isprintable():
        raise FuzzFailureError("wrong", f"{name} prints control characters")
    if any(line.lstrip().startswith(FORGED.strip()) for line in _lines(outcome)):
        raise FuzzFailureError("wrong", f"{name} prints a line that a file made up")
    if "--json" in outcome.words and not {"--help", "-h"} & set(outcome.words):
        _require_json(outcome, name)


def _lines(outcome: Outcome) -> list[str]:
    return (outcome.out + outcome.err).splitlines()


def _require_json(outcome: Outcome, name: str) -> None:
    """With --json, standard output is one object, which says what failed if something did."""
    try:
        value = outcome.json
    except ValueError:
        raise FuzzFailureError("wrong", f"{name} prints no JSON: {outcome.out[:200]!r}") from None
    if not isinstance(value, dict):
        raise FuzzFailureError("wrong", f"{name} prints no JSON object: {outcome.out[:200]!r}")
    if outcome.code and value.get("error", {}).get("code") != outcome.code:
        raise FuzzFailureError("wrong", f"{name} exits {outcome.code} but prints {outcome.out!r}")


def shown(words: list[str]) -> str:
    """Return a command as a message shows it."""
    return os.fsencode(" ".join(["alltoall", *words])).decode("ascii", "backslashreplace")[:300]
