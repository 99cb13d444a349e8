"""The command line as a fixture."""

import pytest

from command_line import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls a2aflow with words."""
    return runner(monkeypatch, capsys)
