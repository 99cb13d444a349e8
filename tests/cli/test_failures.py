"""Failures in the words of the command line: the output is blamed for its own failures only."""

import errno
from pathlib import Path

import pytest

import alltoall
from alltoall.cli.show import described, writing_output
from alltoall.errors import AlltoallError, UsageError
from command_line import Run


def wrapped(cause: BaseException) -> BaseException:
    """Return a failure to import, as libraries raise it about a cause."""
    error = ImportError("Please read these pages.\nMany lines of advice.")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (TimeoutError(), 3, "the time limit came before any answer; allow more time"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 3, "not enough memory"),
        (OSError("no libhighs.so"), 5, "needed: no libhighs.so; check the installation"),
        (ImportError("failed to map segment"), 5, "needed: failed to map segment; check the"),
        (wrapped(ImportError("failed to map")), 5, "needed: failed to map; check the installation"),
        (OSError(errno.EMFILE, "Too many open files"), 5, "Too many open files; check the"),
        (PermissionError(errno.EACCES, "Permission denied", "lib"), 5, "denied: 'lib'; check the"),
    ],
)
def test_a_failure_of_the_system(
    error: Exception, code: int, words: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that fails outside of writing is said to be the output's."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("alltoall.flows.public.find_flow", fail)
    found = run("solve", "ring:4", "--json")
    assert found.code == found.json["error"]["code"] == code
    assert words in found.json["error"]["message"]
    assert found.err == f"error: {found.json['error']['message']}\n"
    assert "output" not in found.err


def test_a_failure_of_the_output() -> None:
    """It is said to be one, unless whoever read it has gone."""
    with pytest.raises(UsageError, match="output cannot be written: No space left"):  # noqa: SIM117
        with writing_output(), Path("/dev/full").open("w") as full:
            full.write("an answer")
    with pytest.raises(BrokenPipeError), writing_output():
        raise BrokenPipeError
    assert described(UsageError("x")) == {"code": 2, "message": "x"}


def test_every_error_has_a_documented_exit_code() -> None:
    """The base has none of those, and is not raised; `docs/concepts.md` lists the codes."""
    package = Path(alltoall.__file__).parent
    raised = [path for path in package.rglob("*.py") if "raise AlltoallError" in path.read_text()]
    assert raised == []
    table = (Path(__file__).parents[2] / "docs/concepts.md").read_text()
    for kind in AlltoallError.__subclasses__():
        assert f"\n| {kind.exit_code} | " in table
