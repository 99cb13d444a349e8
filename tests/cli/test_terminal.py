"""What a terminal sees: colours and a bar; what a pipe sees: neither."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from alltoall.cli.show import columns
from alltoall.ir.words import ProgressMessage

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

WORDS = ("topology", "torus:3x3")


def _on_terminal(*words: str, extra: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Run alltoall with both outputs on a terminal; return what that got, and the exit code."""
    ours, theirs = pty.openpty()
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "CI")}
    with subprocess.Popen(
        [sys.executable, "-m", "alltoall", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**plain, "TERM": "xterm", "COLUMNS": "120", **(extra or {})},
    ) as child:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # How Linux says that the other end is closed.
                break
            if not part:
                break
            said += part
        os.close(ours)
    return said.decode().replace("\r\n", "\n"), child.returncode


def _in_pipe(*words: str) -> str:
    return subprocess.check_output([sys.executable, "-m", "alltoall", *words], text=True)


def test_a_terminal_has_colours_and_a_pipe_has_none() -> None:
    """Labels are coloured; without the colours both get the same words."""
    seen, _ = _on_terminal(*WORDS)
    piped = _in_pipe(*WORDS)
    assert "\x1b[36mnodes\x1b[0m" in seen
    assert "\x1b" not in piped
    assert ESCAPES.sub("", seen) == piped


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_switched_off(extra: dict[str, str]) -> None:
    """NO_COLOR and a dumb terminal are heard."""
    assert "\x1b" not in _on_terminal(*WORDS, extra=extra)[0]


def test_an_error_stands_out() -> None:
    """The word is red, the message as it is in a pipe."""
    seen, code = _on_terminal("solve", "trous:3x3")
    assert code == 2
    assert seen.startswith("\x1b[1;31merror:\x1b[0m unknown topology family 'trous'")


def test_long_work_shows_a_bar_with_the_gap() -> None:
    """The line that is redrawn names the certified gap, and is gone in the end."""
    words = ("solve", "genkautz:n=50,d=4", "--method", "first-order", "--gap", "1e-3")
    seen, code = _on_terminal(*words)
    assert code == 0
    assert re.search(r"━.*certified gap [0-9.e+-]+", seen)
    assert "━" not in seen.rpartition("\x1b[2K")[2]


def test_json_on_a_terminal_is_json() -> None:
    """An object has no colours, wherever it goes."""
    assert "\x1b" not in _on_terminal(*WORDS, "--json")[0]


def test_names_do_not_reach_a_terminal_as_commands() -> None:
    """What a terminal would obey is an escape within the colours."""
    seen, _ = _on_terminal("topology", "no\x1b[31msuch")
    assert "\x1b[31m" not in seen


def test_news() -> None:
    """They are texts, know how far the work is, and take a digit of the gap as a step."""
    half = ProgressMessage.of_count("half", 2, 4)
    assert (half, half.share, half.gap) == ("half", 0.5, None)
    assert ProgressMessage.of_gap("", 1e-2, 1e-4).share == pytest.approx(0.5)
    assert ProgressMessage.of_gap("", 3.0, 1e-4).share == 0
    assert ProgressMessage.of_gap("", 0.0, 1e-4).share == 1
    assert ProgressMessage.of_count("none", 0, 0).share == 1


def test_columns() -> None:
    """Numbers to the right, words to the left, a bar before what is beside."""
    rows = [("name", "n", "other"), ("a", "10", "1"), ("long name", "9", "22")]
    assert columns(rows, words=[0], bar=2) == [
        "name        n  |  other",
        "a          10  |      1",
        "long name   9  |     22",
    ]
    assert columns([("n", "job"), ("10", "b")], words=[-1]) == [" n  job", "10  b"]
    assert columns([("n",), ("10",)], bar=1) == [" n", "10"]
