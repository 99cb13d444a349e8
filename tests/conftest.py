"""Shared by all tests: the command line as a fixture, options, and how patient hypothesis is."""

import pytest
from hypothesis import HealthCheck, settings

from command_line import Run, runner

# Solving takes what it takes on a busy machine: no test judges by the clock.
settings.register_profile(
    "a2aflow", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("a2aflow")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls a2aflow with words."""
    return runner(capsys)
