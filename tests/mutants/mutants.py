"""`make mutants`: do the tests notice single changes? A score for each module.

Every change is made in a copy of the tree, and the tests that `mutants.toml` names for the module
run on it until one fails. What passes unnoticed is printed, unless the same file lists it among
the changes that make no difference.
"""

import argparse
import fnmatch
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

from changes import Change, changes_of

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/alltoall")
TABLE = Path(__file__).with_name("mutants.toml")
SILENCE = 3600.0
"""Seconds after which a process is ended whatever it does; its CPU time ends it long before."""

PRELOADED = ("numpy", "scipy.sparse", "scipy.optimize", "networkx", "typer")
"""Imported once and inherited by every run, which is most of what starting one costs."""


@dataclass(frozen=True)
class Table:
    """What `mutants.toml` says."""

    tests: dict[str, list[str]]
    least: dict[str, float]
    equivalent: list[dict[str, str]]

    @classmethod
    def read(cls) -> "Table":
        """Read the file."""
        found = tomllib.loads(TABLE.read_text())
        return cls(found["tests"], found["least"], found.get("equivalent", []))

    def tests_of(self, module: str) -> list[str]:
        """Return the tests of a module: its own, then those of the table, else of its folder."""
        folders = _first(self.tests, module) or [f"tests/{Path(module).parts[0]}"]
        own = f"test_{Path(module).stem}.py"
        named = [
            str(path.relative_to(ROOT)) for each in folders for path in (ROOT / each).rglob(own)
        ]
        return [*named, *folders]

    def least_of(self, module: str) -> float:
        """Return the share of changes that the tests of a module have to notice."""
        return _first(self.least, module) or 0.9

    def reason(self, module: str, source: str, change: Change) -> str | None:
        """Return why a change makes no difference, if the list says so."""
        line = source.splitlines()[change.line - 1].strip()
        for each in self.equivalent:
            if (each["module"], each["line"], each["change"]) == (module, line, change.name):
                return each["reason"]
        return None


def _first(table: dict[str, Any], module: str) -> Any:
    """Return the entry of the first pattern that fits."""
    return next((value for key, value in table.items() if fnmatch.fnmatch(module, key)), None)


@dataclass
class Score:
    """What came of the changes to one module."""

    noticed: int = 0
    equivalent: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of the changes that count which the tests noticed."""
        counted = self.noticed + len(self.survivors)
        return self.noticed / counted if counted else 1.0


def modules_of(paths: list[str]) -> list[str]:
    """Return the modules under paths, named by their place in the package."""
    found = sorted(
        path
        for given in paths or [str(PACKAGE)]
        for path in ([Path(given)] if given.endswith(".py") else sorted(Path(given).rglob("*.py")))
    )
    return [str(path.resolve().relative_to((ROOT / PACKAGE).resolve())) for path in found]


def copy_tree(to: Path) -> Path:
    """Copy what the tests need, the compiled core included."""
    leave = shutil.ignore_patterns(".*", "out", "dist", "build")
    shutil.copytree(ROOT, to, symlinks=True, ignore=leave)
    return to


def run_tests(tree: Path, tests: list[str], cpu: float) -> None:
    """Run tests in a copy of the tree, in this process, which ends with their exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu) + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    sys.path.insert(0, str(tree / "src"))
    # The finder of the editable installation would import the unchanged package.
    sys.meta_path[:] = [each for each in sys.meta_path if "Inplace" not in type(each).__name__]
    import pytest

    options = ["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    os._exit(int(pytest.main([*options, *tests])))


def measure(tree: Path, tests: list[str]) -> float:
    """Return the CPU seconds of a module's tests on the unchanged tree, which they have to pass."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = _start(tree, tests, SILENCE)
    process.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.exitcode != 0:
        sys.exit(
            f"{' '.join(tests)} end with {process.exitcode} on the unchanged tree; mend that first"
        )
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(tree: Path, tests: list[str], cpu: float) -> "multiprocessing.context.ForkProcess":
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, tests, cpu))
    process.start()
    return process


def survey(
    module: str, chosen: list[Change], trees: list[Path], tests: list[str]
) -> Iterator[tuple[Change, bool]]:
    """Try changes, one in each tree at a time; yield each, and whether the tests noticed it."""
    source = (ROOT / PACKAGE / module).read_text()
    limit = 20 + 4 * measure(trees[0], tests)
    waiting, free = list(reversed(chosen)), list(trees)
    running: dict[Any, tuple[Any, Change, Path]] = {}
    while waiting or running:
        while waiting and free:
            change, tree = waiting.pop(), free.pop()
            (tree / PACKAGE / module).write_text(change.apply(source))
            process = _start(tree, tests, limit)
            running[process.sentinel] = process, change, tree
        for sentinel in wait(list(running), timeout=SILENCE) or list(running):
            process, change, tree = running.pop(sentinel)
            process.kill()
            process.join()
            yield change, process.exitcode != 0
            shutil.copy2(ROOT / PACKAGE / module, tree / PACKAGE / module)
            free.append(tree)


def score(module: str, table: Table, trees: list[Path], given: argparse.Namespace) -> Score:
    """Try a sample of the changes to a module."""
    source = (ROOT / PACKAGE / module).read_text()
    chosen = changes_of(source)
    if 0 < given.sample < len(chosen):
        chosen = Random(f"{given.seed}/{module}").sample(chosen, given.sample)
    found = Score()
    counted = [each for each in chosen if table.reason(module, source, each) is None]
    found.equivalent = len(chosen) - len(counted)
    if counted:
        for change, noticed in survey(module, counted, trees, table.tests_of(module)):
            found.noticed += noticed
            if not noticed:
                found.survivors.append(f"{module}:{change.line}: {change.name}")
                print(f"  unnoticed  {found.survivors[-1]}", flush=True)
    return found


def main() -> None:
    """Print a line for each module; fail if one is below what is asked of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="files or folders; the whole package if none")
    parser.add_argument("--sample", type=int, default=40, help="changes of a module; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads should not fork
    for name in PRELOADED:
        __import__(name)
    table, low = Table.read(), []
    with tempfile.TemporaryDirectory(prefix="alltoall-mutants-") as folder:
        trees = [copy_tree(Path(folder) / str(job)) for job in range(given.jobs)]
        for module in modules_of(given.modules):
            started = time.monotonic()
            found, least = score(module, table, trees, given), table.least_of(module)
            counted = found.noticed + len(found.survivors)
            print(
                f"{module:36} {found.noticed:4} of {counted:4} noticed, {found.share:6.1%}, "
                f"{found.equivalent} equivalent, {time.monotonic() - started:.0f} s",
                flush=True,
            )
            if found.share < least:
                low.append(f"{module} is at {found.share:.1%}; expected {least:.0%}")
    sys.exit("\n".join(low) or 0)


if __name__ == "__main__":
    main()
