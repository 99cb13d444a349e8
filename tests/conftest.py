"""Shared by all tests: the command line as a fixture, options, and how patient hypothesis is."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from alltoall.flows import METHODS
from alltoall.lowering import TARGETS
from alltoall.paths.blocks import using_threads
from alltoall.registry import Registry
from alltoall.routes import ROUTERS
from alltoall.topologies.families import FAMILIES
from command_line import Run, runner
from doc_pages import PAGES, read_page

# No deadline: no test judges by the clock.
settings.register_profile(
    "quick",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples in every run: `make fuzz`.
settings.register_profile(
    "full", settings.get_profile("quick"), max_examples=200, derandomize=False, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


MAY_SKIP = ("torch", "gurobi", "testbed", "SimGrid", "chromium", "opensm", "CI=true")
"""What `make` does not install: gigabytes of CUDA, a licence, the rights of root on Linux, and
packages of Debian's. Slow pages of the documentation need CI=true."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure unless its reason names what `make` does not install."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not any(name in reason for name in MAY_SKIP):
            report.outcome = "failed"
            report.longrepr = f"{reason}: a test may skip for {' or '.join(MAY_SKIP)} only"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the commands in the documentation that no test runs, with the reason."""
    not_run = [each for path in PAGES for each in read_page(path).not_run]
    if not_run:
        terminalreporter.section("commands in the docs that are not run")
        for each in not_run:
            terminalreporter.line(each)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that write golden files, and the outputs in the docs, anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")
    parser.addoption("--update-docs", action="store_true", help="write the outputs in docs anew")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls alltoall with words."""
    return runner(capsys)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Let compiled loops use one thread, unless a solver asks for more: pytest uses all cores.

    Threads that wait for each other while another worker has their core take twice the time.
    """
    with using_threads(1):
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder that all workers of pytest have in common, for what is made once in a run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


TABLES: tuple[Registry[Any], ...] = (FAMILIES, METHODS, ROUTERS, TARGETS)
"""All that others can add to."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Take out again what a test, or an example in the docs, registers."""
    before = [set(table) for table in TABLES]
    yield
    for table, names in zip(TABLES, before, strict=True):
        for name in set(table) - names:
            table.remove(name)
